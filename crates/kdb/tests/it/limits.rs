//! A disk that is full, and a file larger than the memory that may be used.

use std::io;

use gfxpack_kdb::{Blob, Layout, Row, VerifyOptions, WriteError, WriteOptions, verify, write};
use gfxpack_model::KernelKey;

use crate::support::{
    GFX906, assert_peak_memory, child_path, code_object, kernels, key, listing, rows, run_child,
    write_kernels, written,
};

fn large(count: u64, size: usize) -> Vec<(KernelKey, Vec<u8>)> {
    let kernel = |n| {
        let args = format!(" -DN={n:06} -mcpu=gfx906");
        (key("large.cl.o", &args), code_object(GFX906, n, size, false))
    };
    (0..count).map(kernel).collect()
}

/// A limit on the size of files stands in for the disk: it needs no mount and
/// no privilege, and fails the same system call.
fn file_limit(bytes: u64) -> String {
    format!(
        "import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes}, {bytes}))"
    )
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let (directory, path) = written();
    let before = std::fs::read(&path).unwrap();
    assert!(before.len() < 1 << 20);
    run_child("limits::child_fills_the_disk", &file_limit(1 << 20), &path);
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(kernels().len(), 9);
}

#[test]
#[ignore = "the child of a_full_disk_leaves_what_was_there"]
fn child_fills_the_disk() {
    let path = child_path();
    // Just too large, so that the last write fails, and much too large.
    for count in [26, 27, 28, 200] {
        let kernels = large(count, 40_000);
        let object = |index: usize| io::Result::Ok(kernels[index].1.clone());
        let error = write(&path, &rows(&kernels), &WriteOptions::default(), object).unwrap_err();
        assert!(matches!(error, WriteError::Sqlite { .. }), "{error}");
        assert!(error.hint().contains("room"));
        assert_eq!(listing(path.parent().unwrap()), ["gfx906_60.kdb"]);
    }
}

/// So little that SQLite has written all of it by the time it commits, and the
/// file nothing: what fails is the last that is done before it is closed.
#[test]
fn a_disk_that_is_full_at_the_commit_leaves_what_was_there() {
    let (directory, path) = written();
    let before = std::fs::read(&path).unwrap();
    run_child("limits::child_has_no_room_to_commit", &file_limit(8 << 10), &path);
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
#[ignore = "the child of a_disk_that_is_full_at_the_commit_leaves_what_was_there"]
fn child_has_no_room_to_commit() {
    let path = child_path();
    for layout in [Layout::Miopen, Layout::Dense] {
        let kernels = large(1, 40_000);
        let object = |index: usize| io::Result::Ok(kernels[index].1.clone());
        let mut options = WriteOptions::default();
        options.layout = layout;
        let error = write(&path, &rows(&kernels), &options, object).unwrap_err();
        let WriteError::Sqlite { source, .. } = &error else { panic!("{error}") };
        let code = source.sqlite_error().unwrap().extended_code;
        assert_eq!(code, rusqlite::ffi::SQLITE_IOERR_WRITE, "{source}");
        assert_eq!(listing(path.parent().unwrap()), ["gfx906_60.kdb"]);
    }
}

/// Two files in the directory as writers leave them: one of a writer that
/// lives and holds its lock, one of a writer that was killed.
#[test]
fn what_a_killed_writer_left_goes_and_a_living_ones_stays() {
    let (directory, path) = written();
    let temp = |name: &str| directory.path().join(name);
    std::fs::write(temp(".gfx906_60.kdb.killed.tmp"), "half").unwrap();
    let living = std::fs::File::create(temp(".gfx906_60.kdb.living.tmp")).unwrap();
    living.lock().unwrap();
    std::fs::write(temp(".gfx90a.kdb.other.tmp"), "another kdb's").unwrap();
    write_kernels(&path, &kernels(), Blob::Auto);
    let left = [".gfx906_60.kdb.living.tmp", ".gfx90a.kdb.other.tmp", "gfx906_60.kdb"];
    assert_eq!(listing(directory.path()), left);
}

const OBJECT_BYTES: usize = 2 << 20;
const OBJECTS: u64 = 128;

/// The contract is on files of 2 GB; with 256 MiB of objects, one that holds
/// the file, or what comes out of it, is over the limit already.
#[test]
fn writing_and_verifying_need_less_memory_than_the_objects() {
    let directory = tempfile::tempdir().unwrap();
    for (name, large) in [("raw.kdb", true), ("small.kdb", false)] {
        let path = directory.path().join(name);
        run_child("limits::child_writes_much", "", &path);
        assert_eq!(path.metadata().unwrap().len() > 256 << 20, large);
        run_child("limits::child_verifies_much", "", &path);
    }
}

#[test]
#[ignore = "a child of writing_and_verifying_need_less_memory_than_the_objects"]
fn child_writes_much() {
    let path = child_path();
    let keys: Vec<_> = large(OBJECTS, 64).into_iter().map(|(key, _)| key).collect();
    let rows: Vec<Row<'_>> =
        keys.iter().map(|key| Row { key, size: OBJECT_BYTES as u64 }).collect();
    let mut options = WriteOptions::default();
    // Either large on disk, or small there and large in memory.
    let raw = path.ends_with("raw.kdb");
    options.blob = if raw { Blob::Raw } else { Blob::Auto };
    let object = |index: usize| {
        let noise = if raw { OBJECT_BYTES } else { 64 };
        let mut object = code_object(GFX906, index as u64, noise, false);
        object.resize(OBJECT_BYTES, 0);
        io::Result::Ok(object)
    };
    let written = write(&path, &rows, &options, object).unwrap();
    assert_eq!(written.raw_rows, if raw { OBJECTS } else { 0 });
    assert_peak_memory();
}

#[test]
#[ignore = "a child of writing_and_verifying_need_less_memory_than_the_objects"]
fn child_verifies_much() {
    let report = verify(&child_path(), None, &VerifyOptions::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.object_bytes, OBJECTS * OBJECT_BYTES as u64);
    assert_peak_memory();
}

#[test]
fn an_older_file_is_replaced_whole() {
    let (directory, path) = written();
    let reader = gfxpack_kdb::Reader::open(&path).unwrap();
    let newer = large(3, 500);
    write_kernels(&path, &newer, Blob::Auto);
    let (old_key, old_object) = kernels().remove(0);
    assert_eq!(reader.get(&old_key).unwrap(), Some(old_object), "an open reader keeps its file");
    let reader = gfxpack_kdb::Reader::open(&path).unwrap();
    assert_eq!(reader.get(&old_key).unwrap(), None);
    assert_eq!(reader.get(&newer[0].0).unwrap().as_ref(), Some(&newer[0].1));
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
}
