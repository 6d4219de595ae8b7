//! How long one call may still wait for others who have a file locked.

use std::cell::Cell;
use std::time::Duration;

/// What is left of the time that a call may wait, over all files and steps.
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
