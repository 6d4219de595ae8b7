//! Waiting for others who have the file locked: as long as a call has patience,
//! but not for each kernel anew.

use std::time::{Duration, Instant};

use super::UserFile;
use crate::lock;
use crate::patience::Patience;

/// For how long nobody waits again for a file, after one waited in vain: who
/// had it locked that long most likely keeps it, and each kernel would wait.
const NO_WAIT_AFTER_BUSY: Duration = Duration::from_secs(60);

/// When somebody waited in vain, if nobody has got at the file since. Others
/// may let it be read and not be written.
#[derive(Default)]
pub(super) struct BusySince {
    reading: Option<Instant>,
    storing: Option<Instant>,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    Read,
    Store,
}

impl UserFile {
    /// Does something that waits for others: as long as there is patience, but
    /// not at all if another did in vain a while ago.
    pub(super) fn waiting<T>(
        &self,
        to: To,
        patience: &Patience,
        act: impl FnOnce(Duration) -> T,
        is_busy: impl FnOnce(&T) -> bool,
    ) -> T {
        let in_vain = lock(&self.busy_since).forbids_to_wait(to);
        let wait = if in_vain { Duration::ZERO } else { patience.left() };
        let began = Instant::now();
        let answer = act(wait);
        patience.spend(began.elapsed());
        if !is_busy(&answer) {
            lock(&self.busy_since).set(to, None);
        } else if !wait.is_zero() {
            lock(&self.busy_since).set(to, Some(Instant::now()));
        }
        answer
    }
}

impl BusySince {
    fn forbids_to_wait(&self, to: To) -> bool {
        let recently = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < NO_WAIT_AFTER_BUSY);
        recently(self.reading) || to == To::Store && recently(self.storing)
    }

    /// Who could store could read too.
    fn set(&mut self, to: To, since: Option<Instant>) {
        match to {
            To::Read => self.reading = since,
            To::Store if since.is_none() => *self = Self::default(),
            To::Store => self.storing = since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserSettings;

    #[test]
    fn a_call_waits_once_and_after_a_wait_in_vain_nobody_does() {
        const BUSY: Duration = Duration::from_secs(1000);
        let settings = UserSettings {
            max_object_bytes: 1,
            limit_bytes: 1,
            busy: BUSY,
            look_only: false,
            temp_dir: "/nonexistent".into(),
        };
        let file = UserFile::new("/nonexistent".into(), "a.ukdb".to_owned(), settings);
        let wait = |to, patience: &Patience, busy| file.waiting(to, patience, |it| it, |_| busy);
        let call = |to, busy| wait(to, &Patience::new(BUSY), busy);
        let patience = Patience::new(BUSY);
        patience.spend(Duration::from_secs(999));
        let left = wait(To::Read, &patience, false);
        assert!(left <= Duration::from_secs(1), "{left:?} after another file was waited for");
        assert_eq!(call(To::Read, true), BUSY, "another call waits in full");
        assert_eq!(call(To::Read, true), Duration::ZERO);
        assert_eq!(call(To::Store, true), Duration::ZERO);
        assert_eq!(call(To::Read, false), Duration::ZERO, "it is free again");
        assert_eq!(call(To::Read, false), BUSY);
        // Who stores lets others read.
        assert_eq!(call(To::Store, true), BUSY);
        assert_eq!(call(To::Read, false), BUSY);
        assert_eq!(call(To::Store, true), Duration::ZERO);
        assert_eq!(call(To::Store, false), Duration::ZERO);
        assert_eq!(call(To::Store, false), BUSY);
    }
}
