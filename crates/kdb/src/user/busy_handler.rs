//! Waiting for others who have a file locked, with an even chance for everyone
//! who waits.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Between two attempts. SQLite's own handler pauses longer each time, up to a
/// tenth of a second, so that who has waited longest has the least chance
/// against who has just come: with enough of them it never gets its turn.
const PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// How long this thread's statements may still wait. A busy handler is a
    /// plain function without a place to keep it.
    static LEFT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Makes the connection's statements wait as [`wait_up_to`] said last.
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

/// Bounds what this thread waits from now on, all in all. Work between two
/// waits counts for nothing.
pub(crate) fn wait_up_to(busy: Duration) {
    LEFT.set(busy);
}
