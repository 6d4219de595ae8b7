//! Opens a file of unknown origin: checks it before SQLite sees it, and restricts what SQLite may do
//! with it. Its statements run within a step budget, and a work budget: the bytes that its rows hold
//! and unpack to are counted, and limited by the file's own size.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gfxpack_sqlite::{StepBudget, beside, unplayed_journal};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Params, Row, Rows};

use crate::error::{Fault, ReadError};
use crate::header::{HEADER_BYTES, Header};
use crate::schema::{MAX_KEY_BYTES, MAX_OBJECT_BYTES, MIN_FILE_BYTES, check_statements};

/// Most arguments of a function in the file's schema. A function with two can
/// take time that grows with the product of their lengths, and SQLite can't be
/// stopped within one.
const MAX_FUNCTION_ARGUMENTS: i32 = 1;
/// Page cache of one connection, in KiB.
const CACHE_KIB: i32 = 4096;

/// Checks a file before SQLite opens it; returns its header and its size in bytes.
pub(crate) fn probe(path: &Path) -> Result<(Header, u64), ReadError> {
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
    Ok((header, bytes))
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

/// An open file, and its budgets.
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) work: WorkBudget,
    connection: Connection,
    budget: StepBudget,
}

impl Opened {
    pub(crate) fn new(
        path: &Path,
        connection: Connection,
        budget: StepBudget,
        work: WorkBudget,
    ) -> Result<Self, ReadError> {
        check_statements(path, &connection, &work)?;
        Ok(Self { path: path.to_owned(), work, connection, budget })
    }

    /// The connection, with a fresh step budget for one more statement.
    pub(crate) fn connection(&self) -> &Connection {
        self.budget.renew();
        &self.connection
    }

    /// The connection, with a step budget for a statement that reads `bytes` of
    /// the file.
    pub(crate) fn connection_to_read(&self, bytes: u64) -> &Connection {
        self.budget.renew_to_read(bytes);
        &self.connection
    }

    pub(crate) fn sqlite(&self, source: rusqlite::Error) -> ReadError {
        sqlite_error(&self.path, source)
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, ReadError> {
        self.connection().prepare_cached(sql).map_err(|source| self.sqlite(source))
    }

    /// The next row of a query. It gets a fresh step budget, and counts against
    /// the work budget.
    pub(crate) fn next<'r, 'stmt>(
        &self,
        rows: &'r mut Rows<'stmt>,
    ) -> Result<Option<&'r Row<'stmt>>, ReadError> {
        self.budget.renew();
        let row = rows.next().map_err(|source| self.sqlite(source))?;
        if let Some(row) = row {
            self.work.row(&self.path, row)?;
        }
        Ok(row)
    }

    pub(crate) fn for_each<E: From<ReadError>>(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params).map_err(|source| self.sqlite(source))?;
        while let Some(row) = self.next(&mut rows)? {
            each(row)?;
        }
        Ok(())
    }

    /// Counts the rows one by one: SQLite's own count is a single step, which
    /// nothing would end in a tree without end.
    pub(crate) fn count(&self) -> Result<u64, ReadError> {
        let mut count = 0;
        self.work.restart();
        self.for_each("SELECT 1 FROM kern_db", (), |_| {
            count += 1;
            Ok::<(), ReadError>(())
        })?;
        self.work.restart();
        Ok(count)
    }
}

/// Bytes that rows may hold and unpack to for each byte of their file. Code
/// objects come out of bzip2 two to eight times as large.
pub(crate) const MAX_RATIO: u64 = 256;

/// The least bytes counted for a row: none takes less than 16 bytes of a file.
const ROW_BYTES: u64 = 16 * MAX_RATIO;

/// Budget of one pass over a file, and how much of it is spent, in bytes that
/// SQLite returns and that code objects declare.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    limit: u64,
    spent: Cell<u64>,
}

impl WorkBudget {
    /// For a file of that many bytes.
    pub(crate) fn new(file_bytes: u64) -> Self {
        let limit = MAX_OBJECT_BYTES.saturating_add(file_bytes.saturating_mul(MAX_RATIO));
        Self { limit, spent: Cell::new(0) }
    }

    /// Starts counting from zero.
    pub(crate) fn restart(&self) {
        self.spent.set(0);
    }

    /// Bytes counted so far.
    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// The largest number of bytes that may be counted.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts bytes if the budget allows them; returns whether it did.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let spent = self.spent.get().saturating_add(bytes);
        let fits = spent <= self.limit;
        if fits {
            self.spent.set(spent);
        }
        fits
    }

    /// Counts the bytes of a row that SQLite returned.
    pub(crate) fn row(&self, path: &Path, row: &Row<'_>) -> Result<(), ReadError> {
        let columns = row.as_ref().column_count();
        let bytes = (0..columns).filter_map(|column| match row.get_ref(column) {
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Some(bytes.len() as u64),
            _ => None,
        });
        if self.take(bytes.sum::<u64>().max(ROW_BYTES)) {
            return Ok(());
        }
        Err(Fault::Runaway.of(path))
    }
}
