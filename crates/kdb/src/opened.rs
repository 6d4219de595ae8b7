//! An open file, whose statements run within a step budget and a work budget.

use std::path::{Path, PathBuf};

use gfxpack_sqlite::StepBudget;
use rusqlite::{CachedStatement, Connection, Params, Row, Rows};

use crate::error::ReadError;
use crate::open::sqlite_error;
use crate::schema::check_statements;
use crate::work_budget::WorkBudget;

/// An open file, and its budgets.
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) work: WorkBudget,
    connection: Connection,
    budget: StepBudget,
}

impl Opened {
    /// # Errors
    /// As [`check_statements`].
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
    ///
    /// # Errors
    /// [`ReadError::Runaway`], or SQLite's error.
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
