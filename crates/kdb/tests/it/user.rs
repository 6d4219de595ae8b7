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
    options.look_only = true;
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

/// More rows must go than one step's budget would do if each few of them were
/// looked for in the whole file.
#[test]
fn a_file_of_many_rows_makes_room_in_one_store() {
    const ROWS: usize = 40_000;
    const LIMIT: u64 = 1 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ukdb");
    let mut options = UserOptions::default();
    let object = code_object(GFX906, 1, 300, true);
    UserKdb::open(&path, &options).unwrap().store(&key("a.cl.o", ""), &object, 9, &[]).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    // What was used is spread over the file, and one entry's row is gone.
    let sql = format!(
        "PRAGMA synchronous = OFF; BEGIN;
        WITH RECURSIVE n(x) AS (VALUES (2) UNION ALL SELECT x + 1 FROM n LIMIT {ROWS})
        INSERT INTO kern_db SELECT x, 'b.cl.o', x, zeroblob(100), 'hash', 0 FROM n;
        INSERT INTO gfxpack_usage SELECT id, 1 + id * 7919 % 1000 FROM kern_db WHERE id > 1;
        UPDATE gfxpack_usage SET used = 5000 WHERE id % 1000 = 1;
        DELETE FROM kern_db WHERE id = 1001; COMMIT;"
    );
    connection.execute_batch(&sql).unwrap();
    connection.close().unwrap();
    let before = std::fs::metadata(&path).unwrap().len();
    assert!(before > 5 * LIMIT, "{before} bytes");
    options.limit_bytes = LIMIT;
    let mut kdb = UserKdb::open(&path, &options).unwrap();
    let stored = key("c.cl.o", "");
    let gone = kdb.store(&stored, &object, 9000, &[]).unwrap();
    assert!(gone > ROWS as u64 / 2, "{gone} rows went");
    assert_eq!(kdb.store(&key("d.cl.o", ""), &object, 9000, &[]).unwrap(), 0, "there is room");
    assert!(kdb.get(&stored).unwrap() == Some(object));
    drop(kdb);
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(after <= LIMIT, "{after} bytes");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let count = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap();
    let lately = "SELECT count(*) FROM kern_db JOIN gfxpack_usage USING (id) WHERE used = 5000";
    assert_eq!(count(lately), ROWS as i64 / 1000, "what was used lately stays");
    let left = "SELECT count(*) FROM gfxpack_usage WHERE id NOT IN (SELECT id FROM kern_db)";
    assert_eq!(count(left), 0, "uses go with their rows");
}
