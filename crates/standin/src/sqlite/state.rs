//! The global state of the stand-in.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::real::RealSqlite;
use crate::record::Key;

thread_local! {
    /// The key of the last real object that this thread got: libraries load an object in the thread
    /// that looked it up.
    static LAST_FOUND: RefCell<Option<Arc<Key>>> = const { RefCell::new(None) };
}

/// How lookups in kernel databases are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum KernelDatabases {
    /// By the stand-in, which has every kernel.
    Answered,
    /// By the real library, from the files.
    Real,
    /// By the real library, and by the stand-in for kernels that no file contains, so that requests
    /// after a miss are seen, too.
    RealThenAnswered,
}

pub(super) static MODE: AtomicU8 = AtomicU8::new(KernelDatabases::Answered as u8);

pub(super) static REAL: OnceLock<RealSqlite> = OnceLock::new();

/// Whether a kernel is withheld.
type Withholds = dyn Fn(&Key) -> bool + Send + Sync;

pub(super) static WITHHOLDS: OnceLock<Box<Withholds>> = OnceLock::new();

pub(super) fn is_withheld(key: &Key) -> bool {
    WITHHOLDS.get().is_some_and(|withholds| withholds(key))
}

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

/// Returns the number of a new object for a key.
pub(super) fn answer(key: &Arc<Key>) -> u64 {
    let mut keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    keys.push(Arc::clone(key));
    keys.len() as u64 - 1
}

/// The key of the stand-in's object with that number.
pub(crate) fn answered(id: u64) -> Option<Arc<Key>> {
    let keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    usize::try_from(id).ok().and_then(|id| keys.get(id)).map(Arc::clone)
}

pub(super) fn set_last_found(key: Option<Arc<Key>>) {
    LAST_FOUND.set(key);
}

/// The key of the last real object that this thread got.
pub(crate) fn last_found() -> Option<Arc<Key>> {
    LAST_FOUND.with_borrow(Clone::clone)
}
