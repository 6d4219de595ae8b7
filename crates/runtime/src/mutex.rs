//! Locks a mutex even if a thread panicked while holding it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose content is consistent between any two steps. A panic of
/// the caller's compiler or callback in another thread is no reason to stop.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
