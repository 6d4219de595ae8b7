//! How long one call still waits for others who have a file locked.

use std::cell::Cell;
use std::time::Duration;

/// What is left of a call's waiting, whatever files and steps it is for.
pub(crate) struct Patience(Cell<Duration>);

impl Patience {
    pub(crate) fn new(wait: Duration) -> Self {
        Self(Cell::new(wait))
    }

    pub(crate) fn left(&self) -> Duration {
        self.0.get()
    }

    pub(crate) fn spend(&self, time: Duration) {
        self.0.set(self.left().saturating_sub(time));
    }
}
