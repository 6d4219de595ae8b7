//! What the stand-in knows.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::real::Real;
use crate::record::Key;

thread_local! {
    /// The key of the real object that this thread was given last: libraries
    /// load an object where they have looked it up.
    static LAST_FOUND: RefCell<Option<Arc<Key>>> = const { RefCell::new(None) };
}

/// Who answers what kernel databases are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum KernelDatabases {
    /// The stand-in: every kernel is there.
    Answered,
    /// The real library, from the files.
    Real,
    /// The real library, and the stand-in for what no file holds, so that
    /// what is asked after a miss is seen, too.
    RealThenAnswered,
}

pub(super) static MODE: AtomicU8 = AtomicU8::new(KernelDatabases::Answered as u8);

pub(super) static REAL: OnceLock<Real> = OnceLock::new();

/// Keys of the stand-in's objects, by number.
pub(super) static ANSWERED: Mutex<Vec<Arc<Key>>> = Mutex::new(Vec::new());

pub(super) fn mode() -> KernelDatabases {
    match MODE.load(Ordering::Relaxed) {
        mode if mode == KernelDatabases::Real as u8 => KernelDatabases::Real,
        mode if mode == KernelDatabases::RealThenAnswered as u8 => {
            KernelDatabases::RealThenAnswered
        }
        _ => KernelDatabases::Answered,
    }
}

/// Numbers an object of the stand-in.
pub(super) fn answer(key: &Arc<Key>) -> u64 {
    let mut keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    keys.push(Arc::clone(key));
    keys.len() as u64 - 1
}

/// The key of the stand-in's object of that number.
pub(crate) fn answered(id: u64) -> Option<Arc<Key>> {
    let keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    usize::try_from(id).ok().and_then(|id| keys.get(id)).map(Arc::clone)
}

pub(super) fn set_last_found(key: Option<Arc<Key>>) {
    LAST_FOUND.set(key);
}

/// The key of the real object that this thread was given last.
pub(crate) fn last_found() -> Option<Arc<Key>> {
    LAST_FOUND.with_borrow(Clone::clone)
}
