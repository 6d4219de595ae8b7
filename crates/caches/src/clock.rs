//! The clock for the ages of entries. No shipped output depends on it.

use std::time::SystemTime;

/// The time now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the age of cache entries reaches no output file")]
pub fn now() -> SystemTime {
    SystemTime::now()
}
