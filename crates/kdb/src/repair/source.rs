//! A damaged file, opened to be read page by page.

use std::fs::File;
use std::path::Path;

use gfxpack_model::KernelKey;

use crate::codec;
use crate::copy::error::CopyError;
use crate::copy::transfer::{CopyOptions, RowInTransit, transfer};
use crate::error::ReadError;
use crate::holes;
use crate::layout::Layout;
use crate::object_origin::Note;
use crate::open;
use crate::read::StoredBlob;
use crate::repair::page::{CellPlace, Geometry};
use crate::repair::payload_kind::{self, PayloadKind};
use crate::repair::staging::{Staging, WholeRow};
use crate::schema::MIN_FILE_BYTES;
use crate::work_budget::WorkBudget;
use crate::write::sink::{Sink, Written};

/// The file, and its division into pages.
pub(crate) struct DamagedFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) file: File,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// Size of the file without holes.
    pub(crate) data_bytes: u64,
    pub(crate) geometry: Geometry,
    pub(crate) options: &'a CopyOptions<'a>,
}

impl<'a> DamagedFile<'a> {
    pub(crate) fn open(path: &'a Path, options: &'a CopyOptions<'a>) -> Result<Self, ReadError> {
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
        let geometry = Geometry::detect(&file, bytes).map_err(io)?;
        let geometry = geometry.ok_or_else(|| ReadError::NotSqlite { path: path.to_owned() })?;
        let data_bytes = holes::data_bytes(&file, bytes).map_err(io)?;
        Ok(Self { path, file, bytes, data_bytes, geometry, options })
    }

    /// The work budget for one pass over all rows.
    pub(crate) fn work(&self) -> WorkBudget {
        WorkBudget::new(self.data_bytes, self.options.max_object_bytes)
    }

    pub(crate) fn sqlite(&self, source: rusqlite::Error) -> ReadError {
        ReadError::Sqlite { path: self.path.to_owned(), source }
    }

    pub(crate) fn io(&self, source: std::io::Error) -> ReadError {
        ReadError::Io { path: self.path.to_owned(), source }
    }

    /// Writes the intact rows that were found.
    pub(crate) fn write(&self, staging: &Staging, out: &Path) -> Result<Written, CopyError> {
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
                let Some(WholeRow { key, hash, place }) = found else { return Ok(None) };
                last = Some(key.clone());
                let (blob, size) = self.reread(place)?;
                let path = self.path.to_owned();
                let claimed_size = match codec::claimed_size(&blob, size, &work) {
                    Ok(claimed_size) => claimed_size,
                    Err(source) => {
                        return Err(ReadError::Row { path, key: Box::new(key), source }.into());
                    }
                };
                let stored = StoredBlob { blob, hash, claimed_size };
                Ok(Some(RowInTransit { path, key, stored, note: Note::default(), rows: 1 }))
            },
            |key, encoded, note| Ok(sink.add(&key, &encoded, &note)?),
        )?;
        Ok(sink.finish()?)
    }

    /// Blob and size of a cell that was found earlier.
    fn reread(&self, place: CellPlace) -> Result<(Vec<u8>, i64), ReadError> {
        let changed = || self.io(std::io::Error::other("the file changed while it was read"));
        let io = |source| self.io(source);
        let page = self.geometry.read(&self.file, place.page).map_err(io)?;
        let at = place.at as usize;
        let cell = self.geometry.cell(&page, place.kind, at).ok_or_else(changed)?;
        let first = &page[cell.local.clone()];
        let shape = payload_kind::shape(place.kind, first, cell.size).ok_or_else(changed)?;
        let payload = self.geometry.payload(&self.file, &page, &cell).map_err(io)?;
        let (payload, _) = payload.ok_or_else(changed)?;
        let (blob, size) = stored(&shape, &payload).ok_or_else(changed)?;
        Ok((blob.to_vec(), size))
    }
}

/// A payload's blob and `uncompressed_size`, if its shape has them.
pub(crate) fn stored<'p>(shape: &PayloadKind, payload: &'p [u8]) -> Option<(&'p [u8], i64)> {
    match shape {
        PayloadKind::Row { blob, size, .. } | PayloadKind::Object { blob, size } => {
            let bytes = blob.slice(payload)?;
            Some((bytes, size.read(payload)?))
        }
        PayloadKind::Key { .. } | PayloadKind::RowInfo { .. } => None,
    }
}
