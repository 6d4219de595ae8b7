//! Connections to a file that others may write to meanwhile.

use std::io::Read;
use std::path::Path;

use gfxpack_sqlite::{StepBudget, uri};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::open::harden;
use crate::user::busy_handler;
use crate::user::transaction::hold_locks;

/// Ticks that one step of a query may take in a file that somebody writes to,
/// where nobody knows how large it will be. A scan of a million rows takes some
/// ten thousand.
const TICKS_PER_STEP: u64 = 100_000;

/// A connection that may write to the file, which must exist, and follows no
/// symbolic link on its way. It waits for others as [`busy_handler`] says, and
/// holds its locks as [`hold_locks`] does.
///
/// # Errors
/// As SQLite has them.
pub(crate) fn connect_to_write(
    path: &Path,
    max_object_bytes: u64,
) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    busy_handler::install(&mut connection)?;
    hold_locks(&connection)?;
    keep_in_memory(&connection)?;
    limit(connection, max_object_bytes)
}

/// How a file that others write to is opened without changing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// With locks, which are kept. Fails on a file in WAL mode.
    Live,
    /// As if nobody wrote to it, and without its log.
    AtRest,
    /// To find out whether the file is in WAL mode: opening fails then.
    WithoutLocks,
}

/// A connection that can only read a file that others may write to meanwhile,
/// makes, changes and removes nothing, and follows no symbolic link. A file in
/// WAL mode can't be opened [`ReadMode::WithoutLocks`]. It waits for others as
/// [`busy_handler`] says.
///
/// Source: SQLite, "Uniform Resource Identifiers", section 3.3;
/// `sqlite3PagerOpenWal` of SQLite 3.54.1.
///
/// # Errors
/// As SQLite has them.
pub(crate) fn connect_read_only(
    path: &Path,
    mode: ReadMode,
    max_object_bytes: u64,
) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let parameters = match mode {
        ReadMode::Live => "mode=ro",
        ReadMode::AtRest => "immutable=1",
        ReadMode::WithoutLocks => "mode=ro&nolock=1",
    };
    let mut connection = Connection::open_with_flags(uri(path, parameters), flags)?;
    busy_handler::install(&mut connection)?;
    hold_locks(&connection)?;
    keep_in_memory(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    limit(connection, max_object_bytes)
}

/// A connection to a private copy of a file and its log. Neither is changed.
///
/// # Errors
/// As SQLite has them.
pub(crate) fn connect_to_copy(
    path: &Path,
    max_object_bytes: u64,
) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    hold_locks(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "query_only", true)?;
    limit(connection, max_object_bytes)
}

/// A connection to what `bytes` give, `size` of them, in memory alone.
///
/// # Errors
/// As SQLite has them, which has a word of its own for what `bytes` fails with.
pub(crate) fn connect_to_bytes(
    bytes: impl Read,
    size: usize,
    max_object_bytes: u64,
) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact("main", bytes, size, false)?;
    limit(connection, max_object_bytes)
}

/// Applies the limits for files that somebody writes to.
fn limit(
    mut connection: Connection,
    max_object_bytes: u64,
) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let budget = StepBudget::install(&mut connection, TICKS_PER_STEP)?;
    harden(&connection, max_object_bytes)?;
    Ok((connection, budget))
}

/// Keeps SQLite's temporary tables in memory: in which directory it would create
/// files depends on variables, TMPDIR and SQLITE_TMPDIR. Little is needed here.
fn keep_in_memory(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "temp_store", "MEMORY")
}
