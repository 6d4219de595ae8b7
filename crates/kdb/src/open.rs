//! Opens a file of unknown origin: checks it before SQLite sees it, and
//! restricts what SQLite may do with it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gfxpack_sqlite::{StepBudget, beside, unplayed_journal};
use rusqlite::Connection;
use rusqlite::limits::Limit;

use crate::error::{Fault, ReadError};
use crate::header::{HEADER_BYTES, Header};
use crate::schema::{MAX_KEY_BYTES, MAX_OBJECT_BYTES, MIN_FILE_BYTES};

/// Most arguments of a function in the file's schema. A function with two can
/// take time that grows with the product of their lengths, and SQLite can't be
/// stopped within one.
const MAX_FUNCTION_ARGUMENTS: i32 = 1;
/// Page cache of one connection, in KiB.
const CACHE_KIB: i32 = 4096;

/// Properties of a file, read before SQLite opens it.
pub(crate) struct Probe {
    pub(crate) header: Header,
    /// Its size in bytes.
    pub(crate) bytes: u64,
}

/// Checks a file before SQLite opens it.
pub(crate) fn probe(path: &Path) -> Result<Probe, ReadError> {
    let io = |source| ReadError::io(path, source);
    // Checked before opening: opening a pipe without a writer would block.
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        return Err(Fault::NotAFile.of(path));
    }
    let mut file = File::open(path).map_err(io)?;
    let bytes = metadata.len();
    if bytes < MIN_FILE_BYTES {
        return Err(Fault::TooSmall(bytes).of(path));
    }
    let mut first = [0; HEADER_BYTES];
    file.read_exact(&mut first).map_err(io)?;
    let header = Header::parse(&first).ok_or_else(|| Fault::NotSqlite.of(path))?;
    check_journal(path)?;
    Ok(Probe { header, bytes })
}

/// Whether a log exists beside the file: most likely another program has the
/// file open in WAL mode.
pub(crate) fn has_log(path: &Path) -> bool {
    std::fs::symlink_metadata(beside(path, "-wal")).is_ok()
}

/// Checks that no rollback journal beside the file must be played back first.
pub(crate) fn check_journal(path: &Path) -> Result<(), ReadError> {
    match unplayed_journal(path) {
        Some(journal) => Err(Fault::Unfinished(journal).of(path)),
        None => Ok(()),
    }
}

/// Opens a connection that can only read, creates nothing beside the file,
/// trusts nothing in it, and accepts no value larger than a code object and a
/// key. One step of a query takes no longer than reading the file's `bytes`
/// once.
pub(crate) fn connect(path: &Path, bytes: u64) -> Result<(Connection, StepBudget), ReadError> {
    let absolute = std::path::absolute(path).map_err(|source| ReadError::io(path, source))?;
    let open = || {
        let mut connection = gfxpack_sqlite::open(&absolute, true)?;
        connection.set_limit(Limit::SQLITE_LIMIT_FUNCTION_ARG, MAX_FUNCTION_ARGUMENTS)?;
        let budget = StepBudget::for_file(&mut connection, bytes)?;
        harden(&connection)?;
        Ok((connection, budget))
    };
    open().map_err(|source| sqlite_error(path, source))
}

/// Applies the limits and settings for files that others may have written.
pub(crate) fn harden(connection: &Connection) -> Result<(), rusqlite::Error> {
    gfxpack_sqlite::harden(connection, MAX_OBJECT_BYTES + 2 * MAX_KEY_BYTES as u64)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)
}

/// Converts SQLite's error; distinguishes queries that our own budget ended.
pub(crate) fn sqlite_error(path: &Path, source: rusqlite::Error) -> ReadError {
    let fault = match source.sqlite_error().map(|error| error.extended_code) {
        _ if StepBudget::is_over(&source) => Fault::Runaway,
        Some(rusqlite::ffi::SQLITE_READONLY_ROLLBACK) => Fault::HotJournal,
        _ => Fault::Sqlite(source),
    };
    fault.of(path)
}
