//! A user's kdb through its own type: what it makes, refuses and replaces.

use std::os::unix::fs::PermissionsExt as _;

use gfxpack_kdb::{Fault, UserKdb, UserOptions, VerifyOptions, WriteError, verify};

use crate::support::{GFX906, code_object, key, listing};

#[test]
fn a_new_file_is_the_users_alone_and_a_kdb() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.ukdb");
    let mut kdb = UserKdb::open(&path, &UserOptions::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let key = key("a.cl.o", " -DX -mcpu=gfx906");
    for seed in [1, 2] {
        let object = code_object(GFX906, seed, 3000, true);
        assert_eq!(kdb.store(&key, &object, 7, &[]).unwrap(), 0);
        assert!(kdb.get(&key).unwrap() == Some(object), "replaced by the second");
    }
    drop(kdb);
    assert_eq!(listing(directory.path()), ["gfx906_60.ukdb"], "no journal is left");
    let target = "gfx906@60".parse().unwrap();
    let report = verify(&path, Some(&target), &VerifyOptions::default()).unwrap();
    assert!(report.is_sound() && report.rows == 1, "{:?}", report.findings);
}

#[test]
fn what_no_kdb_takes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ukdb");
    let mut kdb = UserKdb::open(&path, &UserOptions::default()).unwrap();
    let mut fault = |args: &str, object: &[u8]| -> WriteError {
        kdb.store(&key("a.cl.o", args), object, 0, &[]).unwrap_err()
    };
    assert!(matches!(fault(" -DX='a'", b"x"), WriteError::Key(_)));
    assert!(matches!(fault(&"x".repeat(2 << 20), b"x"), WriteError::KeyTooLong { .. }));
    let error = fault(" -DX", b"");
    assert!(matches!(error, WriteError::ObjectSize { size: 0, .. }));
    assert_eq!(error.fault(), Fault::Input);
}

#[test]
fn without_leave_nothing_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ukdb");
    let mut options = UserOptions::default();
    options.create = false;
    assert_eq!(UserKdb::open(&path, &options).err().unwrap().fault(), Fault::Absent);
    std::fs::write(&path, "").unwrap();
    assert_eq!(UserKdb::open(&path, &options).err().unwrap().fault(), Fault::Schema);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}

#[test]
fn a_write_ahead_log_is_left_where_it_may_not_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ukdb");
    let key = key("a.cl.o", " -mcpu=gfx906");
    let object = code_object(GFX906, 1, 300, true);
    UserKdb::open(&path, &UserOptions::default()).unwrap().store(&key, &object, 0, &[]).unwrap();
    let mode = |sql: &str| -> String {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.query_row(sql, (), |row| row.get(0)).unwrap()
    };
    assert_eq!(mode("PRAGMA journal_mode = WAL"), "wal");
    let local = UserKdb::open(&path, &UserOptions::default()).unwrap();
    assert!(local.get(&key).unwrap() == Some(object.clone()));
    drop(local);
    assert_eq!(mode("PRAGMA journal_mode"), "wal", "where it may be, it stays");
    let mut options = UserOptions::default();
    options.wal = false;
    let remote = UserKdb::open(&path, &options).unwrap();
    assert!(remote.get(&key).unwrap() == Some(object));
    drop(remote);
    assert_eq!(mode("PRAGMA journal_mode"), "delete");
}
