//! Tests with valid and with bad packages.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use rustix::io::Errno;
use tar::{Builder, Header};

use super::*;

/// An entry: its kind, its path, and the target of a link or the text of a file.
type Entry<'a> = (EntryType, &'a str, &'a str);

const FILE: EntryType = EntryType::Regular;
const LINK: EntryType = EntryType::Symlink;
const HARD: EntryType = EntryType::Link;

fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, path, text) in entries {
        let mut header = Header::new_gnu();
        // Set as bytes, since the library refuses to write bad paths.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o6755);
        header.set_uid(1234);
        header.set_gid(1234);
        let is_file = *kind == FILE;
        if !is_file {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        let bytes = if is_file { text.as_bytes() } else { b"" };
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn deb(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut deb = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        writeln!(deb, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, 0, 100_644, bytes.len())
            .unwrap();
        deb.extend_from_slice(bytes);
        if bytes.len() % 2 == 1 {
            deb.push(b'\n');
        }
    }
    deb
}

fn with_data(name: &str, data: &[u8]) -> Vec<u8> {
    deb(&[("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (name, data)])
}

/// Unpacks into the directory `inner`; nothing may be written outside of it.
fn unpacked(deb: &[u8]) -> (tempfile::TempDir, Result<(), String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.deb");
    fs::write(&file, deb).unwrap();
    fs::create_dir(dir.path().join("inner")).unwrap();
    let result = unpack(&file, &dir.path().join("inner")).map_err(|error| {
        assert!(system_error(&error).is_none(), "{error}");
        gfxpack_model::in_full(&error)
    });
    (dir, result)
}

#[test]
fn files_are_unpacked_from_all_compressions() {
    let plain = tar(&[
        (EntryType::Directory, "./usr/", ""),
        (FILE, "./usr/lib/libx.so.1.0", "library"),
        (LINK, "./usr/lib/libx.so.1", "libx.so.1.0"),
        (LINK, "./usr/lib/absolute", "/usr/lib/libx.so.1"),
        (HARD, "./usr/lib/hard", "./usr/lib/libx.so.1.0"),
        (FILE, "lib64/x", ""),
    ]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
    xz.write_all(&plain).unwrap();
    for (name, data) in [
        ("data.tar.gz", gzip.finish().unwrap()),
        ("data.tar.xz", xz.finish().unwrap()),
        ("data.tar.zst", zstd::encode_all(&plain[..], 1).unwrap()),
        ("data.tar", plain),
    ] {
        let (dir, result) = unpacked(&with_data(name, &data));
        assert_eq!(result, Ok(()), "{name}");
        let lib = dir.path().join("inner/usr/lib");
        for file in ["libx.so.1.0", "libx.so.1", "absolute", "hard"] {
            assert_eq!(fs::read(lib.join(file)).unwrap(), b"library", "{name}: {file}");
        }
        assert_eq!(
            fs::read_link(lib.join("absolute")).unwrap(),
            Path::new("../../usr/lib/libx.so.1")
        );
        let mode = fs::metadata(lib.join("libx.so.1.0")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "no set-ID bits");
    }
}

#[test]
fn nothing_leaves_the_directory() {
    let check = |entries: &[Entry<'_>], why: &str| {
        let (dir, result) = unpacked(&with_data("data.tar", &tar(entries)));
        let error = result.expect_err(&format!("{entries:?}"));
        assert!(error.contains(why), "{entries:?}: {error}");
        let mut left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["inner", "x.deb"], "{entries:?}");
    };
    check(&[(FILE, "../evil", "x")], "leads out");
    check(&[(FILE, "./usr/../../evil", "x")], "leads out");
    check(&[(FILE, "/tmp/evil", "x")], "leads out");
    check(&[(EntryType::Directory, "../evil/", "")], "leads out");
    check(&[(LINK, "a", "../evil")], "leads out");
    check(&[(LINK, "usr/a", "../../evil")], "leads out");
    check(&[(LINK, "usr/a", "/../evil")], "leads out");
    check(&[(LINK, "here", "."), (LINK, "up", "here/..")], "leads out");
    check(&[(HARD, "a", "../x.deb")], "leads out");
    check(&[(LINK, "./", "/etc")], "no directory");
    check(&[(HARD, ".", "./")], "no directory");
    check(&[(FILE, "./", "x")], "no directory");
    // Behind a link, even one that stays inside.
    check(&[(LINK, "a", "b"), (FILE, "a/evil", "x")], "below something");
    check(&[(LINK, "a", "/"), (EntryType::Directory, "a/evil", "")], "below something");
    check(&[(FILE, "b", ""), (LINK, "a", "."), (HARD, "c", "a/b")], "below something");
    check(&[(FILE, "a", ""), (FILE, "a/evil", "x")], "below something");
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        check(&[(kind, "device", "")], "neither");
    }
    // A file may replace a link, and a link a file.
    check(&[(LINK, "a", "b"), (FILE, "b", ""), (FILE, "a", "x")], "");
    check(&[(FILE, "a", ""), (LINK, "a", "b")], "");
}

#[test]
fn a_damaged_package_is_refused() {
    let check = |deb: &[u8]| assert!(unpacked(deb).1.is_err());
    let data = tar(&[(FILE, "usr/x", &"x".repeat(3000))]);
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
    xz.write_all(&data).unwrap();
    let xz = xz.finish().unwrap();
    let good = with_data("data.tar.xz", &xz);
    assert_eq!(unpacked(&good).1, Ok(()));
    // The last byte may be padding.
    for end in 0..good.len() - xz.len() % 2 {
        check(&good[..end]);
    }
    check(&with_data("data.tar.lz4", &data));
    check(&with_data("data.tar.gz", &xz));
    check(&with_data("other", &data));
    check(&deb(&[("debian-binary", b"2.0\n")]));
    check(b"Not Found");
    // A name of a gigabyte is rejected before it is read.
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(1 << 30);
    header.set_cksum();
    let long = [header.as_bytes().as_slice(), &vec![b'x'; 4 << 20]].concat();
    check(&with_data("data.tar", &long));
}

#[test]
fn a_full_disk_is_no_fault_of_the_package() {
    let is_systems = |error: io::Error| {
        let error = io::Error::new(error.kind(), io::Error::new(error.kind(), error));
        system_error(&error).is_some()
    };
    for (number, expected) in [
        (Errno::NOSPC, true),
        (Errno::FBIG, true),
        (Errno::ACCESS, true),
        (Errno::EXIST, false),
        (Errno::NOENT, false),
    ] {
        assert_eq!(is_systems(number.into()), expected, "{number}");
    }
    assert!(!is_systems(io::ErrorKind::InvalidData.into()));
}

#[test]
fn links_stay_below_the_directory() {
    let check = |path: &str, target: &str, expected: Option<&str>| {
        let found = inside(Path::new(path), Path::new(target));
        assert_eq!(found.as_deref(), expected.map(Path::new), "{path} -> {target}");
    };
    check("", "/etc", None);
    check("usr/lib/a.so", "a.so.1", Some("a.so.1"));
    check("usr/lib/a.so", "../share/a", Some("../share/a"));
    check("usr/lib/a.so", "/usr/share/a", Some("../../usr/share/a"));
    check("a", "/b", Some("b"));
    check("a", "/", Some("."));
    check("usr/lib/a.so", "../../a", Some("../../a"));
    check("usr/lib/a.so", "../../../a", None);
    check("usr/lib/a.so", "x/../a", None);
    check("a", "here/..", None);
    check("usr/lib/a.so", "/../etc", None);
    check("usr/lib/a.so", "", None);
}
