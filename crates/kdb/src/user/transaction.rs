//! Transactions on a file that another program may put into WAL mode at any
//! time. None of them maps the memory that such a program shares.
//!
//! Shared memory is a file, and truncating it kills every process that has it
//! mapped. With `locking_mode = EXCLUSIVE` SQLite keeps a log's index in
//! private memory, for which it must have the kdb alone. So each transaction
//! begins in that mode. It switches to the normal mode as soon as it has its
//! lock, which prevents others from changing the journal mode until it ends.
//!
//! Source: SQLite, "Write-Ahead Logging", section 6.1; "PRAGMA locking_mode";
//! `lockBtree`, `pagerOpenWal` and `sqlite3PagerSetJournalMode` of SQLite
//! 3.54.1.

use std::ops::Deref;
use std::path::PathBuf;

use rusqlite::{Connection, Error, ErrorCode};

use crate::user::busy_handler;

/// Takes the lock of a read transaction.
const TAKE: &str = "SELECT 1 FROM sqlite_schema LIMIT 1";

/// Takes the lock of a transaction that writes into MIOpen's table.
pub(crate) const WRITE: &str = "DELETE FROM kern_db WHERE 0";

/// A transaction, rolled back unless it is committed. Unlike rusqlite's, it
/// caches its prepared statements, since there is one transaction for each
/// kernel.
pub(crate) struct Transaction<'a>(&'a Connection);

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl Transaction<'_> {
    pub(crate) fn commit(self) -> Result<(), Error> {
        // A failed commit is rolled back on drop.
        self.prepare_cached("COMMIT")?.execute(()).map(drop)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_autocommit()
            && let Ok(mut undo) = self.prepare_cached("ROLLBACK")
        {
            undo.execute(()).ok();
        }
    }
}

/// Makes the connection keep each lock that it takes, until the end of a
/// transaction from [`begin`]. Must be called on a new connection before it
/// reads anything.
pub(crate) fn hold_locks(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")
}

/// Releases the locks that [`hold_locks`] made the connection keep. Removes a
/// rollback journal that was played back meanwhile: under those locks it could
/// only be marked as done.
pub(crate) fn release_locks(connection: &Connection) -> Result<(), Error> {
    let transaction = begin(connection)?;
    if beside(connection, "-journal").is_some_and(|journal| journal.exists()) {
        set_journal_mode(connection, "persist")?;
        set_journal_mode(connection, "delete")?;
    }
    transaction.commit()
}

/// Begins a read transaction. If the file is in WAL mode and nobody else has it
/// open, it is taken out of WAL mode.
///
/// # Errors
/// `DatabaseBusy` if somebody else has a file in WAL mode open; else SQLite's
/// errors. The connection must then be closed, since it may have kept a lock.
pub(crate) fn begin(connection: &Connection) -> Result<Transaction<'_>, Error> {
    if let Some(transaction) = try_begin(connection)? {
        return Ok(transaction);
    }
    // Until the next transaction ends, this connection alone has the file. Its
    // rollback journal can't be removed yet.
    set_journal_mode(connection, "persist")?;
    let transaction = try_begin(connection)?.ok_or(Error::InvalidQuery)?;
    set_journal_mode(connection, "delete")?;
    remove_index(connection);
    Ok(transaction)
}

/// Begins a write transaction with the statement `first`. It waits for other
/// writers here and not later, when two might wait for each other.
pub(crate) fn begin_writing<'a>(
    connection: &'a Connection,
    first: &str,
) -> Result<Transaction<'a>, Error> {
    loop {
        let transaction = begin(connection)?;
        let begun = connection.prepare_cached(first)?.execute(());
        match begun {
            Ok(_) => return Ok(transaction),
            // Another writer can't finish until this transaction releases its
            // lock.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                drop(transaction);
                if !busy_handler::wait() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// As [`begin`]; `None` if the file is in WAL mode.
fn try_begin(connection: &Connection) -> Result<Option<Transaction<'_>>, Error> {
    let transaction = loop {
        hold_locks(connection)?;
        connection.prepare_cached("BEGIN")?.execute(())?;
        let transaction = Transaction(connection);
        match busy_handler::without_waiting(|| take(connection)) {
            Ok(()) => break transaction,
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                drop(transaction);
                if !release_kept_lock(connection)? || !busy_handler::wait() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    };
    // If a log's index is in private memory, the connection stays in exclusive
    // mode.
    let mode: String =
        connection.query_row("PRAGMA locking_mode = NORMAL", (), |row| row.get(0))?;
    Ok((mode == "normal").then_some(transaction))
}

fn take(connection: &Connection) -> Result<(), Error> {
    connection.prepare_cached(TAKE)?.query(())?.next().map(drop)
}

/// Releases the lock that a failed attempt to roll back a journal keeps in
/// exclusive mode: two connections that wait while they keep it would wait for
/// each other. Returns whether the file is still not in WAL mode.
///
/// Source: `sqlite3PagerSharedLock` and `pager_unlock` of SQLite 3.54.1.
fn release_kept_lock(connection: &Connection) -> Result<bool, Error> {
    let exists = |suffix| beside(connection, suffix).is_some_and(|path| path.exists());
    if !exists("-journal") || exists("-wal") {
        return Ok(true);
    }
    connection.execute_batch("PRAGMA locking_mode = NORMAL")?;
    // Rolls the journal back, or fails and unlocks the file.
    busy_handler::without_waiting(|| take(connection)).ok();
    let mode: String = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0))?;
    Ok(mode != "wal")
}

fn set_journal_mode(connection: &Connection, mode: &str) -> Result<(), Error> {
    let sql = format!("PRAGMA journal_mode = {mode}");
    let now: String = connection.query_row(&sql, (), |row| row.get(0))?;
    if now == mode { Ok(()) } else { Err(Error::InvalidQuery) }
}

/// Removes the shared-memory file that the last program in WAL mode may have
/// left, as that program would have done. It is not mapped anywhere while this
/// connection has the file alone.
fn remove_index(connection: &Connection) {
    if let Some(index) = beside(connection, "-shm") {
        std::fs::remove_file(index).ok();
    }
}

/// The path of SQLite's file with that suffix; `None` for a database in memory.
fn beside(connection: &Connection, suffix: &str) -> Option<PathBuf> {
    let path = connection.path().filter(|path| !path.is_empty())?;
    Some(format!("{path}{suffix}").into())
}
