//! The type for a user's kdb: what it creates, rejects and replaces.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use gfxpack_kdb::{
    DamagedKdb, KdbErrorKind, KdbSnapshot, ReadError, UserKdb, UserOptions, VerifyOptions, verify,
};
use gfxpack_model::KernelKey;
use rusqlite::Connection;

use crate::support::{GFX906, as_child, child_path, code_object, command, key, listing, run_child};

#[test]
fn a_new_file_is_a_kdb_that_only_its_user_can_read() {
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
fn keys_and_objects_that_no_kdb_accepts_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ukdb");
    let mut kdb = UserKdb::open(&path, &UserOptions::default()).unwrap();
    let mut check = |args: &str, object: &[u8], part: &str| {
        let error = kdb.store(&key("a.cl.o", args), object, 0, &[]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    check(" -DX='a'", b"x", "failed to take a kernel into the kdb");
    check(&"x".repeat(2 << 20), b"x", "its key has 2097158 bytes");
    check(" -DX", b"", "its code object has 0 bytes");
}

#[test]
fn look_only_creates_no_file_and_no_table() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ukdb");
    let mut options = UserOptions::default();
    options.look_only = true;
    assert_eq!(UserKdb::open(&path, &options).err().unwrap().kind(), KdbErrorKind::Absent);
    std::fs::write(&path, "").unwrap();
    assert_eq!(UserKdb::open(&path, &options).err().unwrap().kind(), KdbErrorKind::OtherTable);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}

/// A user's kdb with one kernel.
struct Stored {
    directory: tempfile::TempDir,
    path: PathBuf,
    key: KernelKey,
    object: Vec<u8>,
}

impl Stored {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ukdb");
        let (key, object) = (key("a.cl.o", " -mcpu=gfx906"), code_object(GFX906, 1, 3000, true));
        let mut kdb = UserKdb::open(&path, &UserOptions::default()).unwrap();
        kdb.store(&key, &object, 0, &[]).unwrap();
        Self { directory, path, key, object }
    }

    fn open(&self) -> Result<UserKdb, ReadError> {
        let mut options = UserOptions::default();
        options.busy = Duration::from_secs(1000);
        UserKdb::open(&self.path, &options)
    }

    /// Another program that has the file open in WAL mode, after it stored
    /// another kernel.
    fn in_wal_mode(&self) -> Connection {
        let other = Connection::open(&self.path).unwrap();
        let mode: String =
            other.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        let more = "INSERT OR REPLACE INTO kern_db SELECT id + 1, kernel_name, 'more', kernel_blob, \
                    kernel_hash, uncompressed_size FROM kern_db WHERE id = 1";
        other.execute_batch(more).unwrap();
        other
    }

    #[track_caller]
    fn assert_found(&self, found: Result<Option<Vec<u8>>, ReadError>) {
        assert!(found.unwrap().is_some_and(|found| found == self.object));
    }

    fn copy(&self) -> Result<KdbSnapshot, ReadError> {
        KdbSnapshot::take(&self.path, self.directory.path())
    }
}

#[test]
fn wal_mode_ends_when_nobody_else_has_the_file_open() {
    let stored = Stored::new();
    let early = stored.open().unwrap();
    let other = stored.in_wal_mode();
    // At once, however long the timeout for locks is.
    assert_eq!(early.get(&stored.key).unwrap_err().kind(), KdbErrorKind::Busy);
    assert_eq!(stored.open().err().unwrap().kind(), KdbErrorKind::Busy);
    assert_eq!(listing(stored.directory.path()), ["a.ukdb", "a.ukdb-shm", "a.ukdb-wal"]);
    drop((early, other));
    // A program that was killed leaves its log and shared memory.
    let killed = stored.in_wal_mode();
    let keep = stored.directory.path().join("keep");
    for suffix in ["-wal", "-shm"] {
        let name = format!("{}{suffix}", stored.path.display());
        std::fs::copy(&name, format!("{}{suffix}", keep.display())).unwrap();
    }
    std::fs::copy(&stored.path, &keep).unwrap();
    drop(killed);
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("{}{suffix}", stored.path.display());
        std::fs::rename(format!("{}{suffix}", keep.display()), name).unwrap();
    }
    let mut kdb = stored.open().unwrap();
    assert_eq!(listing(stored.directory.path()), ["a.ukdb"], "the log is written back");
    stored.assert_found(kdb.get(&key("a.cl.o", "more")));
    kdb.store(&key("a.cl.o", "third"), &stored.object, 0, &[]).unwrap();
    // A kdb that is already open leaves WAL mode in the same way, reading and
    // writing.
    for write in [true, false] {
        drop(stored.in_wal_mode());
        stored.assert_found(kdb.get(&stored.key));
        if write {
            kdb.store(&stored.key, &stored.object, 0, &[]).unwrap();
        }
        assert_eq!(listing(stored.directory.path()), ["a.ukdb"]);
        let mode: String = Connection::open(&stored.path)
            .unwrap()
            .query_row("PRAGMA journal_mode", (), |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "delete");
        let delete = "DELETE FROM kern_db WHERE kernel_args IN ('more', 'third')";
        Connection::open(&stored.path).unwrap().execute_batch(delete).unwrap();
    }
}

