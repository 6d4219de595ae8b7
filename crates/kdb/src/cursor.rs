//! Iterates over the rows of a file in canonical order. Only a bounded number
//! of keys is in memory, so several files can be read side by side.

use std::collections::VecDeque;
use std::path::Path;

use gfxpack_model::KernelKey;

use crate::error::{Fault, ReadError, RowError};
use crate::header::MiopenVersion;
use crate::read::{Reader, StoredBlob};
use crate::row::RowInfo;

/// Rows read at a time.
const BATCH: u32 = 256;

/// A position between two rows of a file.
pub(crate) struct Cursor {
    reader: Reader,
    ahead: VecDeque<RowInfo>,
    last: Option<KernelKey>,
}

impl Cursor {
    /// Opens a file, positioned before its first row.
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let reader = Reader::open_at_rest(path)?;
        Ok(Self { reader, ahead: VecDeque::new(), last: None })
    }

    /// The MIOpen whose kernels these are.
    pub(crate) fn miopen_version(&self) -> MiopenVersion {
        self.reader.header().miopen_version
    }

    /// Number of rows in the file.
    pub(crate) fn count(&self) -> Result<u64, ReadError> {
        self.reader.count()
    }

    /// The next row without its blob.
    pub(crate) fn next(&mut self) -> Result<Option<RowInfo>, ReadError> {
        if self.ahead.is_empty() {
            self.ahead = self.reader.rows_after(self.last.as_ref(), BATCH)?.into();
        }
        let Some(entry) = self.ahead.pop_front() else { return Ok(None) };
        if self.last.as_ref().is_some_and(|last| *last >= entry.key) {
            return Err(Fault::Order(Box::new(entry.key)).of(self.reader.path()));
        }
        self.last = Some(entry.key.clone());
        Ok(Some(entry))
    }

    /// The stored content of a row that [`Cursor::next`] returned.
    pub(crate) fn stored(&self, key: &KernelKey) -> Result<StoredBlob, ReadError> {
        self.reader.stored(key)?.ok_or_else(|| self.reader.row(key.clone(), RowError::Unreachable))
    }
}
