//! A full disk, and the files that writers leave there.

use std::io;

use gfxpack_kdb::{Blob, WriteOptions, write};
use gfxpack_model::KernelKey;

use crate::support::{
    GFX906, child_path, code_object, kernels, key, listing, mkfifo, rows, run_child, write_kernels,
    written,
};

fn large(count: u64, size: usize) -> Vec<(KernelKey, Vec<u8>)> {
    let kernel = |n| {
        let args = format!(" -DN={n:06} -mcpu=gfx906");
        (key("large.cl.o", &args), code_object(GFX906, n, size, false))
    };
    (0..count).map(kernel).collect()
}

/// A limit on the size of files takes the place of a full disk: it needs no
/// mount and no privilege, and fails the same system call.
fn file_limit(bytes: u64) -> String {
    // The shell counts blocks of 512 bytes.
    format!("trap '' XFSZ; ulimit -f {}", bytes / 512)
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let (directory, path) = written();
    let before = std::fs::read(&path).unwrap();
    assert!(before.len() < 1 << 20);
    run_child("limits::child_process_fills_the_disk", &file_limit(1 << 20), &path);
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(kernels().len(), 9);
}

#[test]
#[ignore = "the child of a_full_disk_leaves_the_old_file"]
fn child_process_fills_the_disk() {
    let path = child_path();
    // Slightly too large, so that the last write fails, and far too large.
    for count in [26, 27, 28, 200] {
        let kernels = large(count, 40_000);
        let object = |index: usize| io::Result::Ok(kernels[index].1.clone());
        let error = write(&path, &rows(&kernels), &WriteOptions::default(), object).unwrap_err();
        assert!(error.cause::<rusqlite::Error>().is_some(), "{error}");
        assert!(error.hint().unwrap().contains("room"));
        assert_eq!(listing(path.parent().unwrap()), ["gfx906_60.kdb"]);
    }
}

/// The rows are so few that SQLite writes everything during the commit, so the
/// last operation before closing fails.
#[test]
fn a_disk_that_is_full_at_the_commit_leaves_the_old_file() {
    let (directory, path) = written();
    let before = std::fs::read(&path).unwrap();
    run_child("limits::child_process_has_no_room_to_commit", &file_limit(8 << 10), &path);
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
#[ignore = "the child of a_disk_that_is_full_at_the_commit_leaves_the_old_file"]
fn child_process_has_no_room_to_commit() {
    let path = child_path();
    let kernels = large(1, 40_000);
    let object = |index: usize| io::Result::Ok(kernels[index].1.clone());
    let error = write(&path, &rows(&kernels), &WriteOptions::default(), object).unwrap_err();
    let source = error.cause::<rusqlite::Error>().unwrap();
    let code = source.sqlite_error().unwrap().extended_code;
    assert_eq!(code, rusqlite::ffi::SQLITE_IOERR_WRITE, "{source}");
    assert_eq!(listing(path.parent().unwrap()), ["gfx906_60.kdb"]);
}

/// Files as writers leave them: one of a running writer that holds its
/// lock, one of a writer that was killed; and others that look alike.
#[test]
fn files_of_killed_writers_are_removed_and_those_of_running_ones_kept() {
    let (directory, path) = written();
    let temp = |name: &str| directory.path().join(name);
    std::fs::write(temp(".gfx906_60.kdb.killed.tmp"), "half").unwrap();
    std::fs::write(temp(".gfx906_60.kdb.my-own.tmp"), "mine").unwrap();
    mkfifo(&temp(".gfx906_60.kdb.aPipe7.tmp"));
    let living = std::fs::File::create(temp(".gfx906_60.kdb.living.tmp")).unwrap();
    living.lock().unwrap();
    std::fs::write(temp(".gfx90a.kdb.other.tmp"), "another kdb's").unwrap();
    write_kernels(&path, &kernels(), Blob::Smaller);
    let left =
        ["aPipe7.tmp", "living.tmp", "my-own.tmp"].map(|end| format!(".gfx906_60.kdb.{end}"));
    let others = [".gfx90a.kdb.other.tmp", "gfx906_60.kdb"].map(str::to_owned);
    assert_eq!(listing(directory.path()), [&left[..], &others].concat());
}

#[test]
fn an_older_file_is_replaced_whole() {
    let (directory, path) = written();
    let reader = gfxpack_kdb::Reader::open(&path).unwrap();
    let newer = large(3, 500);
    write_kernels(&path, &newer, Blob::Smaller);
    let (old_key, old_object) = kernels().remove(0);
    assert_eq!(reader.get(&old_key).unwrap(), Some(old_object), "an open reader keeps its file");
    let reader = gfxpack_kdb::Reader::open(&path).unwrap();
    assert_eq!(reader.get(&old_key).unwrap(), None);
    assert_eq!(reader.get(&newer[0].0).unwrap().as_ref(), Some(&newer[0].1));
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
}
