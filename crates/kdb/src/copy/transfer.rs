//! Copies rows into another kdb, in parallel and in order: decodes each, checks
//! its hash, and encodes it in the requested form.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use gfxpack_model::KernelKey;

use crate::codec;
use crate::copy::error::CopyError;
use crate::encode::{Blob, Encoded, encode_hashed};
use crate::error::{ReadError, RowError};
use crate::key::check_key;
use crate::layout::Layout;
use crate::object_origin::Note;
use crate::parallel;
use crate::progress::Progress;
use crate::read::StoredBlob;
use crate::schema::MAX_OBJECT_BYTES;

/// How rows are copied.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CopyOptions<'a> {
    /// How rows are laid out; `None`: as in the input.
    pub layout: Option<Layout>,
    /// How code objects are stored; `None`: as in the input.
    pub blob: Option<Blob>,
    /// Bytes of code objects in memory at a time. Has no effect on the file.
    pub window_bytes: u64,
    /// Largest code object accepted, in bytes.
    pub max_object_bytes: u64,
    /// Called on the calling thread after every row.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Called for every row, and every page, to ask whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl CopyOptions<'_> {
    /// # Errors
    /// [`ReadError::Interrupted`] once the caller wants to stop.
    pub(crate) fn go_on(&self, path: &Path) -> Result<(), ReadError> {
        match self.cancelled {
            Some(cancelled) if cancelled() => Err(ReadError::Interrupted { path: path.to_owned() }),
            _ => Ok(()),
        }
    }
}

impl Default for CopyOptions<'_> {
    fn default() -> Self {
        Self {
            layout: None,
            blob: None,
            window_bytes: 64 << 20,
            max_object_bytes: MAX_OBJECT_BYTES,
            progress: None,
            cancelled: None,
        }
    }
}

/// A row being copied, with the file it is from.
pub(crate) struct RowInTransit {
    pub(crate) path: PathBuf,
    pub(crate) key: KernelKey,
    pub(crate) stored: StoredBlob,
    pub(crate) note: Note,
    /// How many input rows it stands for.
    pub(crate) rows: u64,
}

/// Takes rows from `next`, checks and encodes them, and passes them to `finish`
/// in order. `total` is the number of input rows. An invalid row is an error.
pub(crate) fn transfer(
    options: &CopyOptions<'_>,
    total: u64,
    mut next: impl FnMut() -> Result<Option<RowInTransit>, CopyError>,
    mut finish: impl FnMut(KernelKey, Encoded, Note) -> Result<(), CopyError>,
) -> Result<(), CopyError> {
    let CopyOptions { blob, window_bytes, progress, .. } = *options;
    let mut rows = 0;
    parallel::in_order(
        window_bytes,
        || {
            let Some(passing) = next()? else { return Ok(None) };
            options.go_on(&passing.path)?;
            let StoredBlob { blob, claimed_size, .. } = &passing.stored;
            // The stored blob, the decoded object, and the new blob.
            let cost = 2 * blob.len() as u64 + 2 * claimed_size.bytes();
            Ok(Some((passing, cost)))
        },
        |RowInTransit { path, key, stored, note, rows }| {
            if let Err(source) = check_key(&key) {
                return Err(CopyError::Key { path, source });
            }
            match recode(stored, blob) {
                Ok(encoded) => Ok((path, key, encoded, note, rows)),
                Err(source) => Err(ReadError::Row { path, key: Box::new(key), source }.into()),
            }
        },
        |passed: Result<_, CopyError>| {
            let (path, key, encoded, note, passed) = passed?;
            options.go_on(&path)?;
            finish(key, encoded, note)?;
            rows += passed;
            if let Some(progress) = progress {
                progress(Progress::rows(rows, total));
            }
            Ok(())
        },
    )
}

/// Checks a row's code object, and encodes it in the requested form.
///
/// # Errors
/// [`RowError`]: the row is not a valid kernel.
fn recode(stored: StoredBlob, form: Option<Blob>) -> Result<Encoded, RowError> {
    let StoredBlob { blob, hash, claimed_size } = stored;
    let object = codec::unpack(&blob, claimed_size)?;
    codec::check_hash(&object, &hash)?;
    if object.is_empty() {
        return Err(RowError::Empty);
    }
    let Some(form) = form else {
        let uncompressed_size = claimed_size.bytes();
        drop(object);
        return Ok(Encoded { blob, hash, uncompressed_size });
    };
    let unpacked = match object {
        Cow::Owned(object) => Some(object),
        Cow::Borrowed(_) => None,
    };
    Ok(encode_hashed(unpacked.unwrap_or(blob), hash, form))
}
