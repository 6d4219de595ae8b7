//! The remaining time that one call may wait for locked files.

use std::cell::Cell;
use std::time::Duration;

/// The remaining waiting time of a call, shared by all files and steps.
pub(crate) struct WaitBudget(Cell<Duration>);

impl WaitBudget {
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
