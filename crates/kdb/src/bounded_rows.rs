//! The rows of a query, within the budgets of steps and of work.

use std::path::Path;

use rusqlite::{Connection, Rows};

use crate::error::ReadError;
use crate::layout::Layout;
use crate::open::{StepBudget, sqlite_error};
use crate::schema::TABLE;
use crate::work::WorkBudget;

/// The rows of a query, each with its own budget and counted.
pub(crate) struct BoundedRows<'a, 'stmt> {
    pub(crate) path: &'a Path,
    pub(crate) budget: &'a StepBudget,
    pub(crate) work: &'a WorkBudget,
    pub(crate) rows: Rows<'stmt>,
}

impl<'stmt> BoundedRows<'_, 'stmt> {
    /// # Errors
    /// [`ReadError::Runaway`], or SQLite's.
    pub(crate) fn next(&mut self) -> Result<Option<&rusqlite::Row<'stmt>>, ReadError> {
        self.budget.renew();
        let row = self.rows.next().map_err(|source| sqlite_error(self.path, source))?;
        if let Some(row) = row {
            self.work.row(self.path, row)?;
        }
        Ok(row)
    }
}

/// How many rows a file has. SQLite counts in one step, which nothing ends in a
/// tree without end.
pub(crate) fn count(
    path: &Path,
    connection: &Connection,
    budget: &StepBudget,
    work: &WorkBudget,
    layout: Layout,
) -> Result<u64, ReadError> {
    let sqlite = |source| sqlite_error(path, source);
    // Of a view all rows would be looked up.
    let table = if layout == Layout::Dense { "kern_keys" } else { TABLE };
    let mut statement = connection.prepare(&format!("SELECT 1 FROM {table}")).map_err(sqlite)?;
    let rows = statement.query(()).map_err(sqlite)?;
    let mut rows = BoundedRows { path, budget, work, rows };
    let mut count = 0;
    work.restart();
    while rows.next()?.is_some() {
        count += 1;
    }
    work.restart();
    Ok(count)
}
