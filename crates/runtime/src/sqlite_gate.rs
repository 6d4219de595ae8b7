//! A lock around SQLite. Either any number of threads use SQLite at the same
//! time, or one thread excludes all others while it does what conflicts with
//! SQLite.
//!
//! Two operations conflict. Closing a file that SQLite has open drops the
//! process's locks on it (SQLite, "How To Corrupt An SQLite Database File",
//! section 2.2). And if a process forks while a thread is inside SQLite, its
//! child can't use SQLite: the thread may hold a mutex, and locks that the
//! child would consider its own (section 2.6).

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gfxpack_kdb::ReadError;

use crate::per_process::PerProcess;

/// How long to wait for the threads inside. They need a millisecond, unless one
/// waits for another program.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_micros(50);

static GATE: PerProcess<SqliteGate> = PerProcess::new();

/// The lock of one process.
pub(crate) struct SqliteGate {
    inside: AtomicU32,
    closed: AtomicBool,
    /// Whether it is closed for the time of a fork.
    for_fork: AtomicBool,
    /// Whether SQLite can be used: no thread was inside when the process was
    /// forked.
    usable: bool,
}

/// A thread that is inside the gate.
pub(crate) struct Shared(&'static SqliteGate);

/// A thread that excludes all others. It may use SQLite itself.
pub(crate) struct Exclusive(&'static SqliteGate);

/// This process's gate. The reference is valid as long as the process lives.
pub(crate) fn for_this_process() -> &'static SqliteGate {
    GATE.get(|parent| SqliteGate::new(parent.is_none_or(SqliteGate::allows_children)))
}

/// Excludes all others during a fork, if the threads inside leave in time.
pub(crate) fn close_for_fork() -> bool {
    let gate = for_this_process();
    let closed = gate.close(LONGEST_WAIT);
    if closed {
        gate.for_fork.store(true, Ordering::SeqCst);
    }
    closed
}

/// Reopens the gate in the parent, after [`close_for_fork`].
pub(crate) fn open_after_fork() {
    let gate = for_this_process();
    gate.for_fork.store(false, Ordering::SeqCst);
    gate.closed.store(false, Ordering::SeqCst);
}

/// The error for a thread that can't enter the gate.
pub(crate) fn forked(path: &Path) -> ReadError {
    let why = "this process was forked while another thread was reading or writing a kdb";
    ReadError::io(path, io::Error::other(why))
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

    /// Waits until no thread has the gate exclusively, and enters; `None` if
    /// SQLite can't be used in this process. A thread must not enter twice.
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

    /// Waits until no thread is inside, and excludes all others; `None` if that
    /// took too long.
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

    /// Whether a child of the process can use SQLite. The child calls this on
    /// the copy of its parent's gate.
    fn allows_children(&self) -> bool {
        // Threads that arrive at a closed gate are counted briefly.
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
    fn many_threads_are_inside_or_one_excludes_all_others() {
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
            // The thread is counted briefly, and never stays inside.
            while gate.inside.load(Ordering::SeqCst) > 0 {}
            assert!(!entered.load(Ordering::SeqCst));
            drop(alone);
            assert!(enter.join().expect("the thread ends"));
        });
        assert!(gate.close(Duration::ZERO));
    }

    #[test]
    fn a_child_can_use_sqlite_unless_a_thread_was_inside() {
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
