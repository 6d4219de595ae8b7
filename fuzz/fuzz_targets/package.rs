//! Any bytes as a package, by what they begin with: read to its end, and what
//! is damaged told in words.
#![no_main]

use std::fs;
use std::io::{Read, sink};
use std::path::Path;
use std::sync::LazyLock;

use gfxpack_model::Error;
use gfxpack_package::read::{PackageKind, check};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// What is looked at of one file: some codecs make much of little.
const READ_MAX: u64 = 1 << 20;

static DIR: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a temporary directory"));

/// The names that a package with these bytes may have.
fn names(bytes: &[u8]) -> &'static [&'static str] {
    match bytes {
        [0xed, 0xab, ..] => &["x.rpm"],
        [0x1f, 0x8b, ..] => &["x.tar.gz", "x.pkg.tar.gz"],
        [0xfd, b'7', ..] => &["x.tar.xz", "x.pkg.tar.xz"],
        [0x28, 0xb5, ..] => &["x.tar.zst", "x.pkg.tar.zst"],
        [b'o', b'c', b'i', ..] => &["x.oci.tar"],
        [b'P', b'K', ..] => &["x-1-py3-none-any.whl"],
        _ => &["x.deb"],
    }
}

fn judge(path: &Path) {
    let kind = PackageKind::from_name(path).expect("a package's name");
    let mut shown = 0;
    let report = check(path, kind, &mut |name, bytes| {
        assert!(name.starts_with('/') || kind == PackageKind::Rpm, "{name}");
        shown += 1;
        let read = std::io::copy(&mut bytes.take(READ_MAX), &mut sink());
        read.map(|_| ()).map_err(Error::io("read", Path::new(name)))
    });
    let report = report.expect("a regular file is judged");
    assert!(shown <= report.files);
    assert!(report.findings.iter().all(|finding| !finding.is_empty()));
}

fuzz_target!(|bytes: &[u8]| {
    for name in names(bytes) {
        let path = DIR.path().join(name);
        fs::write(&path, bytes).expect("written");
        judge(&path);
    }
});
