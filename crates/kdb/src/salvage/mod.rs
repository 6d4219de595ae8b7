//! Saves what is whole of a damaged kdb.
//!
//! SQLite finds a row by its tree, so one bad page near the root loses all.
//! Here every page is looked at by itself, and what has the shape of a kdb's
//! row is followed through the pages that it goes on in. Its hash decides: no
//! other check of SQLite's or of a tree is needed.

mod page;
mod record;
mod scan;
mod staging;

use std::fs::File;
use std::path::Path;

use gfxpack_plan::KernelKey;

use self::page::{Geometry, Kind};
use self::record::Shape;
use self::staging::{Found, Staging};
use crate::copy::{CopyOptions, Passing, transfer};
use crate::error::{CopyError, ReadError};
use crate::layout::Layout;
use crate::origin::Note;
use crate::read::Stored;
use crate::schema::MIN_FILE_BYTES;
use crate::sink::Sink;
use crate::write::Written;

/// What a repair saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// What was written: the rows that are whole.
    pub written: Written,
    /// Keys that are known to have been there, and whose rows are not whole.
    pub lost: u64,
    /// The page size in bytes that was gone by.
    pub page_size: u32,
    /// Whether the file's header stated it.
    pub header_holds: bool,
    /// Pages of the file.
    pub pages: u32,
}

/// Where a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    page: u32,
    at: u32,
    kind: Kind,
}

impl Place {
    fn kind_code(self) -> u32 {
        match self.kind {
            Kind::TableLeaf => 0,
            Kind::IndexLeaf => 1,
            Kind::IndexInterior => 2,
        }
    }

    fn of_codes(page: u32, at: u32, kind: u32) -> Self {
        let kind = match kind {
            0 => Kind::TableLeaf,
            1 => Kind::IndexLeaf,
            _ => Kind::IndexInterior,
        };
        Self { page, at, kind }
    }
}

/// Writes every row of a damaged kdb whose pages are still there and whose
/// hash holds into a fresh one, laid out as MIOpen's own where the options do
/// not say, and hands the keys of the others to `lost`, as far as an index or
/// the row itself still tells them, with what is wrong.
///
/// The file needs no valid header, table or tree. In MIOpen's own layout a key
/// has no checksum: one that was changed within an otherwise whole row is taken
/// as it is. Where the
/// header holds, pages that the file says are free are left alone: rows that
/// were deleted stay deleted. Side tables are not carried over.
///
/// # Errors
/// [`CopyError::Read`] where the file can't be read at all, has fewer bytes
/// than any kdb, or no page of a kdb in it; [`CopyError::Write`].
pub fn repair(
    input: &Path,
    out: &Path,
    options: &CopyOptions<'_>,
    mut lost: impl FnMut(&KernelKey, &str),
) -> Result<Repaired, CopyError> {
    let walk = Walk::open(input, options)?;
    let mut repaired = Repaired {
        page_size: walk.geometry.page_size,
        header_holds: walk.geometry.stated,
        pages: walk.geometry.pages,
        ..Repaired::default()
    };
    let staging = Staging::new().map_err(|source| walk.sqlite(source))?;
    walk.scan(&staging)?;
    staging.join().map_err(|source| walk.sqlite(source))?;
    repaired.written = walk.write(&staging, out)?;
    staging
        .for_each_lost(|key, reason| {
            repaired.lost += 1;
            lost(&key, reason.as_deref().unwrap_or("its row can't be reached"));
        })
        .map_err(|source| walk.sqlite(source))?;
    Ok(repaired)
}

struct Walk<'a> {
    path: &'a Path,
    file: File,
    bytes: u64,
    geometry: Geometry,
    options: &'a CopyOptions<'a>,
}

impl<'a> Walk<'a> {
    fn open(path: &'a Path, options: &'a CopyOptions<'a>) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(io)?;
        if !metadata.is_file() {
            return Err(ReadError::NotAFile { path: path.to_owned() });
        }
        let bytes = metadata.len();
        if bytes < MIN_FILE_BYTES {
            return Err(ReadError::TooSmall { path: path.to_owned(), size: bytes });
        }
        let file = File::open(path).map_err(io)?;
        let geometry = Geometry::of(&file, bytes).map_err(io)?;
        let geometry = geometry.ok_or_else(|| ReadError::NotSqlite { path: path.to_owned() })?;
        Ok(Self { path, file, bytes, geometry, options })
    }

    fn sqlite(&self, source: rusqlite::Error) -> ReadError {
        ReadError::Sqlite { path: self.path.to_owned(), source }
    }

    fn io(&self, source: std::io::Error) -> ReadError {
        ReadError::Io { path: self.path.to_owned(), source }
    }

    /// Writes what was found.
    fn write(&self, staging: &Staging, out: &Path) -> Result<Written, CopyError> {
        let mut sink = Sink::create(out, self.options.layout.unwrap_or(Layout::Miopen))?;
        let mut last: Option<KernelKey> = None;
        let total = staging.count().map_err(|source| self.sqlite(source))?;
        transfer(
            self.options,
            total,
            || {
                let found =
                    staging.next_row(last.as_ref()).map_err(|source| self.sqlite(source))?;
                let Some(Found { key, hash, place }) = found else { return Ok(None) };
                last = Some(key.clone());
                let (blob, size) = self.reread(place)?;
                let stored = Stored { blob, hash, size };
                let path = self.path.to_owned();
                Ok(Some(Passing { path, key, stored, note: Note::default(), rows: 1 }))
            },
            |key, encoded, note| Ok(sink.add(&key, &encoded, &note)?),
        )?;
        Ok(sink.finish()?)
    }

    /// Blob and size of a cell that was found before.
    fn reread(&self, place: Place) -> Result<(Vec<u8>, i64), ReadError> {
        let changed = || self.io(std::io::Error::other("the file changed while it was read"));
        let io = |source| self.io(source);
        let page = self.geometry.read(&self.file, place.page).map_err(io)?;
        let at = place.at as usize;
        let cell = self.geometry.cell(&page, place.kind, at).ok_or_else(changed)?;
        let first = &page[cell.local.clone()];
        let shape = record::shape(place.kind, first, cell.size).ok_or_else(changed)?;
        let payload = self.geometry.payload(&self.file, &page, &cell).map_err(io)?;
        let (payload, _) = payload.ok_or_else(changed)?;
        let (blob, size) = stored(&shape, &payload).ok_or_else(changed)?;
        Ok((blob.to_vec(), size))
    }
}

/// A payload's blob and `uncompressed_size`, where they are at hand.
fn stored<'p>(shape: &Shape, payload: &'p [u8]) -> Option<(&'p [u8], i64)> {
    match shape {
        Shape::Row { blob, size, .. } | Shape::Object { blob, size } => {
            let bytes = payload.get(blob.clone())?;
            Some((bytes, size.read(payload)?))
        }
        Shape::Key { .. } | Shape::Entry { .. } => None,
    }
}
