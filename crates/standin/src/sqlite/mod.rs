//! SQLite: kernel databases are answered here, or asked of the real library;
//! all other databases are the real library's.

mod functions;
mod query;
mod real;
mod state;
mod statement;

use std::path::Path;
use std::sync::atomic::Ordering;

use self::state::{MODE, REAL, mode};
use real::Real;

pub use self::state::KernelDatabases;
pub(crate) use self::state::{answered, last_found};

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

/// Whether the stand-in answers for what real databases don't have.
pub(crate) fn answers_missing() -> bool {
    mode() == KernelDatabases::RealThenAnswered
}
