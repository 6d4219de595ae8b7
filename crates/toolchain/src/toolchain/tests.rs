//! What a digest covers, and operations while files are touched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;

/// The digest of a directory of headers.
fn digest(dir: &Path) -> Digest {
    let digests = FileDigests::in_memory();
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
        closure_files: closure(&files, &covered, &FileDigests::in_memory()).unwrap().into(),
        snapshot: Arc::new(Mutex::new(snapshot)),
        files,
        covered,
        ..Toolchain::for_tests()
    }
}

/// How often an operation runs if `act` happens during the first run.
fn times_made(toolchain: &Toolchain, act: &dyn Fn()) -> Result<u32, ToolchainError> {
    let mut times = 0;
    let make = || {
        times += 1;
        if times == 1 {
            act();
        }
        Ok(times)
    };
    toolchain.while_unchanged(Language::Hip, &FileDigests::in_memory(), make)
}

#[test]
fn an_operation_is_repeated_if_files_are_touched_meanwhile() {
    let dir = headers(&[("a.h", "1"), ("b.h", "2"), ("../bin/clang", "c")]);
    let at = |name: &str| dir.path().join(name);
    let header = at("include/a.h");
    let replace = |path: PathBuf| {
        fs::copy(&path, at("copy")).unwrap();
        fs::rename(at("copy"), &path).unwrap();
    };
    // The clock of the file system may stand still for some milliseconds.
    let wait_for_tick = || {
        let changed = |path: &Path| {
            let meta = fs::metadata(path).unwrap();
            (meta.ctime(), meta.ctime_nsec())
        };
        let clock = at("clock");
        while {
            fs::write(&clock, "").unwrap();
            changed(&clock) <= changed(&header)
        } {}
    };
    let touches: [&dyn Fn(); 7] = [
        &|| fs::hard_link(&header, at("link")).unwrap(),
        &|| {
            let modified = fs::metadata(&header).unwrap().modified().unwrap();
            fs::write(&header, "3").unwrap();
            fs::write(&header, "1").unwrap();
            let file = fs::File::options().write(true).open(&header).unwrap();
            file.set_modified(modified).unwrap();
        },
        &|| replace(header.clone()),
        &|| replace(at("bin/clang")),
        &|| {
            fs::write(at("include/new.h"), "").unwrap();
            fs::remove_file(at("include/new.h")).unwrap();
        },
        &|| {
            fs::rename(at("include"), at("old")).unwrap();
            fs::create_dir(at("include")).unwrap();
            for name in ["a.h", "b.h"] {
                fs::copy(at("old").join(name), at("include").join(name)).unwrap();
            }
        },
        // Everything, with the directory above.
        &|| {
            let (dir, away) = (dir.path(), dir.path().with_extension("away"));
            fs::rename(dir, &away).unwrap();
            fs::rename(&away, dir).unwrap();
        },
    ];
    // As if all files were old, or new.
    for age in [99, 0] {
        let mut toolchain = toolchain(dir.path());
        let snapshot = Snapshot::take(&toolchain.files, &toolchain.covered);
        let taken = Timestamp(snapshot.taken.0 + age);
        toolchain.snapshot = Arc::new(Mutex::new(Arc::new(Snapshot { taken, ..snapshot })));
        for (number, touch) in touches.iter().enumerate() {
            assert_eq!(times_made(&toolchain, &|| {}).unwrap(), 1);
            assert_eq!(toolchain.times_touched(), number as u64);
            wait_for_tick();
            assert_eq!(times_made(&toolchain, touch).unwrap(), 2, "{number}");
        }
        fs::remove_file(at("link")).unwrap();
        fs::remove_dir_all(at("old")).unwrap();
    }
    let touching = || {
        wait_for_tick();
        fs::hard_link(&header, at("link")).unwrap();
        fs::remove_file(at("link")).unwrap();
        Ok::<_, ToolchainError>(())
    };
    let digests = FileDigests::in_memory();
    let endless = toolchain(dir.path()).while_unchanged(Language::Hip, &digests, touching);
    assert!(endless.unwrap_err().to_string().contains("a.h` changed meanwhile"));
}

/// A path that is absent is judged by its name, so nothing else shows where a link led meanwhile.
#[test]
fn a_link_to_the_toolchain_that_led_elsewhere_meanwhile_is_noticed() {
    let dir = headers(&[("../rocm/include/a.h", "1"), ("../rocm/bin/clang", "c")]);
    let at = |name: &str| dir.path().join(name);
    // By way of another link.
    symlink("rocm", at("by-name")).unwrap();
    symlink("by-name", at("link")).unwrap();
    for link in ["by-name", "link"] {
        let toolchain = toolchain(&at("link"));
        let lead_elsewhere = || {
            fs::rename(at(link), at("away")).unwrap();
            symlink("nowhere", at(link)).unwrap();
            fs::remove_file(at(link)).unwrap();
            // Put back as another link: a rename can leave all times of one as they were.
            symlink(fs::read_link(at("away")).unwrap(), at(link)).unwrap();
            fs::remove_file(at("away")).unwrap();
        };
        assert_eq!(times_made(&toolchain, &|| {}).unwrap(), 1);
        assert_eq!(times_made(&toolchain, &lead_elsewhere).unwrap(), 2, "{link}");
    }
}

#[test]
fn all_threads_of_a_pool_may_notice_a_touched_toolchain_at_once() {
    let dir = headers(&[("a.h", "1"), ("../bin/clang", "c")]);
    let toolchain = toolchain(dir.path());
    let digests = FileDigests::in_memory();
    fs::write(dir.path().join("include/a.h"), "1").unwrap();
    let threads = 2 * rayon::current_num_threads();
    (0..threads).into_par_iter().for_each(|_| {
        toolchain.while_unchanged(Language::Hip, &digests, || Ok::<_, ToolchainError>(())).unwrap();
    });
}

#[test]
fn the_file_that_changed_is_named() {
    let check = |name: &str, act: &dyn Fn(&Path)| {
        let dir = headers(&[("a.h", "1"), ("b.h", "1"), ("../bin/clang", "c")]);
        let toolchain = toolchain(dir.path());
        let name = name.replace("DIR", dir.path().to_str().unwrap());
        let error = times_made(&toolchain, &|| act(dir.path())).unwrap_err().to_string();
        assert!(error.contains(&format!("`{name}` changed meanwhile")), "{error}: {name}");
    };
    let write = |path: PathBuf| fs::write(path, "3").unwrap();
    check("include/b.h", &|dir| write(dir.join("include/b.h")));
    check("include/c.h", &|dir| write(dir.join("include/c.h")));
    check("include/a.h", &|dir| fs::remove_file(dir.join("include/a.h")).unwrap());
    check("DIR/bin/clang", &|dir| write(dir.join("bin/clang")));
    check("DIR/bin/clang", &|dir| fs::remove_file(dir.join("bin/clang")).unwrap());
    check("include/", &|dir| {
        fs::remove_file(dir.join("include/b.h")).unwrap();
        fs::hard_link(dir.join("include/a.h"), dir.join("include/b.h")).unwrap();
    });
    check("DIR/include", &|dir| {
        fs::rename(dir.join("include"), dir.join("elsewhere")).unwrap();
        symlink("elsewhere", dir.join("include")).unwrap();
    });
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
