//! Identifies processes, closes the gate around forks, and tells of whom a process has its rights.
#![expect(unsafe_code, reason = "calls the C library's functions")]

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::sqlite_gate;

/// Identifies a process; differs from its parent and its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    id: u32,
    /// Number of forks that led to it: ids are reused, and every PID namespace
    /// has a process 1.
    forks: u32,
}

/// Counts the C library's `fork`, but not forks that bypass it.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in the middle of a fork, and has closed the gate for it.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// This process. The first call registers the fork handlers of the C library.
pub(crate) fn process() -> Process {
    if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the functions take nothing and return, and are there as long as this library:
        // the C library forgets those of one that is unloaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    }
    Process { id: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
}

extern "C" fn before_fork() {
    FORKING.set(sqlite_gate::close_for_fork());
}

extern "C" fn in_parent() {
    if FORKING.replace(false) {
        sqlite_gate::open_after_fork();
    }
}

extern "C" fn in_child() {
    FORKING.set(false);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Whether the program has rights that its caller lacks: it is set-user-ID or
/// set-group-ID, or has file capabilities.
///
/// Source: Linux, getauxval(3), `AT_SECURE`.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the function takes any number, and reads what the kernel gave the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The home directory of the effective user in the password database.
pub(crate) fn home_of_user() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok()??;
    Some(user.dir).filter(|home| home.is_absolute())
}
