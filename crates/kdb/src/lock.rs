//! Transactions on a file that another program may put into WAL mode at any
//! time: none of them ever maps the memory that such a program shares.
//!
//! Shared memory is a file, and who truncates it kills every process that has
//! it mapped. With `locking_mode = EXCLUSIVE` SQLite keeps a log's index in
//! memory of its own, for which it must have the kdb alone. So each
//! transaction is begun in that mode; it goes on in the usual one as soon as it
//! has its lock, which lets nobody change the journal mode until it is over.
//!
//! Source: SQLite, "Write-Ahead Logging", section 6.1; "PRAGMA locking_mode";
//! `lockBtree`, `pagerOpenWal` and `sqlite3PagerSetJournalMode` of SQLite
//! 3.54.1.

use std::ffi::OsString;

use rusqlite::{Connection, Error, Transaction, TransactionBehavior};

/// Takes the lock of a transaction that reads.
const TAKE: &str = "SELECT 1 FROM sqlite_schema LIMIT 1";

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Reading,
    /// It waits at its begin and not in the middle, where two might wait for
    /// each other.
    Writing,
}

/// Has the connection keep each lock that it takes, until a transaction ends
/// that [`begin`] began. To be called before anything is read by a new
/// connection.
pub(crate) fn hold(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")
}

/// Gives back what [`hold`] made the connection keep.
pub(crate) fn release(connection: &Connection) -> Result<(), Error> {
    begin(connection, For::Reading)?.commit()
}

/// Begins a transaction. A file in WAL mode that nobody else has open is taken
/// out of it.
///
/// # Errors
/// `DatabaseBusy` where somebody else has a file in WAL mode open; else as
/// SQLite has them. The connection is to be closed then: it may have kept a
/// lock.
pub(crate) fn begin(connection: &Connection, purpose: For) -> Result<Transaction<'_>, Error> {
    if let Some(transaction) = try_begin(connection, purpose)? {
        return Ok(transaction);
    }
    // The file is this connection's alone until the next transaction ends. Its
    // rollback journal can't be removed yet.
    set_journal_mode(connection, "persist")?;
    let transaction = try_begin(connection, purpose)?.ok_or(Error::InvalidQuery)?;
    set_journal_mode(connection, "delete")?;
    remove_index(connection);
    Ok(transaction)
}

/// The same; none where the file is in WAL mode.
fn try_begin(connection: &Connection, purpose: For) -> Result<Option<Transaction<'_>>, Error> {
    hold(connection)?;
    let behavior = match purpose {
        For::Reading => TransactionBehavior::Deferred,
        For::Writing => TransactionBehavior::Immediate,
    };
    let transaction = Transaction::new_unchecked(connection, behavior)?;
    if purpose == For::Reading {
        connection.prepare_cached(TAKE)?.query(())?.next()?;
    }
    // With a log's index in its own memory, the connection stays as it is.
    let mode: String =
        connection.query_row("PRAGMA locking_mode = NORMAL", (), |row| row.get(0))?;
    Ok((mode == "normal").then_some(transaction))
}

fn set_journal_mode(connection: &Connection, mode: &str) -> Result<(), Error> {
    let sql = format!("PRAGMA journal_mode = {mode}");
    let now: String = connection.query_row(&sql, (), |row| row.get(0))?;
    if now == mode { Ok(()) } else { Err(Error::InvalidQuery) }
}

/// Removes the shared memory that the last program in WAL mode may have left,
/// as it would have done itself. Nobody has it mapped while this connection
/// has the file alone.
fn remove_index(connection: &Connection) {
    if let Some(path) = connection.path().filter(|path| !path.is_empty()) {
        let mut index = OsString::from(path);
        index.push("-shm");
        std::fs::remove_file(index).ok();
    }
}
