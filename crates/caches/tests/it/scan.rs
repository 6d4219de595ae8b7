//! The entries that are found, with their size and age.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::time::Duration;

use gfxpack_caches::now;

use crate::support::User;

#[test]
fn databases_are_measured_with_their_companions() {
    let user = User::new();
    let dir = "home/.cache/pytools";
    let name = "pdict-v5-loopy-3.11.7.final.0.sqlite";
    user.write(&format!("{dir}/{name}"), "1234");
    user.write(&format!("{dir}/{name}-wal"), "123");
    user.write(&format!("{dir}/{name}-shm"), "12");
    user.write(&format!("{dir}/mine.sqlite"), "not of the cache");
    let [(directory, entry)] = &user.entries("pytools")[..] else { panic!("one database") };
    assert_eq!((entry.files, entry.bytes), (3, 9));
    assert_eq!(entry.companions.len(), 2);
    assert_eq!(directory.scan().expect("readable").others, 1);
}

#[test]
fn directories_are_measured_whole_and_without_following_links() {
    let user = User::new();
    user.write(
        "home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc",
        "12345",
    );
    user.write("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/f/f.so", "123");
    user.write("home/elsewhere", "a long text that is not counted");
    symlink(
        user.at("home/elsewhere"),
        user.at("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/link"),
    )
    .expect("made");
    let old = now() - Duration::from_secs(1000);
    for path in ["program.bc", "f/f.so"] {
        let file = File::options().write(true).open(
            user.at("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA").join(path),
        );
        file.and_then(|file| file.set_modified(old)).expect("stamped");
    }
    let [(_, entry)] = &user.entries("pocl")[..] else { panic!("one directory") };
    let link = user.at("home/elsewhere").as_os_str().len() as u64;
    assert_eq!((entry.files, entry.bytes), (3, 8 + link));
    assert!(entry.changed.expect("a time") > old, "the link is new");
}