/// An idle connection keeps no lock that would make others wait.
#[test]
fn an_idle_kdb_blocks_nobody() {
    let stored = Stored::new();
    let mut kdb = stored.open().unwrap();
    let exclusive = || {
        let other = Connection::open(&stored.path).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE; COMMIT").unwrap();
    };
    exclusive();
    kdb.get(&stored.key).unwrap();
    exclusive();
    kdb.get(&key("absent", "")).unwrap();
    exclusive();
    kdb.store(&key("b", ""), &stored.object, 0, &[]).unwrap();
    exclusive();
    kdb.note_use(&[(stored.key.clone(), 7)]).unwrap();
    exclusive();
}

#[test]
fn a_snapshot_contains_the_log() {
    let stored = Stored::new();
    let error = stored.copy().err().unwrap();
    assert_eq!(error.kind(), KdbErrorKind::Absent, "there is no log: {error}");
    let other = stored.in_wal_mode();
    let before = listing(stored.directory.path());
    let live = stored.copy().unwrap();
    assert_eq!(listing(stored.directory.path()), before, "the copy's names are gone");
    stored.assert_found(live.get(&stored.key));
    stored.assert_found(live.get(&key("a.cl.o", "more")));
    assert_eq!(live.get(&key("a.cl.o", "later")).unwrap(), None);
    assert!(live.is_current());
    other.execute_batch("UPDATE kern_db SET kernel_args = 'later' WHERE id = 2").unwrap();
    assert!(!live.is_current());
    stored.assert_found(stored.copy().unwrap().get(&key("a.cl.o", "later")));
    // The other program does not notice.
    let log = format!("{}-wal", stored.path.display());
    let size = std::fs::metadata(&log).unwrap().len();
    File::options().write(true).open(&log).unwrap().set_len(300 << 20).unwrap();
    let error = stored.copy().err().unwrap();
    assert_eq!(error.kind(), KdbErrorKind::Journal, "{error}");
    File::options().write(true).open(&log).unwrap().set_len(size).unwrap();
    other.execute_batch("PRAGMA integrity_check").unwrap();
}

#[test]
fn only_damaged_bytes_are_confirmed_as_damaged() {
    let stored = Stored::new();
    let options = UserOptions::default();
    let fails = |key: &KernelKey, kdb: Result<UserKdb, ReadError>| {
        kdb.and_then(|kdb| kdb.get(key)).is_err_and(|error| error.kind() == KdbErrorKind::Corrupt)
    };
    let confirm =
        || DamagedKdb::confirm(&stored.path, &options, |kdb| fails(&stored.key, kdb)).unwrap();
    assert!(confirm().is_none(), "it is whole");
    // The check works in memory, and leaves the file unchanged.
    let before = std::fs::read(&stored.path).unwrap();
    let store = |kdb: Result<UserKdb, ReadError>| {
        let mut kdb = kdb.unwrap();
        kdb.store(&key("b", ""), &stored.object, 0, &[]).unwrap();
        stored.assert_found(kdb.get(&key("b", "")));
        false
    };
    assert!(DamagedKdb::confirm(&stored.path, &options, store).unwrap().is_none());
    assert!(std::fs::read(&stored.path).unwrap() == before);
    // The same at rest in WAL mode.
    let mode = |mode: &str| {
        let other = Connection::open(&stored.path).unwrap();
        other.query_row(&format!("PRAGMA journal_mode = {mode}"), (), |_| Ok(())).unwrap();
        other
    };
    drop(mode("wal"));
    assert!(confirm().is_none());

    let mut holder = command(std::env::current_exe().unwrap());
    as_child(&mut holder, "user::child_process_holds_a_file", &stored.path);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == HELD));
    let used = DamagedKdb::confirm(&stored.path, &options, |_| true).unwrap_err();
    let source = std::error::Error::source(&used).unwrap().downcast_ref::<std::io::Error>();
    assert_eq!(source.unwrap().kind(), std::io::ErrorKind::WouldBlock, "somebody has it open");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    drop(mode("delete"));

    for (at, byte) in [(0, b'x'), (100, 0xff), (4096, 0xff)] {
        let mut bytes = before.clone();
        bytes[at..].fill(byte);
        std::fs::write(&stored.path, &bytes).unwrap();
        let damaged = confirm().unwrap_or_else(|| panic!("damaged at {at}"));
        // The file stays locked for others meanwhile.
        run_child("user::child_process_finds_a_file_locked", "", &stored.path);
        drop(damaged);
    }
}

