//! Opening a file of unknown origin: what is checked before SQLite sees it,
//! and what SQLite may not do with it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::ReadError;
use crate::header::{HEADER_BYTES, Header};
use crate::holes;
use crate::schema::{MAX_KEY_BYTES, MIN_FILE_BYTES};

/// SQLite instructions per tick, after which the budget is checked.
const TICK_OPERATIONS: i32 = 1000;
/// Ticks that one step of a query may take in a file that stays as it is, besides one for [`BYTES_PER_TICK`]:
/// much more than looking up a key takes.
const TICKS_AT_REST: u64 = 1000;
/// Bytes of a file that one tick is enough to look at: some twenty rows of the
/// shortest, each looked at in the table and in the index.
const BYTES_PER_TICK: u64 = 1 << 10;
/// Arguments of a function in the file's schema. Those with two can take time
/// that grows with the product of their lengths, and SQLite can't be stopped
/// within one.
const MAX_FUNCTION_ARGUMENTS: i32 = 1;
/// Page cache of one connection, in KiB.
const CACHE_KIB: i32 = 4096;

/// What is known of a file before SQLite opens it.
pub(crate) struct Probe {
    pub(crate) header: Header,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// Bytes that are stored: its size without its holes.
    pub(crate) data_bytes: u64,
}

/// Checks a file before SQLite opens it.
///
/// # Errors
/// [`ReadError::Io`], [`ReadError::NotAFile`], [`ReadError::TooSmall`],
/// [`ReadError::NotSqlite`] or [`ReadError::Unfinished`].
pub(crate) fn probe(path: &Path) -> Result<Probe, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    // Asked before opening: a pipe without writer would block.
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    let mut file = File::open(path).map_err(io)?;
    let bytes = metadata.len();
    if bytes < MIN_FILE_BYTES {
        return Err(ReadError::TooSmall { path: path.to_owned(), size: bytes });
    }
    let mut first = [0; HEADER_BYTES];
    file.read_exact(&mut first).map_err(io)?;
    let header =
        Header::parse(&first).ok_or_else(|| ReadError::NotSqlite { path: path.to_owned() })?;
    check_journal(path)?;
    Ok(Probe { header, bytes, data_bytes: holes::data_bytes(&file, bytes).map_err(io)? })
}

/// The path of a file that SQLite keeps beside this one.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether a log lies beside the file: most likely another program has it open
/// in WAL mode.
#[cfg(feature = "user")]
pub(crate) fn has_log(path: &Path) -> bool {
    std::fs::symlink_metadata(beside(path, "-wal")).is_ok()
}

/// How a rollback journal begins that is still to be played back.
/// `journal_mode=PERSIST` writes zeros over it when all is done.
///
/// Source: SQLite, "Database File Format", section 3.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Makes sure that no rollback journal beside the file is still to be played
/// back: until then the file holds half a transaction.
///
/// # Errors
/// [`ReadError::Unfinished`].
pub(crate) fn check_journal(path: &Path) -> Result<(), ReadError> {
    // It is named after the file, not after a link to it.
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let real = is_link.then(|| std::fs::canonicalize(path).ok()).flatten();
    let journal = beside(real.as_deref().unwrap_or(path), "-journal");
    // Nothing but a file is opened: a pipe would block.
    if !std::fs::metadata(&journal).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
        return Ok(());
    }
    let mut first = Vec::new();
    let length = JOURNAL_MAGIC.len() as u64;
    match File::open(&journal).and_then(|file| file.take(length).read_to_end(&mut first)) {
        Ok(_) if first != JOURNAL_MAGIC => Ok(()),
        // One that can't be read is there all the same.
        _ => Err(ReadError::Unfinished { path: path.to_owned(), journal }),
    }
}

