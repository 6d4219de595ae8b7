//! Faults of a user's cache. In each case there is no error, the kernel is
//! returned, there is one warning, and nothing is lost.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use gfxpack_runtime::WarningClass::{self, *};
use gfxpack_runtime::{NotStored, Origin};

use crate::other_program::OtherProgram;
use crate::support::*;

/// A user kdb with kernel 0, and a system kdb without it.
fn machine() -> Machine {
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    assert_eq!(machine.open().kernel(0).origin, Origin::Compiled);
    machine
}

/// Damages the user kdb: it must be moved aside, and a new one take its place.
#[track_caller]
fn moved_aside(damage: impl Fn(&Path)) {
    // While a thread of another test is inside SQLite for long, a file is not
    // moved, or the warning comes before it is moved.
    let mut again = 0..20;
    let (machine, damaged, cache, kept) = loop {
        let machine = machine();
        damage(&machine.ukdb());
        let damaged = std::fs::read(machine.ukdb()).unwrap();
        let cache = machine.open();
        assert_eq!(cache.kernel(0).origin, Origin::Compiled);
        let kept = machine.user.join(format!("{USER_NAME}.corrupt-1"));
        let warned = cache.warnings.texts().iter().any(|text| text.contains("corrupt-1"));
        if kept.exists() && warned || again.next().is_none() {
            break (machine, damaged, cache, kept);
        }
    };
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()), "a new file has it");
    assert!(
        std::fs::read(&kept).unwrap() == damaged,
        "the old one is kept as it was: {:?}",
        cache.warnings.texts()
    );
    assert_eq!(cache.warnings.classes(), [Corrupt], "{:?}", cache.warnings.texts());
    let text = cache.warnings.texts().remove(0);
    assert!(text.contains("corrupt-1") && text.lines().count() == 1, "{text}");
    assert_whole(&machine.ukdb());
    // A second damaged file is kept beside the first.
    std::fs::write(machine.ukdb(), [7; 5000]).unwrap();
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    let kept_names = [".corrupt-1", ".corrupt-2"].map(|suffix| format!("{USER_NAME}{suffix}"));
    assert_eq!(listing(&machine.user)[2..], kept_names);
}

#[test]
fn a_file_that_is_not_a_kdb_is_moved_aside() {
    let write = |bytes: &'static [u8]| move |path: &Path| std::fs::write(path, bytes).unwrap();
    moved_aside(write(&[7; 5000]));
    moved_aside(write(b"version https://git-lfs.github.com/spec/v1\n"));
    moved_aside(|path| sql(path, "ALTER TABLE kern_db RENAME COLUMN kernel_hash TO hash"));
    moved_aside(|path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..5000]).unwrap();
    });
}

#[test]
fn an_empty_file_is_a_new_one() {
    let machine = machine();
    std::fs::write(machine.ukdb(), b"").unwrap();
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
    assert!(cache.warnings.texts().is_empty());
}

#[test]
fn a_damaged_kernel_is_replaced() {
    for assignment in [
        "kernel_blob = 'text'",
        "kernel_hash = lower(hex(zeroblob(16)))",
        "uncompressed_size = 1 << 50",
    ] {
        let machine = machine();
        let cache = machine.open();
        cache.kernel(1);
        sql(&machine.ukdb(), &format!("UPDATE kern_db SET {assignment} WHERE id = 1"));
        let kernel = cache.kernel(0);
        assert_eq!(kernel.origin, Origin::Compiled, "{assignment}");
        assert_eq!(reasons(&kernel.misses)[2], "user damaged");
        assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
        assert_eq!(cache.kernel(1).origin, Origin::User(machine.ukdb()), "the others stay");
        assert_eq!(cache.warnings.classes(), [Corrupt]);
        assert_whole(&machine.ukdb());
    }
}

