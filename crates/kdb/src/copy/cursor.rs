//! Iterates over the rows of a file in canonical order. Only a bounded number
//! of keys is in memory, so several files can be read side by side.

use std::collections::VecDeque;
use std::path::Path;
use std::time::UNIX_EPOCH;

use gfxpack_model::KernelKey;

use crate::copy::error::CopyError;
use crate::copy::transfer::{CopyOptions, RowInTransit};
use crate::error::{ReadError, RowError};
use crate::object_origin::{Note, NoteReader};
use crate::read::{ReadOptions, Reader, StoredBlob};
use crate::row::RowInfo;
use crate::text_encoding::Encoding;

/// Rows read at a time.
const BATCH: u32 = 256;

/// A position between two rows of a file.
pub(crate) struct Cursor {
    reader: Reader,
    notes: NoteReader,
    ahead: VecDeque<RowInfo>,
    last: Option<KernelKey>,
    row: u64,
    modified: Option<i64>,
}

impl Cursor {
    /// Opens a file, positioned before its first row.
    ///
    /// # Errors
    /// As [`Reader::open_with`], and [`ReadError::Encoding`].
    pub(crate) fn open(path: &Path, max_object_bytes: u64) -> Result<Self, ReadError> {
        let reader = Reader::open_with(path, ReadOptions { max_object_bytes, wal: true })?;
        let encoding = Encoding::read(path)?;
        if encoding != Encoding::Utf8 {
            let encoding = encoding.name();
            return Err(ReadError::Encoding { path: path.to_owned(), encoding });
        }
        let notes = NoteReader::open(reader.file.connection());
        let notes = notes.map_err(|source| reader.file.sqlite(source))?;
        let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let modified = modified
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map(|since| since.as_secs() as i64);
        Ok(Self { reader, notes, ahead: VecDeque::new(), last: None, row: 0, modified })
    }

    /// Number of rows in the file; 0 unless progress is reported, since
    /// counting takes as long as reading the keys.
    ///
    /// # Errors
    /// [`ReadError`] of a damaged file.
    pub(crate) fn count(&self, options: &CopyOptions<'_>) -> Result<u64, ReadError> {
        options.progress.map_or(Ok(0), |_| self.reader.count())
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Seconds since the epoch at which the file was last changed.
    pub(crate) fn modified(&self) -> Option<i64> {
        self.modified
    }

    /// The next row without its blob, and its note from the side tables.
    ///
    /// # Errors
    /// [`ReadError`] of a damaged file or row, and [`ReadError::Order`].
    pub(crate) fn next(&mut self) -> Result<Option<(RowInfo, Note)>, ReadError> {
        if self.ahead.is_empty() {
            self.ahead = self.reader.rows_after(self.last.as_ref(), BATCH)?.into();
        }
        let Some(entry) = self.ahead.pop_front() else { return Ok(None) };
        if self.last.as_ref().is_some_and(|last| *last >= entry.key) {
            let key = Box::new(entry.key);
            return Err(ReadError::Order { path: self.reader.path().to_owned(), key });
        }
        self.last = Some(entry.key.clone());
        self.row += 1;
        Ok(Some((entry, self.notes.note(self.row))))
    }

    /// The stored content of a row that [`Cursor::next`] returned.
    ///
    /// # Errors
    /// [`ReadError`] of a damaged file or row.
    pub(crate) fn stored(&self, key: &KernelKey) -> Result<StoredBlob, ReadError> {
        self.reader.stored(key)?.ok_or_else(|| self.reader.row(key.clone(), RowError::Unreachable))
    }

    /// The next row with its stored content.
    ///
    /// # Errors
    /// As [`Cursor::next`] and [`Cursor::stored`].
    pub(crate) fn next_in_transit(&mut self) -> Result<Option<RowInTransit>, CopyError> {
        let Some((RowInfo { key, .. }, note)) = self.next()? else { return Ok(None) };
        let (path, stored) = (self.reader.path().to_owned(), self.stored(&key)?);
        Ok(Some(RowInTransit { path, key, stored, note, rows: 1 }))
    }
}
