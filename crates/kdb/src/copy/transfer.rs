//! Rows out of kdbs into another: each decoded, held against its hash, and
//! stored in the form asked for, in parallel and in order.

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

/// How rows are carried over.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CopyOptions<'a> {
    /// How rows are laid out; as in the file they come from without it.
    pub layout: Option<Layout>,
    /// How code objects are stored; as they were without it.
    pub blob: Option<Blob>,
    /// Bytes of code objects in memory at a time. Never shows in the file.
    pub window_bytes: u64,
    /// Largest code object accepted, in bytes.
    pub max_object_bytes: u64,
    /// Called on the calling thread after every row.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Asked at every row, and page, whether to stop.
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

/// A row on its way, with the file it is from.
pub(crate) struct RowInTransit {
    pub(crate) path: PathBuf,
    pub(crate) key: KernelKey,
    pub(crate) stored: StoredBlob,
    pub(crate) note: Note,
    /// Rows of files that it stands for.
    pub(crate) rows: u64,
}

/// Hands every row that `next` gives to `finish`, checked and encoded, in
/// order; `total` rows are read for that. A row that is no kernel is an error.
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
            let StoredBlob { blob, claim, .. } = &passing.stored;
            // As it was, decoded, and in its new form.
            let cost = 2 * blob.len() as u64 + 2 * claim.bytes();
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

/// Checks a row's code object, and brings it into the form asked for.
///
/// # Errors
/// [`RowError`]: the row is no kernel.
fn recode(stored: StoredBlob, form: Option<Blob>) -> Result<Encoded, RowError> {
    let StoredBlob { blob, hash, claim } = stored;
    let object = codec::unpack(&blob, claim)?;
    codec::check_hash(&object, &hash)?;
    if object.is_empty() {
        return Err(RowError::Empty);
    }
    let Some(form) = form else {
        let uncompressed_size = claim.bytes();
        drop(object);
        return Ok(Encoded { blob, hash, uncompressed_size });
    };
    let unpacked = match object {
        Cow::Owned(object) => Some(object),
        Cow::Borrowed(_) => None,
    };
    Ok(encode_hashed(unpacked.unwrap_or(blob), hash, form))
}
