//! The directories that the rules give.

use std::path::{Path, PathBuf};

use gfxpack_runtime::{DirectoryOptions, Environment, KdbDirectories, UserDirectory};
use proptest::prelude::*;

use crate::support::*;

fn resolve(pairs: &[(&str, &Path)], change: impl FnOnce(&mut DirectoryOptions)) -> KdbDirectories {
    let mut options = DirectoryOptions::default();
    options.version = "3.4.0.".to_owned();
    change(&mut options);
    KdbDirectories::resolve(&Environment::from_pairs(pairs.iter().copied()), &options)
}

fn system(directories: &KdbDirectories) -> Vec<PathBuf> {
    assert!(directories.system_dirs().all(Path::is_absolute));
    directories.system_dirs().map(Path::to_owned).collect()
}

#[test]
fn the_first_given_system_directory_is_used() {
    let machine = Machine::new(0);
    let library = machine.root.join("rocm-6.4.1/lib/libMIOpen.so.1.0");
    std::fs::create_dir_all(library.parent().unwrap()).unwrap();
    std::fs::write(&library, "").unwrap();
    let link = machine.root.join("libMIOpen.so.1");
    std::os::unix::fs::symlink(&library, &link).unwrap();
    let beside = machine.root.join("rocm-6.4.1/share/miopen/db");
    let options = |options: &mut DirectoryOptions| {
        options.system_dir = Some("/given".into());
        options.library_path = Some(link.clone());
        options.root = machine.root.clone();
    };
    let named = [("MIOPEN_SYSTEM_DB_PATH", Path::new("/named"))];
    assert_eq!(system(&resolve(&named, options)), [Path::new("/named")]);
    assert_eq!(system(&resolve(&[], options)), [Path::new("/given")]);
    let by_library = |change: &mut DirectoryOptions| {
        options(change);
        change.system_dir = None;
    };
    let directories = resolve(&[], by_library);
    assert_eq!(system(&directories)[0], beside, "from the real file, not the link");
    assert_eq!(system(&directories).len(), 4, "it does not exist: the prefixes follow");
    std::fs::create_dir_all(&beside).unwrap();
    assert_eq!(system(&resolve(&[], by_library)), [beside]);
}

#[test]
fn resolving_changes_nothing() {
    let machine = Machine::new(0);
    std::fs::create_dir(&machine.user).unwrap();
    chmod(&machine.user, 0o775);
    let directories = resolve(&[("MIOPEN_CUSTOM_CACHE_DIR", &machine.user)], |_| ());
    assert_eq!(directories.user, UserDirectory::Dir(machine.user.clone()));
    assert_eq!(mode(&machine.user), 0o775);
}

#[test]
fn nothing_is_loaded_from_the_working_directory() {
    let relative = [("MIOPEN_SYSTEM_DB_PATH", Path::new("share/db"))];
    let directories = resolve(&relative, |options| {
        options.system_dir = Some("also/relative".into());
        // Tests run in their crate's directory, which has this file.
        options.library_path = Some("Cargo.toml".into());
    });
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let unasked_kdbs = |path: &PathBuf| !path.ends_with("share/db") && !path.starts_with(here);
    assert!(system(&directories).iter().all(unasked_kdbs), "{:?}", directories.system);
    assert_eq!(directories.notes.len(), 3, "{:?}", directories.notes);
}

#[test]
fn rocm_prefixes_are_searched_newest_first_and_once_each() {
    let machine = Machine::new(0);
    for name in ["opt/rocm-6.9.0", "opt/rocm-6.10.1", "opt/rocm-notes", "rocm/share/miopen/db"] {
        std::fs::create_dir_all(machine.root.join(name)).unwrap();
    }
    for name in ["opt/rocm-6.9.0", "opt/rocm-6.10.1"] {
        std::fs::create_dir_all(machine.root.join(name).join("share/miopen/db")).unwrap();
    }
    let current = machine.root.join("opt/rocm");
    std::os::unix::fs::symlink(machine.root.join("opt/rocm-6.10.1"), &current).unwrap();
    let below = |name: &str| machine.root.join(name).join("share/miopen/db");
    let root = |options: &mut DirectoryOptions| options.root = machine.root.clone();
    let expected = ["opt/rocm", "opt/rocm-6.9.0", "usr", "usr/lib"].map(below);
    assert_eq!(system(&resolve(&[], root)), expected);
    let prefix = machine.root.join("rocm");
    let directories = resolve(&[("ROCM_PATH", &prefix)], root);
    assert_eq!(system(&directories)[0], below("rocm"));
    assert_eq!(system(&directories)[1..], expected);
}

#[test]
fn the_users_cache_is_in_miopens_directory() {
    let machine = Machine::new(0);
    let home = machine.root.join("home");
    let user = |pairs: &[(&str, &Path)], change: &dyn Fn(&mut DirectoryOptions)| {
        let directories = resolve(pairs, change);
        assert_eq!(directories.fallback, None);
        directories.user
    };
    let at_home = [("HOME", home.as_path())];
    let default = home.join(".cache/miopen/3.4.0.");
    assert_eq!(user(&at_home, &|_| {}), UserDirectory::Dir(default.clone()));
    assert!(!home.exists(), "resolving creates nothing");
    let built_in =
        |options: &mut DirectoryOptions| options.build_time_cache_dir = "~/kernels".into();
    assert_eq!(user(&at_home, &built_in), UserDirectory::Dir(home.join("kernels/3.4.0.")));
    // Exactly the given directory, without one for the version.
    let custom = machine.root.join("custom");
    let mut pairs = at_home.to_vec();
    pairs.push(("MIOPEN_CUSTOM_CACHE_DIR", &custom));
    assert_eq!(user(&pairs, &built_in), UserDirectory::Dir(custom.clone()));
    pairs[1].1 = Path::new("~/mine");
    assert_eq!(user(&pairs, &|_| {}), UserDirectory::Dir(home.join("mine")));
    pairs[1].1 = Path::new("");
    assert_eq!(user(&pairs, &|_| {}), UserDirectory::Dir(default));
}

