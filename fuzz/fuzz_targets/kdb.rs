//! Any file as a kdb: opened, read through and verified without a panic, and
//! without a change to the file or anything beside it.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use gfxpack_kdb::{ReadError, Reader, VerifyOptions, verify};
use gfxpack_model::KernelKey;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

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

    let mut keys: Vec<KernelKey> = Vec::new();
    let mut whole = false;
    match Reader::open(path) {
        Ok(reader) => {
            let read = reader.for_each_kernel(|record| {
                keys.push(record.key);
                Ok::<_, ReadError>(())
            });
            whole = read.is_ok();
            let _ = reader.info();
            for key in keys.iter().take(16) {
                let _ = reader.get(key);
            }
            let absent = reader.get(&KernelKey::for_source("absent.cl", "", "gfx906"));
            assert!(!matches!(absent, Ok(Some(_))), "a key that is not there is found");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }

    let report = verify(path, None, &VerifyOptions::default()).expect("a regular file is judged");
    if report.is_sound() {
        assert!(whole, "verified, and yet not readable");
        assert_eq!(report.rows, keys.len() as u64);
    }

    assert!(fs::read(path).expect("readable") == bytes, "the file was changed");
    let beside = fs::read_dir(dir.path()).expect("readable").count();
    assert_eq!(beside, 1, "something was left beside the file");
});
