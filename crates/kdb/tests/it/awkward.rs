//! Files that other programs made or left unfinished: no row is lost silently,
//! and the messages help.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{
    Blob, Conflict, CopyOptions, FindingClass, KdbErrorKind, Reader, VerifyOptions, merge, verify,
};
use gfxpack_model::{ErrorKind, in_full};

use crate::support::{kernels, listing, write_kernels, written};

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An unfinished write, as SQL.
const HALF: &str = "PRAGMA cache_size = 1; BEGIN;
    UPDATE kern_db SET kernel_blob = zeroblob(9000), kernel_name = kernel_name || id";

/// Leaves the file and its journal like a program that is killed in the middle
/// of a transaction that has reached the file.
fn die_during_a_transaction(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(HALF).unwrap();
    let files = [path.to_owned(), beside(path, "-journal")];
    let left = files.each_ref().map(|file| std::fs::read(file).unwrap());
    connection.execute_batch("ROLLBACK").unwrap();
    drop(connection);
    for (file, bytes) in files.iter().zip(left) {
        std::fs::write(file, bytes).unwrap();
    }
}

#[test]
fn an_unfinished_transaction_is_reported_and_left_for_sqlite_to_undo() {
    let (directory, path) = written();
    let before = std::fs::read(&path).unwrap();
    die_during_a_transaction(&path);
    assert!(std::fs::read(&path).unwrap() != before, "part of the write is in the file");
    let journal = beside(&path, "-journal");
    let link = directory.path().join("link.kdb");
    std::os::unix::fs::symlink("gfx906_60.kdb", &link).unwrap();
    let out = directory.path().join("out.kdb");
    for path in [&path, &link] {
        let error = Reader::open(path).err().unwrap();
        assert_eq!(error.kind(), KdbErrorKind::Unfinished, "{error}");
        assert!(error.to_string().contains("gfx906_60.kdb-journal` has what"), "{error}");
        assert!(error.hint().contains("sqlite3"), "{}", error.hint());
        let options = CopyOptions::default();
        let error = merge(std::slice::from_ref(path), &out, Conflict::Error, &options).unwrap_err();
        assert!(error.to_string().contains("gfx906_60.kdb-journal` has what"), "{error}");
        let report = verify(path, None, &VerifyOptions::default()).unwrap();
        assert_eq!(report.findings[0].class, FindingClass::Journal);
        assert_eq!(report.total_findings(), 1, "{:?}", report.findings);
    }
    // What the hint tells the user to run.
    let mend = "SELECT count(*) FROM sqlite_schema";
    let mended = rusqlite::Connection::open(&path).unwrap();
    let entries: i64 = mended.query_row(mend, (), |row| row.get(0)).unwrap();
    assert_eq!(entries, 2);
    drop(mended);
    assert!(std::fs::read(&path).unwrap() == before && !journal.exists());
    Reader::open(&path).unwrap();
}

#[test]
fn a_journal_of_a_finished_transaction_is_ignored() {
    let (_directory, path) = written();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sql = format!("PRAGMA journal_mode = PERSIST; {HALF}; ROLLBACK");
    connection.execute_batch(&sql).unwrap();
    drop(connection);
    assert!(std::fs::metadata(beside(&path, "-journal")).unwrap().len() > 0);
    Reader::open(&path).unwrap();
    assert!(verify(&path, None, &VerifyOptions::default()).unwrap().is_sound());
}

#[test]
fn a_key_that_no_kdb_accepts_is_reported_with_its_file() {
    let (directory, path) = written();
    let sql = "UPDATE kern_db SET kernel_args = ' -DX=''a'' -mcpu=gfx906' WHERE id = 4";
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let other = directory.path().join("other.kdb");
    write_kernels(&other, &kernels(), Blob::Smaller);
    let out = directory.path().join("out.kdb");
    let error =
        merge(&[other, path.clone()], &out, Conflict::First, &CopyOptions::default()).unwrap_err();
    assert!(error.to_string().contains("gfx906_60.kdb"), "{error}");
    assert!(in_full(&error).contains("-DX='a'"), "{error:?}");
    assert!(!out.exists());
}

#[test]
fn cancelling_ends_the_work() {
    let (directory, path) = written();
    let out = directory.path().join("out.kdb");
    let cancelled = || true;
    let mut options = CopyOptions::default();
    options.cancelled = Some(&cancelled);
    let error = merge(std::slice::from_ref(&path), &out, Conflict::Error, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
    let mut options = VerifyOptions::default();
    options.cancelled = Some(&cancelled);
    let error = verify(&path, None, &options).unwrap_err();
    assert!(error.to_string().ends_with("to its end: interrupted"), "{error}");
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"], "nothing is left behind");
}
