use std::fs;
use std::path::Path;

use gfxpack_rocfft::{CacheKey, Reader, verify};

use crate::support::{code, key, rows, write_all};

/// Reads a file with any content. Everything that is returned must be in the undamaged file, except
/// for code objects, which have no checksum.
fn go_through(path: &Path, keys: &[CacheKey]) {
    let bytes = fs::read(path).unwrap();
    if let Ok(reader) = Reader::open(path) {
        let mut total = 0;
        let _ = reader.for_each_row(|_, code| {
            total += code.len();
            Ok(())
        });
        assert!(total <= bytes.len(), "{total}");
        for key in keys {
            let _ = reader.get(key);
        }
    }
    verify(path, None).unwrap();
    assert!(fs::read(path).unwrap() == bytes, "the file was changed");
}

#[test]
fn no_flipped_byte_makes_a_reader_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rocfft_kernel_cache.db");
    let rows: Vec<_> = (1..6).map(|n| (key(n), code(&key(n), 50))).collect();
    write_all(&path, &rows);
    let keys: Vec<_> = rows.into_iter().map(|(key, _)| key).collect();
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).filter(|at| whole[*at] != 0) {
        let mut bytes = whole.clone();
        bytes[at] ^= if at % 2 == 0 { 0xff } else { 1 };
        fs::write(&path, &bytes).unwrap();
        go_through(&path, &keys);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something was left beside the file");
}

#[test]
fn a_truncated_file_is_an_error_or_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rocfft_kernel_cache.db");
    let rows = rows();
    write_all(&path, &rows);
    let whole = fs::read(&path).unwrap();
    let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
    for length in (0..whole.len()).step_by(7000) {
        fs::write(&path, &whole[..length]).unwrap();
        go_through(&path, &keys);
        assert!(!verify(&path, None).unwrap().is_sound(), "{length}");
    }
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let check = |class: &str, expected: &str| {
        let error = Reader::open(&path).err().expect("refused");
        assert_eq!(error.to_string().replace(&*path.to_string_lossy(), "X"), expected);
        assert!(error.hint().is_some());
        let report = verify(&path, None).unwrap();
        assert!(report.findings[0].starts_with(&format!("{class}: ")), "{:?}", report.findings);
    };
    fs::write(&path, "x").unwrap();
    check("not-sqlite", "failed to read `X`: it is too small for an SQLite file");
    fs::write(&path, [0; 4096]).unwrap();
    check("not-sqlite", "failed to read `X`: it is no SQLite file");
    let schemas = [
        ("CREATE TABLE kern_db (a)", "CREATE TABLE kern_db (a)"),
        (
            "CREATE TABLE x (code BLOB); CREATE VIEW cache_v1 AS SELECT code FROM x",
            "CREATE TABLE x (code BLOB)",
        ),
        ("PRAGMA user_version = 1", "no cache_v1"),
    ];
    for (sql, found) in schemas {
        fs::remove_file(&path).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let text = "failed to read `X`: its schema is not that of a kernel cache: `FOUND`";
        check("schema", &text.replace("FOUND", found));
    }
    write_all(&path, &rows());
    let journal = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    fs::write(dir.path().join("x.db-journal"), journal).unwrap();
    check("not-sqlite", "failed to read `X`: a program that wrote to it did not finish");
    fs::remove_file(dir.path().join("x.db-journal")).unwrap();
    let wal = "PRAGMA journal_mode = WAL; DELETE FROM cache_v1";
    rusqlite::Connection::open(&path).unwrap().execute_batch(wal).unwrap();
    check("not-sqlite", "failed to read `X`: its journal mode is not `delete`");
    fs::remove_file(&path).unwrap();
    assert!(verify(&path, None).unwrap_err().io_kind().is_some());
}
