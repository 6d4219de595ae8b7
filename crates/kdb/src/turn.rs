//! Waiting for others who have a file locked, with an even chance for everyone
//! who waits.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Between two attempts. SQLite's own handler pauses longer each time, up to a
/// tenth of a second, so that who has waited longest has the least chance
/// against who has just come: with enough of them it never gets its turn.
const PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// Until when this thread's statements wait. A busy handler is a plain
    /// function without a place to keep it.
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Makes the connection's statements wait as [`wait_up_to`] said last.
pub(crate) fn install(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.busy_handler(Some(|_| {
        let waits = UNTIL.get().is_some_and(|until| Instant::now() < until);
        if waits {
            thread::sleep(PAUSE);
        }
        waits
    }))
}

/// Bounds what this thread waits from now on, all in all.
pub(crate) fn wait_up_to(busy: Duration) {
    UNTIL.set(Instant::now().checked_add(busy));
}

/// Begins a transaction that writes, for which it waits here and not in the
/// middle, where two might wait for each other.
pub(crate) fn begin(connection: &Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}
