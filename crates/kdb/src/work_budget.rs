//! Bounds the work that one file can cause its reader: the bytes that its rows
//! hold and unpack to are counted, and limited by the file's own size.

use std::cell::Cell;
use std::path::Path;

use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::error::ReadError;
use crate::schema::MAX_OBJECT_BYTES;

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
    ///
    /// # Errors
    /// [`ReadError::Runaway`] if the budget is exceeded.
    pub(crate) fn row(&self, path: &Path, row: &Row<'_>) -> Result<(), ReadError> {
        let columns = row.as_ref().column_count();
        let bytes = (0..columns).filter_map(|column| match row.get_ref(column) {
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Some(bytes.len() as u64),
            _ => None,
        });
        if self.take(bytes.sum::<u64>().max(ROW_BYTES)) {
            return Ok(());
        }
        Err(ReadError::Runaway { path: path.to_owned() })
    }
}
