//! A lock around SQLite: any number of threads use it at a time, or one thread
//! keeps all others out while it does what SQLite must not see.
//!
//! There are two such things. Closing a file that SQLite has open drops the
//! process's locks on it (SQLite, "How To Corrupt An SQLite Database File",
//! section 2.2). And a child can't use SQLite whose parent forked while a
//! thread was inside: it may have held a mutex, and locks that the child would
//! take for its own (section 2.6).

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gfxpack_kdb::ReadError;

use crate::per_process::PerProcess;
use crate::process::{ForkHooks, set_fork_hooks};

/// How long to wait for the threads inside. They take a millisecond, unless one
/// waits for another program.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Between two attempts.
const PAUSE: Duration = Duration::from_micros(50);

static GATE: PerProcess<SqliteGate> = PerProcess::new();

/// The lock of one process.
pub(crate) struct SqliteGate {
    inside: AtomicU32,
    closed: AtomicBool,
    /// It is closed for the time of a fork.
    for_fork: AtomicBool,
    /// Nobody was inside when the process was forked.
    usable: bool,
}

/// A thread that is inside.
pub(crate) struct Shared(&'static SqliteGate);

/// A thread that keeps the others out. It may use SQLite itself.
pub(crate) struct Exclusive(&'static SqliteGate);

/// This process's gate, which those who live as long as the process keep.
pub(crate) fn for_this_process() -> &'static SqliteGate {
    // Before anybody is inside.
    set_fork_hooks(&ForkHooks { before: close_for_fork, after: open_after_fork });
    GATE.get(|parent| SqliteGate::new(parent.is_none_or(SqliteGate::allows_children)))
}

/// Keeps all others out for as long as a fork takes, if they come out in time.
fn close_for_fork() -> bool {
    let gate = for_this_process();
    let closed = gate.close(LONGEST_WAIT);
    if closed {
        gate.for_fork.store(true, Ordering::SeqCst);
    }
    closed
}

/// Ends what [`close_for_fork`] began, in the parent.
fn open_after_fork() {
    let gate = for_this_process();
    gate.for_fork.store(false, Ordering::SeqCst);
    gate.closed.store(false, Ordering::SeqCst);
}

/// The error for a thread that can't enter.
pub(crate) fn forked(path: PathBuf) -> ReadError {
    let why = "this process was forked while another thread was reading or writing a kdb";
    ReadError::Io { path, source: io::Error::other(why) }
}

impl SqliteGate {
    fn new(usable: bool) -> Self {
        Self {
            inside: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            for_fork: AtomicBool::new(false),
            usable,
        }
    }

    /// Waits until no thread has the gate to itself, and enters; `None` if SQLite
    /// can't be used in this process. No thread may enter twice at a time.
    pub(crate) fn enter_shared(&'static self) -> Option<Shared> {
        if !self.usable {
            return None;
        }
        loop {
            self.inside.fetch_add(1, Ordering::SeqCst);
            if !self.closed.load(Ordering::SeqCst) {
                return Some(Shared(self));
            }
            self.inside.fetch_sub(1, Ordering::SeqCst);
            while self.closed.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Waits until nobody is inside, and keeps all others out; `None` if that took
    /// too long.
    pub(crate) fn enter_exclusive(&'static self) -> Option<Exclusive> {
        (self.usable && self.close(LONGEST_WAIT)).then_some(Exclusive(self))
    }

    fn close(&self, longest: Duration) -> bool {
        let began = Instant::now();
        let in_time = || {
            thread::sleep(PAUSE);
            began.elapsed() < longest
        };
        while self.closed.swap(true, Ordering::SeqCst) {
            if !in_time() {
                return false;
            }
        }
        while self.inside.load(Ordering::SeqCst) > 0 {
            if !in_time() {
                self.closed.store(false, Ordering::SeqCst);
                return false;
            }
        }
        true
    }

    /// Whether a child of the process can use SQLite. Asked by the child, of the
    /// copy of its parent's gate.
    fn allows_children(&self) -> bool {
        // Those who come to a closed gate are counted for a moment.
        let nobody = self.for_fork.load(Ordering::SeqCst)
            || !self.closed.load(Ordering::SeqCst) && self.inside.load(Ordering::SeqCst) == 0;
        self.usable && nobody
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        self.0.closed.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_inside_or_one_is_alone() {
        let gate: &'static SqliteGate = Box::leak(Box::new(SqliteGate::new(true)));
        let (first, second) = (gate.enter_shared(), gate.enter_shared());
        assert!(first.is_some() && second.is_some());
        assert!(!gate.close(Duration::ZERO));
        drop((first, second));
        let alone = gate.enter_exclusive().expect("nobody is inside");
        assert!(!gate.close(Duration::ZERO));
        let entered = AtomicBool::new(false);
        thread::scope(|scope| {
            let enter = scope.spawn(|| {
                let inside = gate.enter_shared();
                entered.store(true, Ordering::SeqCst);
                inside.is_some()
            });
            // It is counted for a moment, and never stays.
            while gate.inside.load(Ordering::SeqCst) > 0 {}
            assert!(!entered.load(Ordering::SeqCst));
            drop(alone);
            assert!(enter.join().expect("the thread ends"));
        });
        assert!(gate.close(Duration::ZERO));
    }

    #[test]
    fn a_child_can_use_sqlite_unless_somebody_was_inside() {
        let check = |inside, closed, for_fork, expected| {
            let gate = SqliteGate::new(true);
            gate.inside.store(inside, Ordering::SeqCst);
            gate.closed.store(closed, Ordering::SeqCst);
            gate.for_fork.store(for_fork, Ordering::SeqCst);
            assert_eq!(gate.allows_children(), expected, "{inside} {closed} {for_fork}");
        };
        check(0, false, false, true);
        check(1, false, false, false);
        check(0, true, false, false);
        check(0, true, true, true);
        check(1, true, true, true);
        assert!(!SqliteGate::new(false).allows_children(), "nor can its parent");
        let gate: &'static SqliteGate = Box::leak(Box::new(SqliteGate::new(false)));
        assert!(gate.enter_shared().is_none() && gate.enter_exclusive().is_none());
    }
}
