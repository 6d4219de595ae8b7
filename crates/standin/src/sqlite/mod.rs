//! SQLite: lookups in kernel databases are answered here or by the real library; all other
//! databases belong to the real library.

mod functions;
mod query;
mod real;
mod statement;

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::record::Key;
use real::RealSqlite;

/// How lookups in kernel databases are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelDatabases {
    /// By the stand-in, which has every kernel.
    Answered,
    /// By the real library, from the files.
    Real,
    /// By the real library, and by the stand-in for kernels that no file contains, so that requests
    /// after a miss are seen, too.
    RealThenAnswered,
}

/// Whether a kernel is withheld.
type Withholds = Box<dyn Fn(&Key) -> bool + Send + Sync>;

thread_local! {
    /// The key of the last real object that this thread got: libraries load an object in the thread
    /// that looked it up.
    static LAST_FOUND: RefCell<Option<Arc<Key>>> = const { RefCell::new(None) };
}

static MODE: RwLock<KernelDatabases> = RwLock::new(KernelDatabases::Answered);
static REAL: OnceLock<RealSqlite> = OnceLock::new();
static WITHHOLDS: OnceLock<Withholds> = OnceLock::new();
/// Keys of the stand-in's objects, by number.
static ANSWERED: Mutex<Vec<Arc<Key>>> = Mutex::new(Vec::new());

/// Sets how lookups are answered, for connections opened from now on.
pub fn kernel_databases(mode: KernelDatabases) {
    *MODE.write().unwrap_or_else(PoisonError::into_inner) = mode;
}

fn mode() -> KernelDatabases {
    *MODE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the stand-in from now on answer for these kernels as if no database contained them; once
/// for the process. Real databases are not affected.
///
/// # Panics
/// If kernels were withheld already.
pub fn withhold(kernels: impl Fn(&Key) -> bool + Send + Sync + 'static) {
    assert!(WITHHOLDS.set(Box::new(kernels)).is_ok(), "kernels were withheld already");
}

fn is_withheld(key: &Key) -> bool {
    WITHHOLDS.get().is_some_and(|withholds| withholds(key))
}

/// Loads the real SQLite, whose own calls do not reach the stand-in.
pub fn load_sqlite(library: &Path) -> Result<(), String> {
    let real = RealSqlite::load(library)?;
    REAL.set(real).map_err(|_| "SQLite was loaded already".to_owned())
}

/// Whether the stand-in answers for kernels that real databases lack.
pub(crate) fn answers_missing() -> bool {
    mode() == KernelDatabases::RealThenAnswered
}

/// Returns the number of a new object for a key.
fn answer(key: &Arc<Key>) -> u64 {
    let mut keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    keys.push(Arc::clone(key));
    keys.len() as u64 - 1
}

/// The key of the stand-in's object with that number.
pub(crate) fn answered(id: u64) -> Option<Arc<Key>> {
    let keys = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    usize::try_from(id).ok().and_then(|id| keys.get(id)).map(Arc::clone)
}

/// The key of the last real object that this thread got.
pub(crate) fn last_found() -> Option<Arc<Key>> {
    LAST_FOUND.with_borrow(Clone::clone)
}
