//! Opens SQLite files that others may have written: handles the files beside
//! them, restricts what SQLite may do with them, and limits the time of each
//! step. With the feature `write`, also writes files completely or not at all.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("a.db");
//! # let made = rusqlite::Connection::open(&path)?;
//! # made.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2);")?;
//! # drop(made);
//! use gfxpack_sqlite::{StepBudget, harden, open, unplayed_journal};
//!
//! assert_eq!(unplayed_journal(&path), None);
//! let mut connection = open(&path, true)?;
//! harden(&connection, 1 << 20)?;
//! let budget = StepBudget::for_file(&mut connection, path.metadata()?.len())?;
//! budget.renew();
//! let count: i64 = connection.query_row("SELECT count(*) FROM t", (), |row| row.get(0))?;
//! assert_eq!(count, 2);
//! assert!(connection.execute("DELETE FROM t", ()).is_err());
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "write")]
mod new_file;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

#[cfg(feature = "write")]
pub use self::new_file::{NewFile, NewFileError};

/// The first bytes of every SQLite file.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The first bytes of a rollback journal that must be played back.
/// `journal_mode=PERSIST` overwrites them with zeros when the transaction is
/// done.
///
/// Source: SQLite, "Database File Format", section 3.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// The path of a companion file that SQLite keeps beside this one.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The write-ahead log beside a file, if it is not empty.
pub fn filled_log(path: &Path) -> Option<PathBuf> {
    let log = beside(path, "-wal");
    fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 0).then_some(log)
}

/// The rollback journal beside a file if it must be played back. Until then the
/// file holds part of a transaction.
pub fn unplayed_journal(path: &Path) -> Option<PathBuf> {
    // The journal is named after the file, not after a link to it.
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let real = is_link.then(|| fs::canonicalize(path).ok()).flatten();
    let journal = beside(real.as_deref().unwrap_or(path), "-journal");
    // Only a regular file is opened: opening a pipe would block.
    if !fs::metadata(&journal).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
        return None;
    }
    let mut first = Vec::new();
    let length = JOURNAL_MAGIC.len() as u64;
    match File::open(&journal).and_then(|file| file.take(length).read_to_end(&mut first)) {
        Ok(_) if first != JOURNAL_MAGIC => None,
        // A journal that can't be read still counts.
        _ => Some(journal),
    }
}

/// Opens a connection that can only read. The path must be absolute.
///
/// With `immutable` SQLite neither locks, nor looks for or creates anything
/// beside the file, so a read-only directory is sufficient.
///
/// Source: SQLite, "Uniform Resource Identifiers", sections 3.1 and 3.3.
pub fn open(path: &Path, immutable: bool) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let uri = uri(path, if immutable { "immutable=1" } else { "mode=ro" });
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A file's URI with parameters. The path must be absolute.
pub fn uri(path: &Path, parameters: &str) -> String {
    /// Characters to encode in the path.
    const ENCODED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), ENCODED);
    format!("file://{path}?{parameters}")
}

/// Makes SQLite trust nothing in the file, and accept no value of more bytes.
pub fn harden(connection: &Connection, max_value_bytes: u64) -> Result<(), Error> {
    let largest = i32::try_from(max_value_bytes).unwrap_or(i32::MAX);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, largest)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)
}

/// SQLite instructions per tick. The budget is checked after each tick.
const TICK_OPERATIONS: i32 = 1000;
/// Ticks that one step of a query may take in an unchanging file, plus one for
/// every [`BYTES_PER_TICK`] bytes: much more than a lookup of a key takes.
const TICKS_AT_REST: u64 = 1000;
/// Bytes of a file that can be read within one tick: some twenty of the
/// shortest rows, each in the table and in the index.
const BYTES_PER_TICK: u64 = 1 << 10;

/// How many instructions SQLite may still spend on the current step. In a
/// hostile file a tree may never lead to a next row.
pub struct StepBudget {
    /// Ticks of each step.
    ticks: u64,
    left: Arc<AtomicU64>,
}

impl StepBudget {
    /// Sets the connection's progress handler, which ends a step when its
    /// budget is spent.
    pub fn install(connection: &mut Connection, ticks: u64) -> Result<Self, Error> {
        let left = Arc::new(AtomicU64::new(ticks));
        let budget = Self { ticks, left: Arc::clone(&left) };
        let is_over = move || {
            let before = left.load(Ordering::Relaxed);
            left.store(before.saturating_sub(1), Ordering::Relaxed);
            before == 0
        };
        connection.progress_handler(TICK_OPERATIONS, Some(is_over))?;
        Ok(budget)
    }

    /// As [`Self::install`], for an unchanging file of that many bytes: no step
    /// takes longer than reading all of it once.
    pub fn for_file(connection: &mut Connection, bytes: u64) -> Result<Self, Error> {
        Self::install(connection, TICKS_AT_REST + bytes / BYTES_PER_TICK)
    }

    /// Whether the error means that a budget is spent.
    pub fn is_over(error: &Error) -> bool {
        error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
    }

    /// Gives the next step its full budget.
    pub fn renew(&self) {
        self.renew_to_read(0);
    }

    /// Gives the next step its full budget, plus enough to read that many bytes
    /// of the file.
    pub fn renew_to_read(&self, bytes: u64) {
        self.left.store(self.ticks + bytes / BYTES_PER_TICK, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_of_a_step_are_limited() {
        let mut connection = Connection::open_in_memory().unwrap();
        let budget = StepBudget::install(&mut connection, 20).unwrap();
        let count = |rows: u32| {
            let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?1)
                SELECT count(*) FROM n";
            connection.query_row(sql, [rows], |row| row.get::<_, u32>(0))
        };
        assert_eq!(count(500), Ok(500));
        let error = count(100_000).unwrap_err();
        assert!(StepBudget::is_over(&error), "{error}");
        // A large file has a larger budget.
        budget.renew_to_read(10_000 * BYTES_PER_TICK);
        assert_eq!(count(100_000), Ok(100_000));
        // Only the step has ended; the file can still be used.
        budget.renew();
        assert_eq!(count(500), Ok(500));
    }

    #[test]
    fn every_path_can_be_written_as_a_uri() {
        let uri = |path: &str| uri(Path::new(path), "immutable=1");
        assert_eq!(uri("/a/gfx906_60.kdb"), "file:///a/gfx906_60.kdb?immutable=1");
        assert_eq!(
            uri("/a b/50%?x=1#é.kdb"),
            "file:///a%20b/50%25%3Fx%3D1%23%C3%A9.kdb?immutable=1"
        );
    }
}
