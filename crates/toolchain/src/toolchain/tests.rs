//! What a digest covers, and operations while files are touched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;

/// The digest of a directory of headers.
fn digest(dir: &Path) -> Digest {
    let digests = FileDigests::default();
    digest_of(&closure(&[], &[dir.join("include")], &digests).unwrap())
}

/// Creates a directory with these files in `include`.
fn headers(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join("include").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn dangling_and_circular_links_are_no_errors() {
    let dir = headers(&[("a.h", ""), ("sub/b.h", "")]);
    let at = |name: &str| dir.path().join("include").join(name);
    symlink("../nowhere.h", at("x.h")).unwrap();
    symlink("itself.h", at("itself.h")).unwrap();
    symlink(".", at("self")).unwrap();
    symlink("..", at("sub/up")).unwrap();
    let before = digest(dir.path());
    let identities = Snapshot::take(&[], &[dir.path().join("include")]).identities;
    let nowhere = identities.iter().find(|(path, _)| path.ends_with("x.h")).unwrap();
    assert_eq!(nowhere.1, None);
    fs::write(dir.path().join("nowhere.h"), "").unwrap();
    assert_ne!(digest(dir.path()), before);
    assert_ne!(identity(&nowhere.0), None);
}

/// A toolchain with the program `bin/clang` and the headers in `include`.
fn toolchain(dir: &Path) -> Toolchain {
    let (files, covered) = (vec![dir.join("bin/clang")], vec![dir.join("include")]);
    let snapshot = Arc::new(Snapshot::take(&files, &covered));
    Toolchain {
        covered_files: closure(&files, &covered, &FileDigests::default()).unwrap().into(),
        snapshot: Arc::new(Mutex::new(snapshot)),
        files,
        covered,
        ..Toolchain::for_tests()
    }
}

/// Checks the toolchain after `act`.
fn unchanged_by(toolchain: &Toolchain, act: &dyn Fn()) -> Result<(), Error> {
    let make = || {
        act();
        Ok(())
    };
    toolchain.while_unchanged(Language::Hip, &FileDigests::default(), make)
}

#[test]
fn files_may_be_replaced_by_equal_ones() {
    let dir = headers(&[("a.h", "1"), ("b.h", "2"), ("../bin/clang", "c")]);
    let at = |name: &str| dir.path().join(name);
    let toolchain = toolchain(dir.path());
    let replaced = || {
        for path in ["include/a.h", "bin/clang"] {
            fs::copy(at(path), at("copy")).unwrap();
            fs::rename(at("copy"), at(path)).unwrap();
        }
        fs::hard_link(at("include/b.h"), at("link")).unwrap();
    };
    unchanged_by(&toolchain, &replaced).unwrap();
    let changed = || fs::write(at("include/a.h"), "3").unwrap();
    unchanged_by(&toolchain, &changed).unwrap_err();
}

#[test]
fn which_names_are_one_file_or_directory_is_part_of_the_digest() {
    let files = [
        ("a.h", "#pragma once\n"),
        ("b.h", "#pragma once\n"),
        ("1/x/y.h", "#include \"../z.h\"\n"),
        ("2/x/y.h", "#include \"../z.h\"\n"),
        ("1/z.h", "1\n"),
        ("2/z.h", "2\n"),
    ];
    let (here, elsewhere) = (headers(&files), headers(&files));
    let mut digests = BTreeSet::from([digest(here.path())]);
    let mut changed = |by: &dyn Fn(&Path)| {
        [&here, &elsewhere].into_iter().for_each(|dir| by(&dir.path().join("include")));
        assert_eq!(digest(here.path()), digest(elsewhere.path()));
        digests.insert(digest(here.path()))
    };
    let one_by_link = |dir: &Path| {
        fs::remove_file(dir.join("b.h")).unwrap();
        symlink("a.h", dir.join("b.h")).unwrap();
    };
    assert!(changed(&one_by_link));
    let one_by_hard_link = |dir: &Path| {
        fs::remove_file(dir.join("b.h")).unwrap();
        fs::hard_link(dir.join("a.h"), dir.join("b.h")).unwrap();
    };
    assert!(!changed(&one_by_hard_link), "it still is one file");
    assert!(changed(&|dir| symlink("1/x", dir.join("x")).unwrap()));
    let elsewhere_led = |dir: &Path| {
        fs::remove_file(dir.join("x")).unwrap();
        symlink("2/x", dir.join("x")).unwrap();
    };
    assert!(changed(&elsewhere_led));
    assert!(changed(&|dir| fs::create_dir(dir.join("empty")).unwrap()));
}

#[test]
fn which_of_two_names_that_are_not_utf8_has_a_content_is_part_of_the_digest() {
    let digest_of_two = |names: [&[u8]; 2]| {
        let dir = headers(&[("a.h", "")]);
        for (name, text) in names.into_iter().zip(["1", "2"]) {
            fs::write(dir.path().join("include").join(OsStr::from_bytes(name)), text).unwrap();
        }
        digest(dir.path())
    };
    let names = [&b"x\xfe.h"[..], b"x\xff.h"];
    assert_eq!(digest_of_two(names), digest_of_two(names));
    assert_ne!(digest_of_two(names), digest_of_two([names[1], names[0]]));
}
