//! Waits for others who have the user's kdb locked: as long as a call may wait,
//! but not again for each kernel.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutex::lock;

/// After a failed wait, no call waits for the file for this time. A program
/// that keeps the file locked for so long most likely continues, and every
/// lookup would wait.
const NO_WAIT_AFTER_BUSY: Duration = Duration::from_secs(60);

/// Records failed waits for the file.
#[derive(Default)]
pub(super) struct BusyHistory(Mutex<BusySince>);

/// Time of the last failed wait for each kind of access; cleared by a
/// successful access. A lock may allow reading but not writing.
#[derive(Default)]
struct BusySince {
    reading: Option<Instant>,
    storing: Option<Instant>,
}

/// The kind of access to the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Store,
}

impl BusyHistory {
    /// Runs `act` with the time that it may wait for others: the rest of the
    /// budget, or zero if a wait failed shortly before.
    pub(super) fn waiting<T>(
        &self,
        access: Access,
        wait_budget: &WaitBudget,
        act: impl FnOnce(Duration) -> T,
        is_busy: impl FnOnce(&T) -> bool,
    ) -> T {
        let in_vain = lock(&self.0).forbids_to_wait(access);
        let wait = if in_vain { Duration::ZERO } else { wait_budget.left() };
        let began = Instant::now();
        let answer = act(wait);
        wait_budget.spend(began.elapsed());
        if !is_busy(&answer) {
            lock(&self.0).set(access, None);
        } else if !wait.is_zero() {
            lock(&self.0).set(access, Some(Instant::now()));
        }
        answer
    }
}

impl BusySince {
    fn forbids_to_wait(&self, access: Access) -> bool {
        let recently = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < NO_WAIT_AFTER_BUSY);
        recently(self.reading) || access == Access::Store && recently(self.storing)
    }

    /// A successful store shows that the file can be read too.
    fn set(&mut self, access: Access, since: Option<Instant>) {
        match access {
            Access::Read => self.reading = since,
            Access::Store if since.is_none() => *self = Self::default(),
            Access::Store => self.storing = since,
        }
    }
}

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
