//! SQLite: lookups in kernel databases are answered here or by the real library; all other
//! databases belong to the real library.

mod functions;
mod query;
mod real;
mod state;
mod statement;

use std::path::Path;
use std::sync::atomic::Ordering;

use self::state::{MODE, REAL, WITHHOLDS, mode};
use real::RealSqlite;

use crate::record::Key;

pub use self::state::KernelDatabases;
pub(crate) use self::state::{answered, last_found};

/// Sets how lookups are answered, for connections opened from now on.
pub fn kernel_databases(mode: KernelDatabases) {
    MODE.store(mode as u8, Ordering::Relaxed);
}

/// Makes the stand-in from now on answer for these kernels as if no database contained them; once
/// for the process. Real databases are not affected.
///
/// # Panics
/// If kernels were withheld already.
pub fn withhold(kernels: impl Fn(&Key) -> bool + Send + Sync + 'static) {
    assert!(WITHHOLDS.set(Box::new(kernels)).is_ok(), "kernels were withheld already");
}

/// Loads the real SQLite, whose own calls do not reach the stand-in.
///
/// # Errors
/// The dynamic loader's message, if the library can't be loaded.
pub fn load_sqlite(library: &Path) -> Result<(), String> {
    let real = RealSqlite::load(library)?;
    REAL.set(real).map_err(|_| "SQLite was loaded already".to_owned())
}

/// Whether the stand-in answers for kernels that real databases lack.
pub(crate) fn answers_missing() -> bool {
    mode() == KernelDatabases::RealThenAnswered
}