/// Flips bits in random pages: every kernel is right, and in the end all are
/// found again.
#[test]
fn a_file_with_flipped_bits_recovers() {
    const KERNELS: usize = 8;
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    let first = machine.open();
    (0..KERNELS).for_each(|number| drop(first.kernel(number)));
    drop(first);
    let whole = std::fs::read(machine.ukdb()).unwrap();
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..=(round % 3) {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            let bit = word as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        std::fs::write(machine.ukdb(), &bytes).unwrap();
        let cache = machine.open();
        // If the damage of the file is found late, the first kernels are stored
        // into the new file in the second pass.
        for number in (0..KERNELS).chain(0..KERNELS) {
            let kernel = cache.kernel(number);
            assert!(kernel.not_stored.is_none(), "round {round}: {:?}", kernel.not_stored);
        }
        for number in 0..KERNELS {
            assert_eq!(cache.kernel(number).origin, Origin::User(machine.ukdb()), "round {round}");
        }
    }
}

/// The user's file or directory is replaced by something that must not be
/// touched: kernels are returned and kept in memory.
#[track_caller]
fn left_alone(machine: &Machine, class: WarningClass, reason: &str) {
    let cache = machine.open();
    let kernel = cache.kernel(0);
    assert_eq!(kernel.origin, Origin::Compiled);
    assert_eq!(reasons(&kernel.misses)[2], format!("user {reason}"));
    assert!(matches!(kernel.not_stored, Some(NotStored::Failed(_))), "{:?}", kernel.not_stored);
    assert_eq!(cache.kernel(0).origin, Origin::Memory, "it is not compiled again");
    assert_eq!(cache.kernel(999).origin, Origin::System(machine.kdb()));
    assert_eq!(cache.warnings.classes(), [class], "{:?}", cache.warnings.texts());
}

#[test]
fn a_link_or_directory_in_the_files_place_is_left_alone() {
    let machine = machine();
    let replace = |make: &dyn Fn(&Path)| {
        std::fs::remove_file(machine.ukdb()).unwrap();
        make(&machine.ukdb());
    };
    replace(&|path| symlink(path, path).unwrap());
    left_alone(&machine, Untrusted, "untrusted");

    let victim = machine.root.join("victim");
    std::fs::write(&victim, b"").unwrap();
    replace(&|path| symlink(&victim, path).unwrap());
    left_alone(&machine, Untrusted, "untrusted");
    assert_eq!(std::fs::read(&victim).unwrap(), b"", "a link is not followed out");

    replace(&|path| std::fs::hard_link(&victim, path).unwrap());
    left_alone(&machine, Untrusted, "untrusted");
    assert_eq!(std::fs::read(&victim).unwrap(), b"");

    replace(&|path| std::fs::create_dir(path).unwrap());
    left_alone(&machine, Untrusted, "untrusted");
}

#[test]
fn files_that_others_may_write_to_are_left_alone() {
    let machine = machine();
    chmod(&machine.ukdb(), 0o646);
    left_alone(&machine, Untrusted, "untrusted");
    chmod(&machine.ukdb(), 0o600);
    chmod(&machine.user, 0o777);
    left_alone(&machine, Untrusted, "untrusted");
    chmod(&machine.user, 0o700);
    chmod(&machine.root, 0o777);
    left_alone(&machine, Untrusted, "untrusted");
    chmod(&machine.root, 0o755);
    assert_eq!(machine.open().kernel(0).origin, Origin::User(machine.ukdb()));
}

#[test]
fn a_groups_right_to_write_is_taken_away() {
    let machine = machine();
    chmod(&machine.user, 0o775);
    chmod(&machine.ukdb(), 0o664);
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
    assert_eq!((mode(&machine.user), mode(&machine.ukdb())), (0o755, 0o644));
    assert!(cache.warnings.texts().is_empty());
}

#[test]
fn files_of_another_user_are_left_alone() {
    if !is_root() {
        // Only root can give files away, so other users can't test this.
        return;
    }
    let machine = machine();
    let give = |path: &Path, user| std::os::unix::fs::chown(path, Some(user), None).unwrap();
    give(&machine.ukdb(), 1234);
    left_alone(&machine, Untrusted, "untrusted");
    give(&machine.ukdb(), 0);
    give(&machine.user, 1234);
    left_alone(&machine, Untrusted, "untrusted");
}

