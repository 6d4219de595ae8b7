//! Waits for others who have the user's kdb locked: as long as a call may wait,
//! but not again for each kernel.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutex::lock;
use crate::wait_budget::WaitBudget;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_wait_in_vain_no_call_waits() {
        const BUSY: Duration = Duration::from_secs(1000);
        let history = BusyHistory::default();
        let wait = |access, wait_budget: &WaitBudget, busy| {
            history.waiting(access, wait_budget, |it| it, |_| busy)
        };
        let call = |access, busy| wait(access, &WaitBudget::new(BUSY), busy);
        let wait_budget = WaitBudget::new(BUSY);
        wait_budget.spend(Duration::from_secs(999));
        let left = wait(Access::Read, &wait_budget, false);
        assert!(left <= Duration::from_secs(1), "{left:?} after another file was waited for");
        assert_eq!(call(Access::Read, true), BUSY, "another call waits in full");
        assert_eq!(call(Access::Read, true), Duration::ZERO);
        assert_eq!(call(Access::Store, true), Duration::ZERO);
        assert_eq!(call(Access::Read, false), Duration::ZERO, "it is free again");
        assert_eq!(call(Access::Read, false), BUSY);
        // A program that stores still lets others read.
        assert_eq!(call(Access::Store, true), BUSY);
        assert_eq!(call(Access::Read, false), BUSY);
        assert_eq!(call(Access::Store, true), Duration::ZERO);
        assert_eq!(call(Access::Store, false), Duration::ZERO);
        assert_eq!(call(Access::Store, false), BUSY);
    }
}
