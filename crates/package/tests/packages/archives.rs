//! Archives that no ordinary tool writes, and the findings in packages.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use ::tar::{EntryType, Header};
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use gfxpack_package::read::{self, PackageKind, Report};

pub(crate) fn check(path: &Path) -> Report {
    let kind = PackageKind::from_name(path).unwrap_or_else(|| {
        panic!("`{}` has no ending of a package: see `PackageKind::from_name`", path.display())
    });
    read::check(path, kind, &mut |_, _| Ok(())).expect("reads")
}

/// An entry of a tar that no ordinary tool writes.
pub(crate) struct TarEntry<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: EntryType,
    pub(crate) mode: u32,
    pub(crate) target: &'a str,
    pub(crate) bytes: &'a [u8],
}

pub(crate) fn file<'a>(name: &'a str, bytes: &'a [u8]) -> TarEntry<'a> {
    TarEntry { name, kind: EntryType::Regular, mode: 0o644, target: "", bytes }
}

pub(crate) fn link<'a>(kind: EntryType, name: &'a str, target: &'a str) -> TarEntry<'a> {
    TarEntry { name, kind, mode: 0o777, target, bytes: &[] }
}

pub(crate) fn tar(entries: &[TarEntry<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        let mut header = Header::new_gnu();
        // The library's setters reject such values.
        header.as_old_mut().name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        header.as_old_mut().linkname[..entry.target.len()].copy_from_slice(entry.target.as_bytes());
        header.set_entry_type(entry.kind);
        header.set_mode(entry.mode);
        header.set_size(entry.bytes.len() as u64);
        header.set_cksum();
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(entry.bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Level::fast());
    packed.write_all(bytes).expect("written");
    packed.finish().expect("written")
}

/// A .deb from these two archives.
pub(crate) fn deb(control: &[u8], data: &[u8]) -> Vec<u8> {
    let mut made = b"!<arch>\n".to_vec();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gz(control)),
        ("data.tar.gz", gz(data)),
    ];
    for (name, bytes) in members {
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100644, bytes.len());
        made.extend_from_slice(header.as_bytes());
        made.extend_from_slice(&bytes);
        made.resize(made.len().next_multiple_of(2), b'\n');
    }
    made
}

pub(crate) fn control() -> Vec<u8> {
    tar(&[file("./control", b"Package: x\nVersion: 1\nArchitecture: all\n")])
}

/// Writes the archive both as a tarball and in a .deb.
pub(crate) fn both(dir: &Path, data: &[u8]) -> [PathBuf; 2] {
    let paths = [dir.join("x.tar.gz"), dir.join("x.deb")];
    fs::write(&paths[0], gz(data)).expect("written");
    fs::write(&paths[1], deb(&control(), data)).expect("written");
    paths
}
