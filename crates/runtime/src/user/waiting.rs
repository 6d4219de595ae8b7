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

/// When a wait for the file last failed, for each kind of access; cleared by a successful access. A
/// lock may allow reading but not writing.
#[derive(Default)]
pub(super) struct BusyHistory {
    reading: Mutex<Option<Instant>>,
    storing: Mutex<Option<Instant>>,
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
    pub(super) fn waiting<T, E>(
        &self,
        access: Access,
        wait_budget: &Cell<Duration>,
        act: impl FnOnce(Duration) -> Result<T, E>,
        is_busy: fn(&E) -> bool,
    ) -> Result<T, E> {
        let recently = |at: &Mutex<Option<Instant>>| {
            lock(at).is_some_and(|at| at.elapsed() < NO_WAIT_AFTER_BUSY)
        };
        let in_vain = recently(&self.reading) || access == Access::Store && recently(&self.storing);
        let wait = if in_vain { Duration::ZERO } else { wait_budget.get() };
        let began = Instant::now();
        let answer = act(wait);
        wait_budget.set(wait_budget.get().saturating_sub(began.elapsed()));
        let is_busy = answer.as_ref().is_err_and(is_busy);
        if is_busy && wait.is_zero() {
            return answer;
        }
        let since = is_busy.then(Instant::now);
        if access == Access::Store {
            *lock(&self.storing) = since;
        }
        // A successful store shows that the file can be read too.
        if access == Access::Read || !is_busy {
            *lock(&self.reading) = since;
        }
        answer
    }
}