#[test]
fn the_cache_can_be_switched_off() {
    let off = |options: &mut DirectoryOptions| options.build_time_cache_dir = String::new();
    let directories = resolve(&[("HOME", Path::new("/nobody/x"))], off);
    assert!(matches!(directories.user, UserDirectory::Disabled(_)));
    assert!(
        !directories.system.is_empty() && directories.fallback.is_none(),
        "the system's kdb is read"
    );

    let machine = Machine::new(1);
    let path = machine.system.clone();
    let pairs =
        [("MIOPEN_DISABLE_CACHE", Path::new("On")), ("MIOPEN_SYSTEM_DB_PATH", path.as_path())];
    let directories = resolve(&pairs, |_| {});
    assert!(
        matches!(directories.user, UserDirectory::Disabled(_)) && directories.system.is_empty()
    );
    let warnings = RecordedWarnings::default();
    let mut config = gfxpack_runtime::Config::new("gfx906@60".parse().unwrap(), directories);
    config.warnings = warnings.sink();
    let cache = Cache::open((config, warnings));
    assert_eq!(cache.layer(0), None, "neither file is read");
    for _ in 0..2 {
        let kernel = cache.kernel(0);
        assert_eq!(kernel.origin, gfxpack_runtime::Origin::Compiled, "and nothing is kept");
        assert!(kernel.misses.is_empty() && kernel.not_stored.is_some());
    }
    assert!(cache.warnings.texts().is_empty(), "the user wants it so");
}

#[test]
fn without_a_home_the_cache_is_where_miopen_has_it() {
    let machine = Machine::new(0);
    let temp = machine.root.as_path();
    let check = |home: Option<&str>, expected: PathBuf| {
        let home = home.map(|home| ("HOME", Path::new(home)));
        let pairs: Vec<_> = home.into_iter().chain([("TMPDIR", temp)]).collect();
        assert_eq!(resolve(&pairs, |_| {}).user, UserDirectory::Dir(expected), "{pairs:?}");
    };
    for home in [None, Some(""), Some("/")] {
        check(home, temp.join(".cache/miopen/3.4.0."));
    }
    check(Some("relative"), std::env::current_dir().unwrap().join("relative/.cache/miopen/3.4.0."));
}

#[test]
fn where_home_is_read_only_the_cache_is_in_a_private_temporary_directory() {
    let machine = Machine::new(0);
    let user = rustix::process::geteuid().as_raw();
    let private = machine.root.join(format!("gfxpack-{user}"));
    // Nothing can be made below a file, not even by root.
    let home = machine.root.join("home");
    std::fs::write(&home, "").unwrap();
    let temp = [("HOME", home.as_path()), ("TMPDIR", machine.root.as_path())];
    let directories = resolve(&temp, |_| {});
    assert_eq!(directories.user, UserDirectory::Dir(private.join("miopen/3.4.0.")));
    assert!(directories.fallback.unwrap().contains("can't be written to"));
    assert!(!private.exists(), "resolving creates nothing");
    let refused = |make: &dyn Fn()| {
        make();
        let directories = resolve(&temp, |_| {});
        assert!(matches!(directories.user, UserDirectory::Memory(_)), "{:?}", directories.user);
        assert!(directories.fallback.unwrap().contains("in memory only"));
    };
    refused(&|| std::fs::write(&private, "").unwrap());
    std::fs::remove_file(&private).unwrap();
    std::fs::create_dir(machine.root.join("elsewhere")).unwrap();
    refused(&|| std::os::unix::fs::symlink(machine.root.join("elsewhere"), &private).unwrap());
    std::fs::remove_file(&private).unwrap();
    std::fs::create_dir(&private).unwrap();
    refused(&|| chmod(&private, 0o755));
    chmod(&private, 0o700);
    assert!(matches!(resolve(&temp, |_| {}).user, UserDirectory::Dir(_)));
}

#[test]
fn an_unusable_custom_directory_is_reported() {
    let machine = Machine::new(0);
    let file = machine.root.join("file");
    std::fs::write(&file, "").unwrap();
    for custom in [file.clone(), file.join("below")] {
        let directories = resolve(&[("MIOPEN_CUSTOM_CACHE_DIR", &custom)], |_| {});
        assert!(matches!(directories.user, UserDirectory::Memory(_)), "{:?}", directories.user);
        assert!(directories.fallback.unwrap().contains("MIOPEN_CUSTOM_CACHE_DIR"));
    }
}

proptest! {
    /// Whatever the variables hold, the directories are absolute and nothing
    /// panics.
    #[test]
    fn any_values_give_absolute_directories(
        values in proptest::collection::vec("(~|/|)([a-z./~]|\\PC){0,12}", 5),
        version in "\\PC{0,8}",
    ) {
        let names =
            ["MIOPEN_SYSTEM_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "HOME", "TMPDIR", "ROCM_PATH"];
        let environment = Environment::from_pairs(names.into_iter().zip(values));
        let mut options = DirectoryOptions::default();
        options.version = version;
        let directories = KdbDirectories::resolve(&environment, &options);
        prop_assert!(directories.system_dirs().all(Path::is_absolute));
        if let UserDirectory::Dir(directory) = &directories.user {
            prop_assert!(directory.is_absolute());
        }
    }
}
