//! What an installed kdb for exact compute units hides: MIOpen does not open
//! the device-wide one beside it.

use std::path::Path;

use gfxpack_kdb::{ReadError, ReadOptions, Reader};

/// Kernels that MIOpen does not find although they are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    /// Those of the device-wide kdb that the exact one lacks.
    pub hidden: u64,
    /// All of the device-wide kdb.
    pub of: u64,
}

/// Compares the keys of both kdbs. All are hidden by an exact one that can't be
/// read. No code object of either may claim more than `max_object_bytes`.
///
/// # Errors
/// Where the device-wide kdb can't be read.
pub fn hidden(exact: &Path, wide: &Path, max_object_bytes: u64) -> Result<Hidden, ReadError> {
    let options = ReadOptions::with_max_object_bytes(max_object_bytes);
    let of = Reader::open_with(wide, options)?.count()?;
    let differences = gfxpack_kdb::diff(exact, wide, max_object_bytes, |_| Ok::<(), ReadError>(()));
    let hidden = differences.map_or(of, |differences| differences.added);
    Ok(Hidden { hidden, of })
}
