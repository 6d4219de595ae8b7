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

use std::fmt;
use std::fs::File;
use std::path::Path;

use gfxpack_model::KernelKey;

use self::page::{Geometry, Kind};
use self::record::Shape;
use self::staging::{Found, Staging};
use crate::codec;
use crate::copy::{CopyOptions, Passing, transfer};
use crate::error::{CopyError, ReadError};
use crate::holes;
use crate::layout::Layout;
use crate::open;
use crate::origin::Note;
use crate::read::Stored;
use crate::schema::MIN_FILE_BYTES;
use crate::sink::Sink;
use crate::work::Work;
use crate::write::Written;

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

/// A row that could not be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Its key, where that is known.
    pub key: Option<KernelKey>,
    /// Its number, or that of its code object, where the key is not known.
    pub row: Option<i64>,
    /// The page that it stands in, where the key is not known.
    pub page: Option<u32>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, row, page, reason } = self;
        match (key, row, page) {
            (Some(key), ..) => write!(f, "{key}: {reason}"),
            (None, Some(row), Some(page)) => write!(f, "row {row} on page {page}: {reason}"),
            (None, _, Some(page)) => write!(f, "on page {page}: {reason}"),
            (None, _, None) => f.write_str(reason),
        }
    }
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
    let walk = Walk::open(input, options)?;
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

struct Walk<'a> {
    path: &'a Path,
    file: File,
    /// Bytes of the file.
    bytes: u64,
    /// The same, holes left out.
    data_bytes: u64,
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
        open::check_journal(path)?;
        let file = File::open(path).map_err(io)?;
        let geometry = Geometry::of(&file, bytes).map_err(io)?;
        let geometry = geometry.ok_or_else(|| ReadError::NotSqlite { path: path.to_owned() })?;
        let data_bytes = holes::data_bytes(&file, bytes).map_err(io)?;
        Ok(Self { path, file, bytes, data_bytes, geometry, options })
    }

    /// What going through all rows may take.
    fn work(&self) -> Work {
        Work::new(self.data_bytes, self.options.max_object_bytes)
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
        let work = self.work();
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
                let path = self.path.to_owned();
                let claim = match codec::claim(&blob, size, &work) {
                    Ok(claim) => claim,
                    Err(source) => {
                        return Err(ReadError::Row { path, key: Box::new(key), source }.into());
                    }
                };
                let stored = Stored { blob, hash, claim };
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
