//! Opens connections to a file that others may write to at the same time.

use std::io::Read;
use std::path::Path;

use gfxpack_sqlite::{StepBudget, uri};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::open::harden;
use crate::user::busy_handler;
use crate::user::transaction::hold_locks;

/// Ticks that one step of a query may take in a file that others write to,
/// whose future size is not known. A scan of a million rows takes some ten
/// thousand.
const TICKS_PER_STEP: u64 = 100_000;

/// Opens a connection that may write to the file, which must exist. Symbolic
/// links are not followed. It waits for others through [`busy_handler`], and
/// keeps its locks as [`hold_locks`] describes.
pub(crate) fn connect_to_write(path: &Path) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    share(Connection::open_with_flags(path, flags)?)
}

/// How to open a file that others write to without changing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// With locks, which are kept. Fails if the file is in WAL mode.
    Live,
    /// As if no other program wrote to it, and without its log.
    AtRest,
    /// To find out whether the file is in WAL mode: opening then fails.
    WithoutLocks,
}

/// Opens a connection that can only read a file that others may write to at the
/// same time. It creates, changes and removes nothing, and follows no symbolic
/// link. [`ReadMode::WithoutLocks`] fails on a file in WAL mode. It waits for
/// others through [`busy_handler`].
///
/// Source: SQLite, "Uniform Resource Identifiers", section 3.3;
/// `sqlite3PagerOpenWal` of SQLite 3.54.1.
pub(crate) fn connect_read_only(
    path: &Path,
    mode: ReadMode,
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
    let (connection, budget) = share(Connection::open_with_flags(uri(path, parameters), flags)?)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok((connection, budget))
}

/// Opens a connection to a private copy of a file and its log. Neither is
/// changed.
pub(crate) fn connect_to_copy(path: &Path) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    hold_locks(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "query_only", true)?;
    limit(connection)
}

/// Opens `size` bytes, read from `bytes`, as a database in memory.
/// An error of `bytes` is replaced by SQLite's own code.
pub(crate) fn connect_to_bytes(
    bytes: impl Read,
    size: usize,
) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact("main", bytes, size, false)?;
    limit(connection)
}

/// Applies the limits for files that others write to.
fn limit(mut connection: Connection) -> Result<(Connection, StepBudget), rusqlite::Error> {
    let budget = StepBudget::install(&mut connection, TICKS_PER_STEP)?;
    harden(&connection)?;
    Ok((connection, budget))
}

/// Prepares a connection to the file itself.
fn share(mut connection: Connection) -> Result<(Connection, StepBudget), rusqlite::Error> {
    busy_handler::install(&mut connection)?;
    hold_locks(&connection)?;
    // Temporary tables are small. The directory for temporary files would depend on
    // the variables TMPDIR and SQLITE_TMPDIR.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    limit(connection)
}
