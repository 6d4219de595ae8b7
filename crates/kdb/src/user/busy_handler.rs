//! SQLite's busy handler: waits for others who have a file locked, with an
//! equal chance for everyone who waits.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Between two attempts. SQLite's own handler pauses longer each time, up to a
/// tenth of a second, so whoever has waited longest has the least chance
/// against newcomers, and with enough of them never gets the lock.
const PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// How long this thread's statements may still wait. It stands here since a
    /// busy handler is a plain function, without a place for state.
    static LEFT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Installs the handler: the connection's statements wait for locks as long as
/// [`wait_up_to`] allows.
pub(crate) fn install(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.busy_handler(Some(|_| wait()))
}

/// Waits a moment, if this thread still may.
pub(crate) fn wait() -> bool {
    let left = LEFT.get();
    if left.is_zero() {
        return false;
    }
    let began = Instant::now();
    thread::sleep(PAUSE.min(left));
    LEFT.set(left.saturating_sub(began.elapsed()));
    true
}

/// Sets how long this thread may wait from now on, in all. Only time spent
/// waiting counts.
pub(crate) fn wait_up_to(busy: Duration) {
    LEFT.set(busy);
}