/// A connection that can only read, creates nothing beside the file, trusts
/// nothing in it, and holds no value larger than `max_object_bytes` and a key.
/// Its steps take no longer than going through `data_bytes` of the file once.
///
/// # Errors
/// [`ReadError::Io`] where the path can't be made absolute, else
/// [`ReadError::Sqlite`].
pub(crate) fn connect(
    path: &Path,
    data_bytes: u64,
    max_object_bytes: u64,
) -> Result<(Connection, StepBudget), ReadError> {
    let absolute = std::path::absolute(path)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let ticks = TICKS_AT_REST + data_bytes / BYTES_PER_TICK;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // `immutable` keeps SQLite from locking, and from looking for or creating
    // journals beside the file, so that a read-only directory will do.
    //
    // Source: SQLite, "Uniform Resource Identifiers", sections 3.1 and 3.3.
    let open = || {
        let connection = Connection::open_with_flags(uri(&absolute, "immutable=1"), flags)?;
        connection.set_limit(Limit::SQLITE_LIMIT_FUNCTION_ARG, MAX_FUNCTION_ARGUMENTS)?;
        connection.pragma_update(None, "query_only", true)?;
        harden(connection, ticks, max_object_bytes)
    };
    open().map_err(|source| sqlite_error(path, source))
}

/// Applies the limits and settings for files that somebody else may have written.
pub(crate) fn harden(
    mut connection: Connection,
    ticks: u64,
    max_object_bytes: u64,
) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let budget = StepBudget::install(&mut connection, ticks)?;
    let largest = max_object_bytes.saturating_add(2 * MAX_KEY_BYTES as u64);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(largest).unwrap_or(i32::MAX))?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok((connection, budget))
}

/// How many of its own instructions SQLite may still spend on the current step.
/// A hostile file can hold a tree in which the next row never comes.
pub(crate) struct StepBudget {
    /// Ticks for each step.
    ticks: u64,
    left: Arc<AtomicU64>,
}

impl StepBudget {
    /// Sets the connection's progress handler, which ends a step whose budget is
    /// spent.
    fn install(connection: &mut Connection, ticks: u64) -> Result<Self, rusqlite::Error> {
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

    /// Gives the next step its full budget.
    pub(crate) fn renew(&self) {
        self.left.store(self.ticks, Ordering::Relaxed);
    }

    /// Gives the next step its full budget, and enough to read so many bytes of
    /// the file besides.
    #[cfg(any(feature = "user", test))]
    pub(crate) fn renew_to_read(&self, bytes: u64) {
        self.left.store(self.ticks + bytes / BYTES_PER_TICK, Ordering::Relaxed);
    }
}

/// SQLite's error, told apart where our own budget ended the query.
pub(crate) fn sqlite_error(path: &Path, source: rusqlite::Error) -> ReadError {
    let path = path.to_owned();
    let extended = source.sqlite_error().map(|error| error.extended_code);
    match source.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => ReadError::Runaway { path },
        _ if extended == Some(rusqlite::ffi::SQLITE_READONLY_ROLLBACK) => {
            ReadError::HotJournal { path }
        }
        _ => ReadError::Sqlite { path, source },
    }
}

/// What has to be encoded in the path of a URI.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(crate) fn uri(path: &Path, parameters: &str) -> String {
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), ENCODED);
    format!("file://{path}?{parameters}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_so_many_instructions() {
        let mut connection = Connection::open_in_memory().unwrap();
        let budget = StepBudget::install(&mut connection, 20).unwrap();
        let count = |rows: u32| {
            let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?1)
                SELECT count(*) FROM n";
            connection.query_row(sql, [rows], |row| row.get::<_, u32>(0))
        };
        assert_eq!(count(500), Ok(500));
        let error = sqlite_error(Path::new("x.kdb"), count(100_000).unwrap_err());
        assert!(matches!(error, ReadError::Runaway { .. }), "{error}");
        // A large file takes more.
        budget.renew_to_read(10_000 * BYTES_PER_TICK);
        assert_eq!(count(100_000), Ok(100_000));
        // It is the step that is over, not the file.
        budget.renew();
        assert_eq!(count(500), Ok(500));
    }

    #[test]
    fn every_path_survives_as_a_uri() {
        let uri = |path: &str| uri(Path::new(path), "immutable=1");
        assert_eq!(uri("/a/gfx906_60.kdb"), "file:///a/gfx906_60.kdb?immutable=1");
        assert_eq!(
            uri("/a b/50%?x=1#é.kdb"),
            "file:///a%20b/50%25%3Fx%3D1%23%C3%A9.kdb?immutable=1"
        );
    }
}
