//! Who is inside SQLite: any number of threads, or nobody while one of them
//! does what SQLite must not see.
//!
//! There are two such things. Closing a file that SQLite has open drops the
//! process's locks on it (SQLite, "How To Corrupt An SQLite Database File",
//! section 2.2). And a child can't use SQLite whose parent forked while a
//! thread was inside: it may have held a mutex, and locks that the child would
//! take for its own (section 2.6).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::per_process::PerProcess;

/// How long to wait for those inside. They take a millisecond, but for one who
/// waits for another program.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at the gate.
const PAUSE: Duration = Duration::from_micros(50);

static GATE: PerProcess<Gate> = PerProcess::new();

struct Gate {
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

fn gate() -> &'static Gate {
    GATE.get(|parent| Gate {
        inside: AtomicU32::new(0),
        closed: AtomicBool::new(false),
        for_fork: AtomicBool::new(false),
        usable: parent.is_none_or(Gate::allows_children),
    })
}

/// Goes inside, when nobody is alone any more; none where SQLite can't be used
/// in this process. No thread may do so twice at a time.
pub(crate) fn enter() -> Option<Inside> {
    let gate = gate();
    while gate.usable {
        gate.inside.fetch_add(1, Ordering::SeqCst);
        if !gate.closed.load(Ordering::SeqCst) {
            return Some(Inside(gate));
        }
        gate.inside.fetch_sub(1, Ordering::SeqCst);
        while gate.closed.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
        }
    }
    None
}

/// Keeps all others out; none where they did not come out in time.
pub(crate) fn alone() -> Option<Alone> {
    let gate = gate();
    (gate.usable && gate.close()).then_some(Alone(gate))
}

/// Keeps all others out for as long as a fork takes, if they come out in time.
pub(crate) fn close_for_fork() -> bool {
    let gate = gate();
    let closed = gate.close();
    if closed {
        gate.for_fork.store(true, Ordering::SeqCst);
    }
    closed
}

/// Ends what [`close_for_fork`] began, in the parent.
pub(crate) fn open_after_fork() {
    let gate = gate();
    gate.for_fork.store(false, Ordering::SeqCst);
    gate.closed.store(false, Ordering::SeqCst);
}

impl Gate {
    fn close(&self) -> bool {
        let began = Instant::now();
        let in_time = || {
            thread::sleep(PAUSE);
            began.elapsed() < PATIENCE
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
