//! SQLite: kernel databases are answered here, or asked of the real library;
//! all other databases are the real library's.

mod functions;
mod query;
mod real;
mod statement;

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::record::Key;
use real::Real;

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

static MODE: AtomicU8 = AtomicU8::new(KernelDatabases::Answered as u8);
static REAL: OnceLock<Real> = OnceLock::new();
/// Keys of the stand-in's objects, by number.
static ANSWERED: Mutex<Vec<Arc<Key>>> = Mutex::new(Vec::new());

thread_local! {
    /// The key of the real object that this thread was given last: libraries
    /// load an object where they have looked it up.
    static LAST_FOUND: RefCell<Option<Arc<Key>>> = const { RefCell::new(None) };
}

/// Chooses who answers, for connections that are opened from now on.
pub fn kernel_databases(mode: KernelDatabases) {
    MODE.store(mode as u8, Ordering::Relaxed);
}

/// Loads the real SQLite, whose own calls do not come back to the stand-in.
///
/// # Errors
/// The dynamic loader's words, where the library can't be loaded.
pub fn load_sqlite(library: &Path) -> Result<(), String> {
    let real = Real::load(library)?;
    REAL.set(real).map_err(|_| "SQLite was loaded already".to_owned())
}

fn mode() -> KernelDatabases {
    match MODE.load(Ordering::Relaxed) {
        mode if mode == KernelDatabases::Real as u8 => KernelDatabases::Real,
        mode if mode == KernelDatabases::RealThenAnswered as u8 => {
            KernelDatabases::RealThenAnswered
        }
        _ => KernelDatabases::Answered,
    }
}

/// Whether the stand-in answers for what real databases don't have.
pub(crate) fn answers_missing() -> bool {
    mode() == KernelDatabases::RealThenAnswered
}

/// Numbers an object of the stand-in.
fn answer(key: &Arc<Key>) -> u64 {
    let mut keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    keys.push(Arc::clone(key));
    keys.len() as u64 - 1
}

/// The key of the stand-in's object of that number.
pub(crate) fn answered(id: u64) -> Option<Arc<Key>> {
    let keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    usize::try_from(id).ok().and_then(|id| keys.get(id)).map(Arc::clone)
}

fn set_last_found(key: Option<Arc<Key>>) {
    LAST_FOUND.set(key);
}

/// The key of the real object that this thread was given last.
pub(crate) fn last_found() -> Option<Arc<Key>> {
    LAST_FOUND.with_borrow(Clone::clone)
}