/// Another user's link is on the path to the user's cache: nothing is created
/// where it leads.
#[test]
fn another_users_link_is_not_followed() {
    if !is_root() {
        return;
    }
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    let (link, real) = (machine.root.join("link"), machine.root.join("real"));
    std::fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let through = |name: &str| {
        let user = gfxpack_runtime::UserDirectory::Dir(link.join(name));
        let cache = Cache::open(config(&machine.system, user));
        (cache.kernel(0), cache.warnings.classes())
    };
    assert!(through("mine").0.not_stored.is_none(), "one's own link is followed");
    std::os::unix::fs::lchown(&link, Some(1234), None).unwrap();
    for name in ["mine", "new/directory"] {
        let (kernel, classes) = through(name);
        assert_eq!(kernel.origin, Origin::Compiled);
        assert!(matches!(kernel.not_stored, Some(NotStored::Failed(_))), "{name}");
        assert_eq!(classes.len(), 1, "{name}: {classes:?}");
        assert!(matches!(classes[0], Untrusted | WarningClass::NotStored), "{name}: {classes:?}");
    }
    assert_eq!(listing(&real), ["mine"]);
}

/// Anybody may write to the parent directory of the cache.
#[test]
fn no_cache_is_created_where_others_may_replace_it() {
    let machine = Machine::new(0);
    chmod(&machine.root, 0o777);
    assert!(machine.open().kernel(0).not_stored.is_some());
    assert!(!machine.user.exists());
    chmod(&machine.root, 0o755);
}

#[test]
fn a_file_in_the_directorys_place_is_left_alone() {
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    std::fs::write(&machine.user, b"a file").unwrap();
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert_eq!(cache.kernel(0).origin, Origin::Memory);
    assert_eq!(std::fs::read(&machine.user).unwrap(), b"a file");
    std::fs::remove_file(&machine.user).unwrap();
    symlink(&machine.user, &machine.user).unwrap();
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert_eq!(cache.kernel(0).origin, Origin::Memory);
}

#[test]
fn a_removed_directory_is_created_again() {
    let machine = machine();
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
    std::fs::remove_dir_all(&machine.user).unwrap();
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
    assert!(cache.warnings.texts().is_empty());
}

/// While a program keeps the file locked, there is one wait for all kernels.
#[test]
fn a_file_that_stays_locked_causes_one_wait() {
    const KERNELS: usize = 60;
    let machine = machine();
    let mut holder = OtherProgram::start(&machine.ukdb());
    holder.execute("BEGIN EXCLUSIVE");
    let (mut config, warnings) = machine.config();
    config.limits.busy_wait = Duration::from_secs(1);
    let cache = Cache::open((config, warnings));
    let began = Instant::now();
    for number in 0..KERNELS {
        let kernel = cache.kernel(number);
        assert_eq!(kernel.origin, Origin::Compiled);
        assert_eq!(reasons(&kernel.misses)[2], "user busy");
        assert!(matches!(kernel.not_stored, Some(NotStored::Failed(_))));
    }
    assert_eq!(cache.kernel(0).origin, Origin::Memory);
    assert_eq!(cache.warnings.classes(), [Busy], "once, though it is not stored either");
    // Three waits for each kernel would take three minutes, and one for each a
    // minute.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    assert!(took >= Duration::from_secs(1), "one call waited: {took:?}");
    holder.execute("COMMIT");
    holder.close();
    assert_eq!(cache.kernel(KERNELS).origin, Origin::Compiled);
    assert_eq!(cache.kernel(KERNELS).origin, Origin::User(machine.ukdb()), "it was stored");
    assert_eq!(machine.open().kernel(0).origin, Origin::User(machine.ukdb()), "nothing is moved");
}
