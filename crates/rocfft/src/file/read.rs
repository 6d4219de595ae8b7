//! Reads one kernel by its key, or all of them in order.

use std::path::{Path, PathBuf};

use gfxpack_model::{Error, Result};
use gfxpack_sqlite::StepBudget;
use rusqlite::Connection;

use crate::file::open::{Fault, check_schema, connect, row_error, runaway, sqlite_error};
use crate::file::row::{RowError, code_of, key_of};
use crate::key::CacheKey;

/// Selects all keys in order, from the index only.
const SELECT_KEYS: &str = "SELECT kernel_name, arch, hip_version, generator_sum \
    FROM cache_v1 INDEXED BY sqlite_autoindex_cache_v1_1 \
    ORDER BY kernel_name, arch, hip_version, generator_sum";

/// Selects one row by its key. The key is read from the row itself, not from the index, which may
/// lead to another row if a bit is flipped.
const SELECT_ONE: &str = "SELECT kernel_name, arch, hip_version, generator_sum, code FROM cache_v1 \
    WHERE rowid = (SELECT rowid FROM cache_v1 WHERE kernel_name = ?1 AND arch = ?2 \
    AND hip_version = ?3 AND generator_sum = ?4)";

/// An open kernel cache. No files are created or changed; the file must not change while it is
/// open.
///
/// No value is read that is larger than the file or than
/// [`MAX_BYTES`](gfxpack_model::code_object::MAX_BYTES), and reading all rows returns no more than
/// the file's size.
pub struct Reader {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) bytes: u64,
    pub(crate) budget: StepBudget,
}

impl Reader {
    /// Opens a file, and checks that its schema is a kernel cache's.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_or_fault(path.as_ref()).map_err(|(_, error)| error)
    }

    pub(crate) fn open_or_fault(path: &Path) -> Result<Self, Fault> {
        let path = path.to_owned();
        let (connection, budget, bytes) = connect(&path)?;
        check_schema(&path, &connection)?;
        Ok(Self { path, connection, bytes, budget })
    }

    /// The stored code object of a key; `None` if the file does not contain the key. Use
    /// [`check_row`](crate::check_row) to check the object.
    ///
    /// # Errors
    /// For a damaged file, or, with a [`RowError`] as the cause, a damaged row.
    pub fn get(&self, key: &CacheKey) -> Result<Option<Vec<u8>>> {
        self.budget.renew();
        let mut statement =
            self.connection.prepare_cached(SELECT_ONE).map_err(|e| self.sqlite(e))?;
        let CacheKey { kernel_name, arch, hip_version, generator_sum } = key;
        let found = statement.query((kernel_name, arch, hip_version, generator_sum));
        let mut rows = found.map_err(|source| self.sqlite(source))?;
        let Some(row) = rows.next().map_err(|source| self.sqlite(source))? else { return Ok(None) };
        let code = match key_of(row) {
            Ok(found) if found == *key => code_of(row),
            _ => Err(RowError::other_key()),
        };
        code.map(Some).map_err(|source| row_error(&self.path, 0, source))
    }

    /// Calls `each` with every key in order. Code objects are not read.
    ///
    /// # Errors
    /// The first error: a damaged row, a damaged file, or one of `each`.
    pub fn for_each_key(&self, mut each: impl FnMut(CacheKey) -> Result) -> Result {
        let mut previous: Option<CacheKey> = None;
        self.walk(|number, key| {
            let key = key.map_err(|source| row_error(&self.path, number, source))?;
            // A tree that leads back into itself repeats keys.
            if previous.as_ref().is_some_and(|previous| *previous >= key) {
                return Err(row_error(&self.path, number, RowError::order()));
            }
            previous = Some(key.clone());
            each(key)
        })
    }

    /// Calls `each` with every row in key order, with its stored code object. One is in memory at a
    /// time.
    ///
    /// # Errors
    /// As [`Self::for_each_key`], and if they have more bytes than the file.
    pub fn for_each_row(&self, mut each: impl FnMut(CacheKey, Vec<u8>) -> Result) -> Result {
        let (mut number, mut total) = (0, 0);
        self.for_each_key(|key| {
            number += 1;
            let other = || row_error(&self.path, number, RowError::other_key());
            let code = self.get(&key)?.ok_or_else(other)?;
            self.add_up(&mut total, code.len())?;
            each(key, code)
        })
    }

    /// Adds the size of a row to the total, and checks the limit.
    pub(crate) fn add_up(&self, total: &mut u64, bytes: usize) -> Result {
        *total += bytes as u64;
        if *total > self.bytes { Err(runaway(&self.path)) } else { Ok(()) }
    }

    /// Calls `each` with every key, or the error of its row, numbered from 1.
    pub(crate) fn walk(
        &self,
        mut each: impl FnMut(u64, Result<CacheKey, RowError>) -> Result,
    ) -> Result {
        self.budget.renew();
        let connection = &self.connection;
        let mut statement = connection.prepare(SELECT_KEYS).map_err(|e| self.sqlite(e))?;
        let mut rows = statement.query(()).map_err(|source| self.sqlite(source))?;
        let mut number = 0;
        // Each row takes at least 16 bytes of the file.
        while number <= self.bytes / 16 {
            self.budget.renew();
            let Some(row) = rows.next().map_err(|source| self.sqlite(source))? else {
                return Ok(());
            };
            number += 1;
            each(number, key_of(row))?;
        }
        Err(runaway(&self.path))
    }

    fn sqlite(&self, source: rusqlite::Error) -> Error {
        sqlite_error(&self.path, source)
    }
}
