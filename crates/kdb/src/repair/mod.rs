//! Saves the intact rows of a damaged kdb.
//!
//! SQLite finds a row through its tree, so one bad page near the root loses all
//! rows. A repair looks at every page by itself. If a cell has the shape of a
//! kdb's row, it is followed through its overflow pages. The row's hash then
//! decides: no other check of SQLite's or of a tree is needed.

mod page;
mod pages;
mod payload_kind;
mod scan;
mod source;
pub(crate) mod staging;
mod verdict;

use std::path::Path;

use crate::copy::error::CopyError;
use crate::copy::transfer::CopyOptions;
use crate::repair::source::DamagedFile;
use crate::repair::staging::{Lost, Staging};
use crate::write::sink::Written;

/// The result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// Counts of what was written: the intact rows.
    pub written: Written,
    /// Rows known to have existed that are damaged, or whose keys no kdb
    /// accepts.
    pub lost: u64,
    /// The page size in bytes that the repair used.
    pub page_size: u32,
    /// Whether the file's header gave the page size.
    pub header_holds: bool,
    /// Pages of the file.
    pub pages: u32,
    /// Pages that the header counts but that are cut off. Their content is not
    /// known.
    pub missing_pages: u32,
    /// Whether there was nothing to save: every page but the first is empty.
    pub blank: bool,
    /// Bytes of all pages that were read, in two passes; holes of the file are
    /// not read.
    pub read_bytes: u64,
}

/// Writes the intact rows of a damaged kdb into a new one: those whose pages
/// still exist and whose hash matches. The layout is MIOpen's unless the
/// options name one. The other rows are passed to `lost`: by key, if an index
/// or the row itself still has it, else by place.
///
/// The file needs no valid header, table or tree. In MIOpen's own layout a key
/// has no checksum: one that was changed in an otherwise intact row is taken
/// unchanged. If the header is valid, the file's free pages are skipped:
/// deleted rows stay deleted. Side tables are not copied.
///
/// # Errors
/// [`CopyError::Read`] if the file can't be read at all, is smaller than any
/// kdb, has a journal that must be played back first, or has no page of a kdb
/// in it; [`CopyError::Write`].
pub fn repair(
    input: &Path,
    out: &Path,
    options: &CopyOptions<'_>,
    mut lost: impl FnMut(&Lost),
) -> Result<Repaired, CopyError> {
    let walk = DamagedFile::open(input, options)?;
    let mut repaired = Repaired {
        page_size: walk.geometry.page_size,
        header_holds: walk.geometry.stated,
        pages: walk.geometry.pages,
        missing_pages: walk.geometry.missing,
        ..Repaired::default()
    };
    let staging = Staging::new().map_err(|source| walk.sqlite(source))?;
    (repaired.blank, repaired.read_bytes) = walk.scan(&staging)?;
    staging.join().map_err(|source| walk.sqlite(source))?;
    repaired.written = walk.write(&staging, out)?;
    staging
        .for_each_lost(|row| {
            repaired.lost += 1;
            lost(&row);
        })
        .map_err(|source| walk.sqlite(source))?;
    Ok(repaired)
}
