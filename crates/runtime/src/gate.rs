//! Who is inside SQLite: any number of threads, or nobody while one of them
//! does what SQLite must not see.
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

/// How long to wait for those inside. They take a millisecond, but for one who
/// waits for another program.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at the gate.
const PAUSE: Duration = Duration::from_micros(50);

static GATE: PerProcess<Gate> = PerProcess::new();

/// A process's gate.
pub(crate) struct Gate {
    inside: AtomicU32,
    closed: AtomicBool,
    /// It is closed by who forks.
    for_fork: AtomicBool,
    /// Nobody was inside when the process was forked.
    usable: bool,
}

/// A thread that is inside.
pub(crate) struct Inside(&'static Gate);

/// A thread that keeps the others out. It may use SQLite itself.
pub(crate) struct Alone(&'static Gate);

/// This process's. What belongs to one process keeps it.
pub(crate) fn of_process() -> &'static Gate {
    GATE.get(|parent| Gate::new(parent.is_none_or(Gate::allows_children)))
}

/// Keeps all others out for as long as a fork takes, if they come out in time.
pub(crate) fn close_for_fork() -> bool {
    let gate = of_process();
    let closed = gate.close(PATIENCE);
    if closed {
        gate.for_fork.store(true, Ordering::SeqCst);
    }
    closed
}

/// Ends what [`close_for_fork`] began, in the parent.
pub(crate) fn open_after_fork() {
    let gate = of_process();
    gate.for_fork.store(false, Ordering::SeqCst);
    gate.closed.store(false, Ordering::SeqCst);
}

/// Why nothing can be read where a thread can't go inside.
pub(crate) fn forked(path: PathBuf) -> ReadError {
    let why = "this process was forked while another thread was reading or writing a kdb";
    ReadError::Io { path, source: io::Error::other(why) }
}

impl Gate {
    fn new(usable: bool) -> Self {
        Self {
            inside: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            for_fork: AtomicBool::new(false),
            usable,
        }
    }

    /// Goes inside, when nobody is alone any more; none where SQLite can't be
    /// used in this process. No thread may do so twice at a time.
    pub(crate) fn enter(&'static self) -> Option<Inside> {
        if !self.usable {
            return None;
        }
        loop {
            self.inside.fetch_add(1, Ordering::SeqCst);
            if !self.closed.load(Ordering::SeqCst) {
                return Some(Inside(self));
            }
            self.inside.fetch_sub(1, Ordering::SeqCst);
            while self.closed.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Keeps all others out; none where they did not come out in time.
    pub(crate) fn alone(&'static self) -> Option<Alone> {
        (self.usable && self.close(PATIENCE)).then_some(Alone(self))
    }

    fn close(&self, patience: Duration) -> bool {
        let began = Instant::now();
        let in_time = || {
            thread::sleep(PAUSE);
            began.elapsed() < patience
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

    /// Asked by a child, of what its parent had.
    fn allows_children(&self) -> bool {
        // Those who come to a closed gate are counted for a moment.
        let nobody = self.for_fork.load(Ordering::SeqCst)
            || !self.closed.load(Ordering::SeqCst) && self.inside.load(Ordering::SeqCst) == 0;
        self.usable && nobody
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.closed.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_inside_or_one_is_alone() {
        let gate: &'static Gate = Box::leak(Box::new(Gate::new(true)));
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_some() && second.is_some());
        assert!(!gate.close(Duration::ZERO));
        drop((first, second));
        let alone = gate.alone().expect("nobody is inside");
        assert!(!gate.close(Duration::ZERO));
        let entered = AtomicBool::new(false);
        thread::scope(|scope| {
            let enter = scope.spawn(|| {
                let inside = gate.enter();
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
            let gate = Gate::new(true);
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
        assert!(!Gate::new(false).allows_children(), "nor can its parent");
        let gate: &'static Gate = Box::leak(Box::new(Gate::new(false)));
        assert!(gate.enter().is_none() && gate.alone().is_none());
    }
}
