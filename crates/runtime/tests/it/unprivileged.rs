//! Situations that only a user other than root meets: unreadable files,
//! read-only directories, and a write-ahead log in one.

use std::path::Path;

use gfxpack_runtime::WarningClass::{self, *};
use gfxpack_runtime::{
    Config, DirectoryOptions, Environment, KdbDirectories, Origin, UserDirectory,
};

use crate::support::*;

/// Runs a test of this binary as a user without rights: `nobody` if the current
/// user is root.
#[track_caller]
fn run_unprivileged(machine: &Machine, test: &str) {
    let copy = machine.root.join("test");
    copy_this_program(&copy);
    chmod(&copy, 0o755);
    let mut child = command(&copy);
    if is_root() {
        as_user(&mut child, 65534);
    }
    with_test(&mut child, test, &[machine.root.to_str().unwrap()]);
    finish(spawn(&mut child));
}

fn root_of_child() -> std::path::PathBuf {
    child_arguments().remove(0).into()
}

#[test]
fn files_and_directories_without_rights() {
    let machine = Machine::new(2);
    let user = machine.root.join("installed-user");
    std::fs::create_dir(&user).unwrap();
    write_kdb(&user.join(USER_NAME), &[(numbered(5), object(5))]);
    for name in ["unreadable", "closed", "wal", "user-wal"] {
        let directory = machine.root.join(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::copy(machine.kdb(), directory.join(NAME)).unwrap();
    }
    chmod(&machine.root.join("unreadable").join(NAME), 0o000);
    chmod(&machine.root.join("closed"), 0o000);
    to_wal_mode(&machine.root.join("wal").join(NAME));
    std::fs::rename(
        machine.root.join("user-wal").join(NAME),
        machine.root.join("user-wal").join(USER_NAME),
    )
    .unwrap();
    to_wal_mode(&machine.root.join("user-wal").join(USER_NAME));
    for name in ["wal", "user-wal", "installed-user"] {
        chmod(&machine.root.join(name), 0o555);
    }
    run_unprivileged(&machine, "unprivileged::child_process_without_rights");
    for name in ["closed", "wal", "user-wal", "installed-user"] {
        chmod(&machine.root.join(name), 0o755);
    }
}

#[test]
#[ignore = "the child of another test, started as a user without rights"]
fn child_process_without_rights() {
    let root = root_of_child();
    let memory = || UserDirectory::Memory("of the test".to_owned());
    let system = |name: &str, class: WarningClass| {
        let cache = Cache::open(config(&root.join(name), memory()));
        for _ in 0..2 {
            cache.kernel(0);
        }
        assert_eq!(cache.kernel(0).origin, Origin::Memory);
        assert_eq!(cache.warnings.classes(), [class], "{name}: {:?}", cache.warnings.texts());
    };
    system("unreadable", Unreadable);
    system("wal", WalMode);
    // Neither of the two files in a closed directory can be read; one warning
    // each.
    let cache = Cache::open(config(&root.join("closed"), memory()));
    cache.kernel(0);
    assert_eq!(cache.warnings.classes(), [Unreadable, Unreadable], "{:?}", cache.warnings.texts());

    // A user cache that can only be read is read.
    let installed = root.join("installed-user");
    let cache = Cache::open(config(&root.join("system"), UserDirectory::Dir(installed.clone())));
    assert_eq!(cache.kernel(5).origin, Origin::User(installed.join(USER_NAME)));
    let kernel = cache.kernel(6);
    assert_eq!(kernel.origin, Origin::Compiled);
    assert!(kernel.not_stored.is_some());
    assert_eq!(cache.kernel(6).origin, Origin::Memory);
    assert_eq!(cache.warnings.classes(), [WarningClass::NotStored]);
    // In WAL mode it can't be read.
    let cache =
        Cache::open(config(&root.join("system"), UserDirectory::Dir(root.join("user-wal"))));
    assert_eq!(reasons(&cache.kernel(7).misses)[2], "user unreadable");
    assert_eq!(cache.warnings.classes(), [WalMode], "{:?}", cache.warnings.texts());
    // No directory can be created here.
    let cache =
        Cache::open(config(&root.join("system"), UserDirectory::Dir(root.join("wal/new/user"))));
    assert!(cache.kernel(8).not_stored.is_some());
    assert_eq!(cache.kernel(8).origin, Origin::Memory);
    assert_eq!(cache.warnings.classes(), [WarningClass::NotStored]);
}

#[test]
fn a_read_only_home_falls_back_to_a_private_directory() {
    let machine = Machine::new(0);
    let child = if is_root() { 65534 } else { rustix::process::geteuid().as_raw() };
    let taken = format!("taken-temp/gfxpack-{child}");
    for name in ["home/.cache/miopen/1.0", "temp", "closed-temp", &taken] {
        std::fs::create_dir_all(machine.root.join(name)).unwrap();
    }
    let installed = machine.root.join("home/.cache/miopen/1.0").join(USER_NAME);
    write_kdb(&installed, &[(numbered(5), object(5))]);
    chmod(&machine.root.join("temp"), 0o1777);
    chmod(&machine.root.join("taken-temp"), 0o1777);
    chmod(&machine.root.join(&taken), 0o777);
    if !is_root() {
        // A user can't take over their own directory, so it is closed instead.
        chmod(&machine.root.join("home/.cache/miopen/1.0"), 0o555);
        chmod(&machine.root.join("closed-temp"), 0o555);
    }
    run_unprivileged(&machine, "unprivileged::child_process_with_a_read_only_home");
    chmod(&machine.root.join("home/.cache/miopen/1.0"), 0o755);
    chmod(&machine.root.join("closed-temp"), 0o755);
}

#[test]
#[ignore = "the child of another test, started as a user without rights"]
fn child_process_with_a_read_only_home() {
    let root = root_of_child();
    let user = rustix::process::geteuid().as_raw();
    let open = |home: Option<&str>, temp: &str| {
        let path = |name: &str| root.join(name).into_os_string();
        let mut pairs = vec![("TMPDIR", path(temp))];
        pairs.extend(home.map(|home| ("HOME", path(home))));
        let mut options = DirectoryOptions::default();
        options.version = "1.0".to_owned();
        options.root = root.clone();
        let directories = KdbDirectories::resolve(&Environment::from_pairs(pairs), &options);
        let warnings = RecordedWarnings::default();
        let mut config = Config::new("gfx906@60".parse().unwrap(), directories);
        config.warnings = warnings.sink();
        Cache::open((config, warnings))
    };
    let private = root.join(format!("temp/gfxpack-{user}/miopen/1.0")).join(USER_NAME);
    // Stores go to the private directory; kernels in the home directory are
    // still found.
    let cache = open(Some("home"), "temp");
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert_eq!(cache.kernel(0).origin, Origin::User(private.clone()));
    let found = cache.kernel(5).origin;
    assert_eq!(found, Origin::User(root.join("home/.cache/miopen/1.0").join(USER_NAME)));
    assert_eq!(
        cache.warnings.classes(),
        [WarningClass::UserDirectory, MissingSystemKdb],
        "{:?}",
        cache.warnings.texts()
    );
    for directory in private.ancestors().skip(1).take(3) {
        assert_eq!(mode(directory), 0o700, "{}", directory.display());
    }
    // The kernel is found again.
    assert_eq!(open(Some("home"), "temp").kernel(0).origin, Origin::User(private));
    // Without a home directory the cache is where MIOpen has it.
    assert_eq!(open(None, "temp").kernel(0).origin, Origin::Compiled);
    let miopens = root.join("temp/.cache/miopen/1.0").join(USER_NAME);
    assert_eq!(open(None, "temp").kernel(0).origin, Origin::User(miopens));
    // If nothing can be created, or another user was first: memory.
    for temp in ["closed-temp", "taken-temp"] {
        let cache = open(Some("home"), temp);
        assert!(matches!(
            cache.cache.config().directories.user,
            gfxpack_runtime::UserDirectory::Memory(_)
        ));
        assert_eq!(cache.kernel(0).origin, Origin::Compiled);
        assert_eq!(cache.kernel(0).origin, Origin::Memory);
        assert_eq!(cache.warnings.classes(), [WarningClass::UserDirectory, MissingSystemKdb]);
        assert_eq!(listing(Path::new(&root.join(temp))).len(), usize::from(temp == "taken-temp"));
    }
}
