//! The clock, for the times of last use. No output depends on it.

use std::time::SystemTime;

/// Seconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "the least recently used kernel goes first")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
