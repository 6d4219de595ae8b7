//! What only the C library tells: whether the program has more rights than its
//! caller, and when the process forks.
#![expect(unsafe_code, reason = "calls the C library's functions")]

use std::cell::Cell;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::gate;

/// A process, as against its parent and its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    id: u32,
    /// How often its ancestors and it forked, since ids are used again, and
    /// each name space of processes has a first one.
    forks: u32,
}

/// Counted by the C library's `fork`, but not by those that go around it.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in the middle of a fork that keeps others out of
    /// SQLite.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// The process that this is.
pub(crate) fn process() -> Process {
    if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the functions take nothing and return, and are there as long as this library:
        // the C library forgets those of one that is unloaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    }
    Process { id: process::id(), forks: FORKS.load(Ordering::Relaxed) }
}

/// SQLite has mutexes for the whole process, and can't be used by a child if
/// a thread of its parent held one.
extern "C" fn before_fork() {
    FORKING.set(gate::close_for_fork());
}

extern "C" fn in_parent() {
    if FORKING.replace(false) {
        gate::open_after_fork();
    }
}

/// The child has a gate of its own.
extern "C" fn in_child() {
    FORKING.set(false);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Whether the program has rights that its caller has not: it is set-user-ID
/// or set-group-ID, or has file capabilities.
///
/// Source: Linux, getauxval(3), `AT_SECURE`.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the function takes any number, and reads what the kernel gave the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The home directory that the password database has for the user as whom
/// files are accessed.
pub(crate) fn home_of_user() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok()??;
    Some(user.dir).filter(|home| home.is_absolute())
}

#[cfg(test)]
impl Process {
    pub(crate) fn test(id: u32) -> Self {
        Self { id, forks: u32::MAX }
    }
}
