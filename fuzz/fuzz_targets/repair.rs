//! Any file as a damaged kdb: what is saved is sound, nothing is both saved and
//! lost, and the file stays as it was.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use gfxpack_kdb::{CopyOptions, ReadError, Reader, repair};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// Below what the fuzzer may use in all, so that memory that grows past the
/// limit asked for shows.
const MAX_OBJECT_BYTES: u64 = 1 << 20;

static PATH: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    // Threads of its own would make runs differ.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("no other pool");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("gfx906_60.kdb");
    (dir, path)
});

fuzz_target!(|bytes: &[u8]| {
    let (dir, path) = &*PATH;
    fs::write(path, bytes).expect("written");
    let out = dir.path().join("repaired.kdb");
    fs::remove_file(&out).ok();

    let mut options = CopyOptions::default();
    options.max_object_bytes = MAX_OBJECT_BYTES;
    let mut lost = Vec::new();
    let mut unnamed = 0;
    let result = repair(path, &out, &options, |row| {
        assert!(!row.reason.is_empty() && row.key.is_some() != row.page.is_some());
        match &row.key {
            Some(key) => lost.push(key.clone()),
            None => unnamed += 1,
        }
    });
    assert!(fs::read(path).expect("readable") == bytes, "the file was changed");
    let Ok(repaired) = result else {
        assert!(!out.exists(), "a failed repair left something");
        return;
    };
    assert_eq!(repaired.lost, lost.len() as u64 + unnamed);

    let saved = Reader::open(&out).expect("what is written can be read");
    let mut rows = 0;
    saved
        .for_each_kernel(|record| {
            assert!(record.code_object.len() as u64 <= MAX_OBJECT_BYTES);
            assert!(lost.binary_search(&record.key).is_err(), "saved and lost at once");
            rows += 1;
            Ok::<_, ReadError>(())
        })
        .expect("every row that is saved is whole");
    assert_eq!(rows, repaired.written.rows);
});
