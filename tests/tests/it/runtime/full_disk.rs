//! A full disk, as a limit on the size of files.

use std::path::Path;

use gfxpack_runtime::{Origin, WarningClass};

use super::support::*;

#[test]
fn a_full_disk_loses_nothing() {
    // A user kdb with kernel 0 in it, the system's without.
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(numbered(999), object(999))]);
    assert_eq!(machine.open().kernel(0).origin, Origin::Compiled);
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
