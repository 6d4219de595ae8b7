//! Opens a file of unknown origin: checks it before SQLite reads it, and restricts SQLite.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use gfxpack_model::code_object;
use gfxpack_sqlite::{StepBudget, unplayed_journal};
use rusqlite::Connection;

use crate::file::error::ReadError;
use crate::file::write::CREATE_TABLE;

/// The smallest page, and thus the smallest file.
const MIN_BYTES: u64 = 512;
/// The most bytes of a key besides its code object.
const KEY_BYTES: u64 = 1 << 16;

/// A read-only connection that creates no files and trusts nothing in the file, its budget, and the
/// file's size.
///
/// # Errors
/// [`ReadError`], except for those of schema and rows.
pub(crate) fn connect(path: &Path) -> Result<(Connection, StepBudget, u64), ReadError> {
    let bytes = check_header(path)?;
    let absolute = std::path::absolute(path).map_err(|source| io_error(path, source))?;
    let open = || {
        let mut connection = gfxpack_sqlite::open(&absolute, true)?;
        let budget = StepBudget::for_file(&mut connection, bytes)?;
        // A value can't have more bytes than its file.
        gfxpack_sqlite::harden(&connection, bytes.min(code_object::MAX_BYTES) + KEY_BYTES)?;
        Ok((connection, budget, bytes))
    };
    open().map_err(|source| sqlite_error(path, source))
}

/// The error for SQLite's; different if our own budget ended the query.
pub(crate) fn sqlite_error(path: &Path, source: rusqlite::Error) -> ReadError {
    let path = path.to_owned();
    if StepBudget::is_over(&source) {
        ReadError::Runaway { path }
    } else {
        ReadError::Sqlite { path, source }
    }
}

fn io_error(path: &Path, source: io::Error) -> ReadError {
    ReadError::Io { path: path.to_owned(), source }
}

/// Checks that a file begins like an SQLite file that is not being written. Returns its size.
///
/// Source: SQLite, "Database File Format", section 1.3.
fn check_header(path: &Path) -> Result<u64, ReadError> {
    let unusable = |reason| Err(ReadError::Unusable { path: path.to_owned(), reason });
    // Done before opening, since opening a pipe without a writer would block.
    let metadata = fs::metadata(path).map_err(|source| io_error(path, source))?;
    if !metadata.is_file() {
        return unusable("it is no regular file");
    }
    let mut header = [0; 20];
    let mut file = File::open(path).map_err(|source| io_error(path, source))?;
    if metadata.len() < MIN_BYTES || file.read_exact(&mut header).is_err() {
        return unusable("it is too small for an SQLite file");
    }
    if !header.starts_with(gfxpack_sqlite::MAGIC) {
        return unusable("it is no SQLite file");
    }
    if header[18..] != [1, 1] {
        return unusable("its journal mode is not `delete`");
    }
    if unplayed_journal(path).is_some() {
        return unusable("a program that wrote to it did not finish");
    }
    Ok(metadata.len())
}

/// Checks that the schema is rocFFT's table and nothing else. Blanks are ignored, since a copied
/// statement may be formatted differently.
pub(crate) fn check_schema(path: &Path, connection: &Connection) -> Result<(), ReadError> {
    let sqlite = |source| sqlite_error(path, source);
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    // The index of a primary key has no text.
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL LIMIT 2";
    let mut statement = connection.prepare(sql).map_err(sqlite)?;
    let rows = statement.query_map((), |row| row.get::<_, String>(0)).map_err(sqlite)?;
    let found = rows.collect::<Result<Vec<_>, _>>().map_err(sqlite)?;
    let own = bare(CREATE_TABLE);
    let others = found.iter().filter(|text| bare(text) != own);
    if found.len() == 1 && others.clone().count() == 0 {
        return Ok(());
    }
    let first = { others }.next();
    let found = first.map_or("no cache_v1".into(), |text| text.chars().take(80).collect());
    Err(ReadError::Schema { path: path.to_owned(), found })
}
