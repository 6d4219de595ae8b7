//! Locking a mutex whatever a thread did that held it before.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex whose content is whole between any two steps: a panic of the
/// caller's compiler or callback elsewhere is no reason to stop.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
