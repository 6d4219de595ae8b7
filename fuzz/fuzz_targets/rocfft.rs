//! Any file as a kernel cache of rocFFT: opened, read through and verified
//! without a panic, within bounds, and without a change to the file or anything
//! beside it.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use gfxpack_rocfft::{CacheKey, Reader, check_row, verify};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static PATH: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("rocfft_kernel_cache.db");
    (dir, path)
});

fuzz_target!(|bytes: &[u8]| {
    let (dir, path) = &*PATH;
    fs::write(path, bytes).expect("written");

    let mut keys: Vec<CacheKey> = Vec::new();
    let (mut total, mut whole) = (0, false);
    match Reader::open(path) {
        Ok(reader) => {
            let read = reader.for_each_row(|key, code| {
                total += code.len();
                let _ = check_row(&key, &code);
                keys.push(key);
                Ok(())
            });
            whole = read.is_ok();
            assert!(total <= 256 * bytes.len(), "more than the bound");
            assert!(keys.is_sorted_by(|a, b| a < b), "out of order");
            for key in keys.iter().take(16) {
                assert!(matches!(reader.get(key), Ok(Some(_))), "listed, and yet not found");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }

    let report = verify(path, None).expect("a regular file is judged");
    if report.is_sound() {
        assert!(whole, "verified, and yet not readable");
        assert_eq!(report.rows, keys.len() as u64);
    }

    assert!(fs::read(path).expect("readable") == bytes, "the file was changed");
    let beside = fs::read_dir(dir.path()).expect("readable").count();
    assert_eq!(beside, 1, "something was left beside the file");
});
