//! Opening a file of unknown origin: what is checked before SQLite sees it,
//! and what SQLite may not do with it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gfxpack_model::code_object;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::file::error::ReadError;
use crate::file::layout::Layout;

/// SQLite's instructions between two looks at the budget of a step.
const TICK: i32 = 1000;
/// Ticks of one step, besides one for each KiB of the file.
const TICKS: u64 = 1000;
/// The smallest page, so the smallest file.
const MIN_BYTES: u64 = 512;
/// Bytes that a key may have beside its code object.
const KEY_BYTES: u64 = 1 << 16;

/// A connection that can only read, creates nothing beside the file and trusts
/// nothing in it.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) layout: Layout,
    pub(crate) bytes: u64,
    budget: Arc<AtomicU64>,
}

impl Opened {
    /// # Errors
    /// [`ReadError`], but for those of rows.
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let bytes = check_header(path)?;
        let absolute = std::path::absolute(path).map_err(|source| io_error(path, source))?;
        let sqlite = |source| sqlite_error(path, source);
        let budget = Arc::new(AtomicU64::new(0));
        let connection = connect(&absolute, bytes, &budget).map_err(sqlite)?;
        let opened = Self { connection, layout: Layout::Plain, bytes, budget };
        opened.renew();
        let layout = layout(path, &opened.connection)?;
        Ok(Self { layout, ..opened })
    }

    /// Gives the next step of a query its full budget. A hostile file can hold
    /// a tree in which the next row never comes.
    pub(crate) fn renew(&self) {
        self.budget.store(TICKS + self.bytes / 1024, Ordering::Relaxed);
    }
}

/// SQLite's error, told apart where our own budget ended the query.
pub(crate) fn sqlite_error(path: &Path, source: rusqlite::Error) -> ReadError {
    match source.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => ReadError::Runaway { path: path.to_owned() },
        _ => ReadError::Sqlite { path: path.to_owned(), source },
    }
}

fn io_error(path: &Path, source: io::Error) -> ReadError {
    ReadError::Io { path: path.to_owned(), source }
}

/// The file's size, once its first bytes are an SQLite file's that is at rest.
///
/// Source: SQLite, "Database File Format", sections 1.3 and 3.
fn check_header(path: &Path) -> Result<u64, ReadError> {
    let unusable = |reason| Err(ReadError::Unusable { path: path.to_owned(), reason });
    // Asked before opening: a pipe without writer would block.
    let metadata = fs::metadata(path).map_err(|source| io_error(path, source))?;
    if !metadata.is_file() {
        return unusable("it is no regular file");
    }
    let mut header = [0; 20];
    let mut file = File::open(path).map_err(|source| io_error(path, source))?;
    if metadata.len() < MIN_BYTES || file.read_exact(&mut header).is_err() {
        return unusable("it is too small for an SQLite file");
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return unusable("it is no SQLite file");
    }
    if header[18..] != [1, 1] {
        return unusable("its journal mode is not `delete`");
    }
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    let journal = PathBuf::from(journal);
    if journal.is_file() {
        // One that SQLite has played back is empty or has zeros at its start.
        let mut first = [0];
        let read = File::open(journal).and_then(|mut file| file.read(&mut first));
        if read.is_err() || first != [0] {
            return unusable("a program that wrote to it did not finish");
        }
    }
    Ok(metadata.len())
}

fn connect(
    path: &Path,
    bytes: u64,
    budget: &Arc<AtomicU64>,
) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(uri(path), flags)?;
    let left = Arc::clone(budget);
    let is_over = move || {
        let before = left.load(Ordering::Relaxed);
        left.store(before.saturating_sub(1), Ordering::Relaxed);
        before == 0
    };
    connection.progress_handler(TICK, Some(is_over))?;
    budget.store(TICKS, Ordering::Relaxed);
    // A value can't have more bytes than its file.
    let largest = bytes.min(code_object::MAX_BYTES) + KEY_BYTES;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(largest).unwrap_or(i32::MAX))?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    Ok(connection)
}

/// What has to be encoded in the path of a URI.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `immutable` keeps SQLite from locking, and from looking for or creating
/// journals beside the file, so that a read-only directory will do.
///
/// Source: SQLite, "Uniform Resource Identifiers", sections 3.1 and 3.3.
fn uri(path: &Path) -> String {
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), ENCODED);
    format!("file://{path}?immutable=1")
}

/// The layout by the schema, which must be exactly that of one of them. Blanks
/// are not compared: who copies the statement may lay it out differently.
fn layout(path: &Path, connection: &Connection) -> Result<Layout, ReadError> {
    let sqlite = |source| sqlite_error(path, source);
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    // The index of a table's primary key has no text.
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL LIMIT 4";
    let mut statement = connection.prepare(sql).map_err(sqlite)?;
    let rows = statement.query_map((), |row| row.get::<_, String>(0)).map_err(sqlite)?;
    let found = rows.collect::<Result<Vec<_>, _>>().map_err(sqlite)?;
    let mut known = Vec::new();
    for layout in [Layout::Plain, Layout::Dense] {
        let own = layout.statements().iter().map(|text| bare(text));
        if found.iter().map(|text| bare(text)).eq(own.clone()) {
            return Ok(layout);
        }
        known.extend(own);
    }
    let first = found.iter().find(|text| !known.contains(&bare(text)));
    let found = first.map_or("no cache_v1".into(), |text| text.chars().take(80).collect());
    Err(ReadError::Schema { path: path.to_owned(), found })
}
