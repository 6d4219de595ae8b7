//! Files, and keys of many rows, larger than the memory limit.

use std::io;
use std::path::Path;

use gfxpack_kdb::{
    Blob, Conflict, CopyOptions, ReadError, Row, VerifyOptions, WriteOptions, diff, merge, verify,
    write,
};
use gfxpack_model::KernelKey;

use super::support::{GFX906, child_path, code_object, key, run_child};

const MEMORY_MIB: u64 = 100;

/// Peak resident memory of this process, as Linux counts it.
fn assert_peak_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib > 1024, "a number that means something");
    assert!(kib >> 10 < MEMORY_MIB, "{} MiB in memory", kib >> 10);
}

fn large(count: u64, size: usize) -> Vec<(KernelKey, Vec<u8>)> {
    let kernel = |n| {
        let args = format!(" -DN={n:06} -mcpu=gfx906");
        (key("large.cl.o", &args), code_object(GFX906, n, size, false))
    };
    (0..count).map(kernel).collect()
}

const OBJECT_BYTES: usize = 2 << 20;
const OBJECTS: u64 = 64;

/// The contract is on files of 2 GB; with 128 MiB of objects, one that holds
/// the file, or what comes out of it, is over the limit already.
#[test]
fn writing_and_verifying_need_less_memory_than_the_objects() {
    let directory = tempfile::tempdir().unwrap();
    for (name, large) in [("raw.kdb", true), ("small.kdb", false)] {
        let path = directory.path().join(name);
        run_child("kdb::large::child_process_writes_much", "", &path);
        assert_eq!(path.metadata().unwrap().len() > 128 << 20, large);
        run_child("kdb::large::child_process_verifies_much", "", &path);
    }
}

#[test]
#[ignore = "a child of writing_and_verifying_need_less_memory_than_the_objects"]
fn child_process_writes_much() {
    let path = child_path();
    let keys: Vec<_> = large(OBJECTS, 64).into_iter().map(|(key, _)| key).collect();
    let rows: Vec<Row<'_>> =
        keys.iter().map(|key| Row { key, size: OBJECT_BYTES as u64 }).collect();
    let mut options = WriteOptions::default();
    // Either large on disk, or small there and large in memory.
    let raw = path.ends_with("raw.kdb");
    options.blob = if raw { Blob::Raw } else { Blob::Smaller };
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
fn child_process_verifies_much() {
    let report = verify(&child_path(), None, &VerifyOptions::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.object_bytes, OBJECTS * OBJECT_BYTES as u64);
    assert_peak_memory();
}

/// Merging and comparing files larger than the memory they may take.
#[test]
fn merging_needs_less_memory_than_the_objects() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.kdb");
    let keys: Vec<KernelKey> =
        (0..OBJECTS).map(|n| key("large.cl.o", &format!(" -DN={n:03} -mcpu=gfx906"))).collect();
    let rows: Vec<_> =
        keys.iter().map(|key| gfxpack_kdb::Row { key, size: OBJECT_BYTES as u64 }).collect();
    let mut options = WriteOptions::default();
    options.blob = Blob::Raw;
    let object = |index: usize| {
        let mut object = code_object(GFX906, index as u64, 4096, false);
        object.resize(OBJECT_BYTES, index as u8);
        io::Result::Ok(object)
    };
    let written = write(&path, &rows, &options, object).unwrap();
    assert!(written.file_bytes > 128 << 20);
    run_child("kdb::large::child_process_works_on_much", "", &path);
}

#[test]
#[ignore = "the child of merging_needs_less_memory_than_the_objects"]
fn child_process_works_on_much() {
    let path = child_path();
    let beside = |name: &str| path.with_file_name(name);
    let options = CopyOptions::default();
    let inputs = [path.clone(), path.clone()];
    let merged = merge(&inputs, &beside("merged.kdb"), Conflict::Error, &options).unwrap();
    assert_eq!((merged.written.rows, merged.repeated), (OBJECTS, OBJECTS));
    assert_peak_memory();
    let found = diff(&path, &beside("merged.kdb"), |_| Ok::<_, ReadError>(())).unwrap();
    assert_eq!(found.same, OBJECTS);
    let same = |a: &Path, b: &Path| super::support::command("cmp").arg(a).arg(b).status().unwrap();
    assert!(same(&path, &beside("merged.kdb")).success());
    assert_peak_memory();
}

/// Their keys alone are larger than the limit.
const ROWS: u64 = 150_000;

/// A fifth of the rows are in both files.
#[test]
fn many_rows_are_merged_as_a_stream() {
    let directory = tempfile::tempdir().unwrap();
    for (name, first) in [("a.kdb", 0), ("b.kdb", 2 * ROWS / 5)] {
        let numbers = first..first + 3 * ROWS / 5;
        let keys: Vec<KernelKey> = numbers
            .map(|n| {
                key("many.cl.o", &format!(" -DN={n:07} {} -mcpu=gfx906", "-DX=1 ".repeat(120)))
            })
            .collect();
        let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 64 }).collect();
        let mut options = WriteOptions::default();
        options.blob = Blob::Raw;
        let object = |index| io::Result::Ok(code_object(GFX906, first + index as u64, 80, false));
        write(&directory.path().join(name), &rows, &options, object).unwrap();
    }
    run_child("kdb::large::child_process_merges_much", "", directory.path());
}

#[test]
#[ignore = "the child of many_rows_are_merged_as_a_stream"]
fn child_process_merges_much() {
    let directory = child_path();
    let inputs = ["a.kdb", "b.kdb"].map(|name| directory.join(name));
    let out = directory.join("out.kdb");
    let merged = merge(&inputs, &out, Conflict::First, &CopyOptions::default()).unwrap();
    assert_eq!((merged.written.rows, merged.repeated), (ROWS, ROWS / 5));
    assert_peak_memory();
}
