//! A full disk: a small file system, and a limit on file sizes.

use std::path::Path;

use gfxpack_runtime::{Origin, WarningClass};

use super::support::*;

/// A user kdb with kernel 0 in it, the system's without.
fn machine() -> Machine {
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    assert_eq!(machine.open().kernel(0).origin, Origin::Compiled);
    machine
}

/// A small tmpfs of the child's own, where this may be mounted.
#[test]
fn a_full_tmpfs_loses_nothing() {
    const MAY_NOT_MOUNT: i32 = 77;
    if !is_root() {
        // The other test of a full disk is for all users.
        return;
    }
    let machine = machine();
    let script = "mount -t tmpfs -o size=48k,mode=0700 none \"$0\" || exit 77; exec \"$@\"";
    let mut launcher = command("unshare");
    launcher.args(["--mount", "sh", "-c", script]).arg(&machine.user);
    launcher.arg(std::env::current_exe().unwrap());
    let (system, user) = (machine.system.to_str().unwrap(), machine.user.to_str().unwrap());
    with_test(&mut launcher, "runtime::full_disk::child_process_on_a_full_disk", &[system, user]);
    let output = run(&mut launcher);
    let printed = String::from_utf8_lossy(&output.stdout);
    let in_container = output.status.code() == Some(MAY_NOT_MOUNT);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(in_container || printed.contains("1 passed"), "{printed}{stderr}");
    assert_eq!(machine.open().kernel(0).origin, Origin::User(machine.ukdb()));
}

/// A disk that takes no more, as a limit on the size of files.
#[test]
fn a_full_disk_loses_nothing() {
    let machine = machine();
    // The shell counts blocks of 512 bytes.
    let blocks = (std::fs::metadata(machine.ukdb()).unwrap().len() + 4096) / 512;
    let mut launcher = command("/bin/sh");
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    launcher.arg("-c").arg(limit).arg(std::env::current_exe().unwrap());
    let (system, user) = (machine.system.to_str().unwrap(), machine.user.to_str().unwrap());
    with_test(&mut launcher, "runtime::full_disk::child_process_on_a_full_disk", &[system, user]);
    finish(spawn(&mut launcher));
    assert_whole(&machine.ukdb());
    let cache = machine.open();
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()), "what was there stays");
}

#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_on_a_full_disk() {
    let arguments = child_arguments();
    let user = gfxpack_runtime::UserDirectory::Dir((&arguments[1]).into());
    let cache = Cache::open(config(Path::new(&arguments[0]), user));
    let full: Vec<_> =
        (1..80).filter(|number| cache.kernel(*number).not_stored.is_some()).collect();
    assert!(full.len() > 10, "the disk is full: {full:?}");
    for number in full {
        assert_eq!(cache.kernel(number).origin, Origin::Memory, "it is not compiled again");
    }
    assert_eq!(cache.warnings.classes(), [WarningClass::NotStored], "{:?}", cache.warnings.texts());
    assert_whole(&Path::new(&arguments[1]).join(USER_NAME));
}