/// Printed by the child process once it holds the file.
const HELD: &str = "the file is held";

#[test]
#[ignore = "the child of only_damaged_bytes_are_confirmed_as_damaged"]
fn child_process_holds_a_file() {
    let db = Connection::open(child_path()).unwrap();
    let mode = "PRAGMA journal_mode = WAL";
    assert_eq!(db.query_row(mode, (), |row| row.get::<_, String>(0)).unwrap(), "wal");
    let count = "SELECT count(*) FROM kern_db";
    assert_eq!(db.query_row(count, (), |row| row.get::<_, i64>(0)).unwrap(), 1);
    // On its own line, whatever the test harness has printed before.
    std::io::stdout().write_all(format!("\n{HELD}\n").as_bytes()).unwrap();
    // Waits until the other end is closed.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
#[ignore = "the child of only_damaged_bytes_are_confirmed_as_damaged"]
fn child_process_finds_a_file_locked() {
    let db = Connection::open(child_path()).unwrap();
    db.busy_timeout(Duration::ZERO).unwrap();
    let error = db.query_row("SELECT count(*) FROM kern_db", (), |_| Ok(())).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "{error}");
}

/// More rows must be deleted than one step's budget allows if the whole file
/// were scanned for each few of them.
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
    // The used rows are spread over the file, and one entry has no row.
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
    assert!(gone > ROWS as u64 / 2, "{gone} rows were deleted");
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

/// A kdb beside the journal of a transaction that was cut off.
fn with_hot_journal(path: &std::path::Path, key: &KernelKey) {
    let beside = |path: &std::path::Path| PathBuf::from(format!("{}-journal", path.display()));
    let original = path.with_extension("original");
    let mut kdb = UserKdb::open(&original, &UserOptions::default()).unwrap();
    kdb.store(key, &code_object(GFX906, 1, 3000, true), 7, &[]).unwrap();
    drop(kdb);
    let connection = Connection::open(&original).unwrap();
    // Pages are written before the transaction ends.
    connection.execute_batch("PRAGMA cache_size = 1; BEGIN").unwrap();
    let fill = "INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, kernel_hash, \
        uncompressed_size) SELECT 'b.cl.o', value, zeroblob(9000), '', 1 \
        FROM json_each('[1,2,3,4,5,6,7,8,9]')";
    connection.execute(fill, ()).unwrap();
    std::fs::copy(&original, path).unwrap();
    std::fs::copy(beside(&original), beside(path)).unwrap();
}

#[test]
fn many_roll_back_the_same_journal_without_waiting_for_each_other() {
    const ROUNDS: usize = 25;
    const THREADS: usize = 8;
    let directory = tempfile::tempdir().unwrap();
    let key = key("a.cl.o", " -DX");
    let mut options = UserOptions::default();
    options.busy = Duration::from_secs(60);
    for round in 0..ROUNDS {
        let path = directory.path().join(format!("{round}.ukdb"));
        with_hot_journal(&path, &key);
        let barrier = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    barrier.wait();
                    let kdb = UserKdb::open(&path, &options).unwrap();
                    assert!(kdb.get(&key).unwrap().is_some());
                });
            }
        });
        assert!(!PathBuf::from(format!("{}-journal", path.display())).exists());
    }
}
