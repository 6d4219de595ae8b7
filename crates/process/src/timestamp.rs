//! The time when something began, to compare with the times of files.

use std::time::SystemTime;

/// Seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "compared with the times of files, and shown in reports"
        )]
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self(now.map_or(0, |since| since.as_secs()))
    }
}
