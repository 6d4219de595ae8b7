//! Any bytes as a package of an archive like Debian's: nothing of it leaves its
//! directory.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use gfxpack_debian::{Archive, Options, Pin, Progress};
use gfxpack_model::Digest;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

struct Deaf;

impl Progress for Deaf {}

/// A mirror, and beside it a cache.
static DIR: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(dir.path().join("mirror")).expect("made");
    dir
});

fuzz_target!(|bytes: &[u8]| {
    let mirror = DIR.path().join("mirror");
    let cache = DIR.path().join("cache");
    fs::write(mirror.join("x.deb"), bytes).expect("written");
    let options = Options {
        mirror: Some(mirror.display().to_string()),
        apt: DIR.path().join("apt"),
        keys: Vec::new(),
        architecture: None,
    };
    let pin = Pin {
        name: "x".to_owned(),
        version: "1".to_owned(),
        file: "x.deb".to_owned(),
        size: bytes.len() as u64,
        sha256: Digest::of(bytes),
    };
    let _ = Archive::new(&cache, options, &Deaf).unpacked(&pin);
    let mut left: Vec<_> = fs::read_dir(DIR.path()).expect("there").flatten().collect();
    left.sort_by_key(|entry| entry.file_name());
    let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["cache", "mirror"], "nothing beside the cache");
    let _ = fs::remove_dir_all(cache);
});
