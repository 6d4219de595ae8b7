//! Opens a file of unknown origin: checks it before SQLite reads it, and restricts SQLite.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use gfxpack_model::{Error, code_object};
use gfxpack_sqlite::{StepBudget, unplayed_journal};
use rusqlite::Connection;

use crate::file::row::RowError;
use crate::file::write::CREATE_TABLE;

/// The class of an error in a verification (`io` if the file can't be read at all), and the error.
pub(crate) type Fault = (&'static str, Error);

const DAMAGED: &str = "the file is damaged: build it again, or install its package again";

/// The smallest page, and thus the smallest file.
const MIN_BYTES: u64 = 512;
/// The most bytes of a key besides its code object.
const KEY_BYTES: u64 = 1 << 16;

/// A read-only connection that creates no files and trusts nothing in the file, its budget, and the
/// file's size.
///
/// # Errors
/// If the file can't be read, is no SQLite file, or is being written.
pub(crate) fn connect(path: &Path) -> Result<(Connection, StepBudget, u64), Fault> {
    let bytes = check_header(path)?;
    let absolute = std::path::absolute(path).map_err(|source| io_error(path, source))?;
    let open = || {
        let mut connection = gfxpack_sqlite::open(&absolute, true)?;
        let budget = StepBudget::for_file(&mut connection, bytes)?;
        // A value can't have more bytes than its file.
        gfxpack_sqlite::harden(&connection, bytes.min(code_object::MAX_BYTES) + KEY_BYTES)?;
        Ok((connection, budget, bytes))
    };
    open().map_err(|source| ("unreadable", sqlite_error(path, source)))
}

/// The error for SQLite's; different if our own budget ended the query.
pub(crate) fn sqlite_error(path: &Path, source: rusqlite::Error) -> Error {
    if StepBudget::is_over(&source) {
        return runaway(path);
    }
    Error::usage(format!("failed to read `{}`", path.display()), DAMAGED).caused_by(source)
}

/// The error for rows without end, or with far more data than a file of that size can contain.
pub(crate) fn runaway(path: &Path) -> Error {
    let path = path.display();
    let what = "its rows have no end, or hold far more than it does";
    Error::usage(format!("failed to read `{path}`: {what}"), DAMAGED)
}

/// The error for a row that is damaged; 0 is one that was looked up.
pub(crate) fn row_error(path: &Path, row: u64, source: RowError) -> Error {
    let message = format!("failed to read row {row} of `{}`", path.display());
    Error::usage(message, DAMAGED).caused_by(source)
}

fn io_error(path: &Path, source: io::Error) -> Fault {
    let hint = match source.kind() {
        io::ErrorKind::NotFound => "check the path, or install the package that holds it",
        _ => "check the permissions of the file and of the directories above it",
    };
    let message = format!("failed to read `{}`", path.display());
    ("io", Error::usage(message, hint).caused_by(source))
}

/// Checks that a file begins like an SQLite file that is not being written. Returns its size.
///
/// Source: SQLite, "Database File Format", section 1.3.
fn check_header(path: &Path) -> Result<u64, Fault> {
    let unusable = |reason| {
        let hint = "close the program that writes to it; one in WAL mode becomes readable by \
                    `sqlite3 FILE 'pragma journal_mode=delete'`";
        let message = format!("failed to read `{}`: {reason}", path.display());
        Err(("not-sqlite", Error::usage(message, hint)))
    };
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
/// statement may be formatted differently. Others are refused, since a view could compute rows
/// endlessly.
pub(crate) fn check_schema(path: &Path, connection: &Connection) -> Result<(), Fault> {
    let sqlite = |source| ("unreadable", sqlite_error(path, source));
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    // The index of a primary key has no text.
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL LIMIT 2";
    let mut statement = connection.prepare(sql).map_err(sqlite)?;
    let rows = statement.query_map((), |row| row.get::<_, String>(0)).map_err(sqlite)?;
    let found = rows.collect::<Result<Vec<_>, _>>().map_err(sqlite)?;
    let own = bare(CREATE_TABLE);
    let other = found.iter().find(|text| bare(text) != own);
    if found.len() == 1 && other.is_none() {
        return Ok(());
    }
    let found: String = other.map_or("no cache_v1".into(), |text| text.chars().take(80).collect());
    let path = path.display();
    let message =
        format!("failed to read `{path}`: its schema is not that of a kernel cache: `{found}`");
    Err(("schema", Error::usage(message, "name a kernel cache of rocFFT: rocfft_kernel_cache*.db")))
}
