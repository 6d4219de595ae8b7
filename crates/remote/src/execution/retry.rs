//! Decides which calls are repeated, when, and for how long.

use std::future::Future;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tonic::{Code, Status};
use uuid::Uuid;

/// The pause after the first failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often an operation may fail if the server answers.
pub(crate) const ATTEMPTS: u32 = 5;

/// How often an operation may fail as if the server were absent while it answers others: proxies
/// and restarts cut streams, but not endlessly.
const MOST_ABSENCES: u32 = 20;

/// Whether a call with this error may succeed the next time.
pub(crate) fn is_passing(code: Code) -> bool {
    is_absence(code)
        || matches!(code, Code::ResourceExhausted | Code::Aborted | Code::Internal | Code::DataLoss)
}

/// Whether this error means that there is no server, or no longer one.
pub(crate) fn is_absence(code: Code) -> bool {
    matches!(code, Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded)
}

/// Repeats calls. An absent server is waited for up to the limit, counted from its last answer to
/// any call. If the server answers, an operation has a fixed number of attempts, whatever the
/// errors are.
pub(crate) struct Retry {
    /// How long to wait for an absent server.
    pub(crate) wait_limit: Duration,
    answered: Mutex<Instant>,
}

impl Retry {
    pub(crate) fn new(wait_limit: Duration) -> Self {
        Self { wait_limit, answered: Mutex::new(Instant::now()) }
    }

    /// Makes a call until it succeeds, or finally fails.
    pub(crate) async fn call<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut attempts = self.attempts();
        loop {
            match call().await {
                Ok(answer) => {
                    self.note_answer();
                    return Ok(answer);
                }
                Err(status) => attempts.failed(status).await?,
            }
        }
    }

    /// The attempts of one operation.
    pub(crate) fn attempts(&self) -> Attempts<'_> {
        let begun = Instant::now();
        Attempts { retry: self, failures: 0, present: 0, begun, last: begun }
    }

    /// Records that the server answered.
    pub(crate) fn note_answer(&self) {
        *self.answered.lock().expect("no panic inside") = Instant::now();
    }
}

/// The attempts of one operation.
pub(crate) struct Attempts<'a> {
    retry: &'a Retry,
    failures: u32,
    /// Failures between which the server answered another call.
    present: u32,
    begun: Instant,
    last: Instant,
}

impl Attempts<'_> {
    /// Whether the server is absent, rather than unable to do this operation.
    pub(crate) fn is_absence(&self, status: &Status) -> bool {
        is_absence(status.code()) && self.present < MOST_ABSENCES
    }

    /// Waits before the next attempt. Returns the error if there should be none.
    pub(crate) async fn failed(&mut self, status: Status) -> Result<(), Status> {
        self.failures += 1;
        let code = status.code();
        let answered = *self.retry.answered.lock().expect("no panic inside");
        // If the client was suspended, the absence counts only from the beginning of the operation.
        let absent = self.begun.max(answered).elapsed();
        self.present += u32::from(answered > self.last);
        self.last = Instant::now();
        let again = if is_absence(code) {
            absent < self.retry.wait_limit && self.present < MOST_ABSENCES
        } else {
            is_passing(code) && self.failures < ATTEMPTS
        };
        if !again {
            return Err(status);
        }
        tracing::debug!(?code, message = status.message(), self.failures, "a call is made again");
        tokio::time::sleep(pause(self.failures)).await;
        Ok(())
    }
}

/// The pause after this many failures: a random part of a time that doubles, so that clients that
/// failed together do not return together.
fn pause(failures: u32) -> Duration {
    let whole = FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    let part = 0.5 + f64::from(Uuid::new_v4().as_bytes()[0]) / 512.0;
    whole.min(LONGEST_PAUSE).mul_f64(part)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn calls(wait_limit: Duration, code: Code, until: u32) -> (u32, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let count = Cell::new(0);
        let answer = runtime.block_on(Retry::new(wait_limit).call(|| {
            count.set(count.get() + 1);
            let done = count.get() == until;
            async move { if done { Ok(()) } else { Err(Status::new(code, "no")) } }
        }));
        (count.get(), answer.is_ok())
    }

    #[test]
    fn each_code_has_its_own_number_of_attempts() {
        let long = Duration::from_secs(600);
        assert_eq!(calls(long, Code::Unavailable, 4), (4, true));
        assert_eq!(calls(Duration::ZERO, Code::Unavailable, 4), (1, false));
        assert_eq!(calls(Duration::ZERO, Code::Internal, 3), (3, true));
        assert_eq!(calls(long, Code::Internal, u32::MAX), (ATTEMPTS, false));
        assert_eq!(calls(long, Code::PermissionDenied, u32::MAX), (1, false));
    }

    /// An action may make a server fail in a way that looks like absence, as
    /// an exception in one written in Python does.
    #[test]
    fn a_server_that_answers_other_calls_is_not_waited_for_endlessly() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let count = Cell::new(0);
        let retry = Retry::new(Duration::from_secs(600));
        let answer: Result<(), _> = runtime.block_on(retry.call(|| {
            count.set(count.get() + 1);
            retry.note_answer();
            async { Err(Status::new(Code::Unknown, "no")) }
        }));
        assert_eq!(answer.unwrap_err().code(), Code::Unknown);
        assert_eq!(count.get(), MOST_ABSENCES);
    }

    #[test]
    fn pauses_grow_and_stay_bounded() {
        for failures in 1..40 {
            let pause = pause(failures);
            assert!(pause >= FIRST_PAUSE / 2 && pause <= LONGEST_PAUSE, "{failures}: {pause:?}");
        }
        assert!(pause(8) > pause(1));
    }
}
