//! Which process this is, and what is done when it forks.
#![expect(unsafe_code, reason = "calls the C library's functions")]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use once_cell::race::OnceRef;

/// A process: neither its parent nor its children are equal to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    id: u32,
    /// How many forks led to it: ids are used again, and every PID namespace has
    /// a process 1.
    forks: u32,
}

/// Counted by the C library's `fork`, but not by those that go around it.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// What is done around every fork, in the parent.
pub(crate) struct ForkHooks {
    /// Returns whether `after` is to be called.
    pub(crate) before: fn() -> bool,
    pub(crate) after: fn(),
}

/// Setting it takes no lock, so that a child can't wait forever for a thread of
/// its parent.
static HOOKS: OnceRef<'static, ForkHooks> = OnceRef::new();

/// Sets what is done around every fork from now on. Only the first call counts.
pub(crate) fn set_fork_hooks(hooks: &'static ForkHooks) {
    HOOKS.get_or_init(|| hooks);
}

thread_local! {
    /// Whether this thread is in the middle of a fork whose `before` took hold.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// This process. The first call has the C library report forks.
pub(crate) fn process() -> Process {
    if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the functions take nothing and return, and are there as long as this library:
        // the C library forgets those of one that is unloaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    }
    Process { id: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
}

extern "C" fn before_fork() {
    FORKING.set(HOOKS.get().is_some_and(|hooks| (hooks.before)()));
}

extern "C" fn in_parent() {
    if FORKING.replace(false)
        && let Some(hooks) = HOOKS.get()
    {
        (hooks.after)();
    }
}

extern "C" fn in_child() {
    FORKING.set(false);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
impl Process {
    pub(crate) fn test(id: u32) -> Self {
        Self { id, forks: u32::MAX }
    }
}
