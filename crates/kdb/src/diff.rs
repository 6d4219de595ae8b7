//! Compares two kdbs.

use std::cmp::Ordering;
use std::path::Path;

use crate::cursor::Cursor;
use crate::error::ReadError;
use crate::row::RowInfo;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Only the new file has the key.
    Added(RowInfo),
    /// Only the old file has the key.
    Removed(RowInfo),
    /// The files have different code objects for the key.
    Changed {
        /// The old file's row.
        old: RowInfo,
        /// The new file's row.
        new: RowInfo,
    },
    /// The same code object, compressed in only one of the files, or to
    /// different lengths.
    Recoded {
        /// The old file's row.
        old: RowInfo,
        /// The new file's row.
        new: RowInfo,
    },
}

/// Counts of the differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Differences {
    /// Keys with the same code object, including those stored in another form.
    pub same: u64,
    /// Keys with the same code object, stored in another form.
    pub recoded: u64,
    /// Keys that only the new file has.
    pub added: u64,
    /// Keys that only the old file has.
    pub removed: u64,
    /// Keys with different code objects.
    pub changed: u64,
}

impl Differences {
    /// Whether MIOpen gets the same answers from both files.
    pub fn is_none(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

/// Reads two kdbs side by side, in canonical order, and passes every difference
/// to `each`. Code objects count as equal if their rows declare the same hash;
/// blobs are not read.
///
/// # Errors
/// [`ReadError`] of either file, or an error of `each`.
pub fn diff<E: From<ReadError>>(
    old: &Path,
    new: &Path,
    mut each: impl FnMut(Change) -> Result<(), E>,
) -> Result<Differences, E> {
    let mut old = Cursor::open(old)?;
    let mut new = Cursor::open(new)?;
    let mut found = Differences::default();
    let mut heads = (old.next()?, new.next()?);
    loop {
        let order = match &heads {
            (None, None) => return Ok(found),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.key.cmp(&b.key),
        };
        let a = if order.is_le() { std::mem::replace(&mut heads.0, old.next()?) } else { None };
        let b = if order.is_ge() { std::mem::replace(&mut heads.1, new.next()?) } else { None };
        match (a, b) {
            (Some(old), Some(new)) if old.hash != new.hash => {
                found.changed += 1;
                each(Change::Changed { old, new })?;
            }
            (Some(old), Some(new)) => {
                found.same += 1;
                if (old.compressed, old.stored_bytes) != (new.compressed, new.stored_bytes) {
                    found.recoded += 1;
                    each(Change::Recoded { old, new })?;
                }
            }
            (Some(old), None) => {
                found.removed += 1;
                each(Change::Removed(old))?;
            }
            (None, Some(new)) => {
                found.added += 1;
                each(Change::Added(new))?;
            }
            (None, None) => {}
        }
    }
}
