//! Files in which libraries look kernels up, whatever their format.

mod kdb;
mod kernel_store;
mod rocfft;

use std::path::Path;

pub(crate) use self::kernel_store::{KernelStore, Rows};
use crate::library::Library;

/// The files that the reader of these kernels looks into.
pub(crate) fn of_library(library: &Library) -> Box<dyn KernelStore> {
    match &library.rocfft {
        Some(facts) => Box::new(rocfft::RocfftCache::from_facts(facts)),
        None => Box::new(kdb::Kdb),
    }
}

/// What a file looks like by its name, for reading it.
pub(crate) fn of_file_name(path: &Path) -> Box<dyn KernelStore> {
    if gfxpack_rocfft::is_file_name(path) {
        Box::new(rocfft::RocfftCache::default())
    } else {
        Box::new(kdb::Kdb)
    }
}
