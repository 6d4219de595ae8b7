//! Files in which libraries look kernels up, whatever their format.

mod kdb;
mod kernel_store;
mod rocfft;

use std::path::{Path, PathBuf};

pub(crate) use self::kernel_store::{KernelStore, Rows};
use crate::error::{self, Result, in_full};
use crate::library::Library;

/// The files that the reader of these kernels looks into.
pub(crate) fn of_library(library: &Library) -> Box<dyn KernelStore> {
    match &library.rocfft {
        Some(facts) => Box::new(rocfft::RocfftCache::from_facts(facts)),
        None => Box::new(kdb::Kdb),
    }
}

/// Writes the rows of several of rocFFT's caches into one, for a library that
/// reads one file for all GPUs. They are laid out as the first is.
///
/// # Errors
/// Where they can't be read, or the file not be written.
pub(crate) fn merge_rocfft(files: &[PathBuf], out: &Path) -> Result<()> {
    let Some(first) = files.first() else { return Ok(()) };
    let layout = gfxpack_rocfft::Reader::open(first)?.layout();
    let merged = gfxpack_rocfft::merge(files, out, layout);
    merged.map_err(|error| error::unsound(in_full(&error)))
}

/// What a file with kernels is by its name; none if it is something else.
pub(crate) fn of_file_name(path: &Path) -> Option<Box<dyn KernelStore>> {
    if gfxpack_rocfft::is_file_name(path) {
        Some(Box::new(rocfft::RocfftCache::default()))
    } else if path.extension().is_some_and(|ending| ending == "kdb") {
        Some(Box::new(kdb::Kdb))
    } else {
        None
    }
}
