//! SQLite's busy handler: waits for locks of others, with an equal chance for
//! everyone who waits.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Pause between two attempts. SQLite's own handler pauses longer each time, up
/// to a tenth of a second. So whoever has waited longest has the least chance
/// against newcomers, and among many never gets the lock.
const PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// How long this thread's statements may still wait. A thread-local
    /// variable, since a busy handler is a plain function without state.
    static LEFT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Installs the handler: the connection's statements wait for locks as long as
/// [`wait_up_to`] allows.
pub(crate) fn install(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.busy_handler(Some(|_| wait()))
}

/// Waits one pause, if this thread may still wait; returns whether it may.
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

/// Sets how long this thread may wait in total from now on. Only time spent
/// waiting counts.
pub(crate) fn wait_up_to(busy: Duration) {
    LEFT.set(busy);
}

/// Runs `act`, whose statements don't wait.
pub(crate) fn without_waiting<T>(act: impl FnOnce() -> T) -> T {
    let left = LEFT.take();
    let answer = act();
    LEFT.set(left);
    answer
}
