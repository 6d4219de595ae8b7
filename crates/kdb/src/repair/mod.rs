//! Saves what is whole of a damaged kdb.
//!
//! SQLite finds a row by its tree, so one bad page near the root loses all.
//! Here every page is looked at by itself, and what has the shape of a kdb's
//! row is followed through the pages that it goes on in. Its hash decides: no
//! other check of SQLite's or of a tree is needed.

mod page;
mod pages;
mod scan;
mod shape;
mod source;
pub(crate) mod staging;
mod verdict;

use std::path::Path;

use crate::copy::error::CopyError;
use crate::copy::transfer::CopyOptions;
use crate::repair::source::DamagedFile;
use crate::repair::staging::{Lost, Staging};
use crate::write::sink::Written;

/// What a repair saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// What was written: the rows that are whole.
    pub written: Written,
    /// Rows that are known to have been there and are not whole, or whose keys
    /// no kdb takes.
    pub lost: u64,
    /// The page size in bytes that was gone by.
    pub page_size: u32,
    /// Whether the file's header stated it.
    pub header_holds: bool,
    /// Pages of the file.
    pub pages: u32,
    /// Pages that the file had, as its header says, and that are cut off. What
    /// was in them nobody knows.
    pub missing_pages: u32,
    /// Whether there was nothing to save: no page but the first has anything
    /// in it.
    pub blank: bool,
    /// Bytes of pages that were looked at, each of them twice, and none of the
    /// file's holes.
    pub read_bytes: u64,
}

/// Writes every row of a damaged kdb whose pages are still there and whose
/// hash holds into a fresh one, laid out as MIOpen's own where the options do
/// not say, and hands the others to `lost`: by their keys, as far as an index
/// or the row itself still tells them, else by their places.
///
/// The file needs no valid header, table or tree. In MIOpen's own layout a key
/// has no checksum: one that was changed within an otherwise whole row is taken
/// as it is. Where the
/// header holds, pages that the file says are free are left alone: rows that
/// were deleted stay deleted. Side tables are not carried over.
///
/// # Errors
/// [`CopyError::Read`] where the file can't be read at all, has fewer bytes
/// than any kdb, a journal that is to be played back first, or no page of a
/// kdb in it; [`CopyError::Write`].
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
