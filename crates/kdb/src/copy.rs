//! Rows out of kdbs into another: each decoded, held against its hash, and
//! stored in the form asked for, in parallel and in order.

use std::path::{Path, PathBuf};

use gfxpack_plan::KernelKey;

use crate::codec::{self, Encoded, Unpacked};
use crate::cursor::Cursor;
use crate::error::{CopyError, ReadError, RowError};
use crate::layout::Layout;
use crate::origin::Note;
use crate::pipeline;
use crate::read::Stored;
use crate::schema::MAX_OBJECT_BYTES;
use crate::sink::Sink;
use crate::write::{Blob, Progress, Written, check_key};

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
pub(crate) struct Passing {
    pub(crate) path: PathBuf,
    pub(crate) key: KernelKey,
    pub(crate) stored: Stored,
    pub(crate) note: Note,
    /// Rows of files that it stands for.
    pub(crate) rows: u64,
}

/// Hands every row that `next` gives to `finish`, checked and encoded, in
/// order; `total` rows are read for that. A row that is no kernel is an error.
pub(crate) fn transfer(
    options: &CopyOptions<'_>,
    total: u64,
    mut next: impl FnMut() -> Result<Option<Passing>, CopyError>,
    mut finish: impl FnMut(KernelKey, Encoded, Note) -> Result<(), CopyError>,
) -> Result<(), CopyError> {
    let CopyOptions { blob, window_bytes, max_object_bytes, progress, .. } = *options;
    let stays_raw = matches!(blob, None | Some(Blob::Raw));
    let mut rows = 0;
    pipeline::in_order(
        window_bytes,
        |passing: &Passing| pipeline::batch_of(stays_raw && passing.stored.size == 0),
        || {
            let Some(passing) = next()? else { return Ok(None) };
            options.go_on(&passing.path)?;
            let object = u64::try_from(passing.stored.size).unwrap_or(0).min(max_object_bytes);
            // As it was, decoded, and in its new form.
            let cost = 2 * passing.stored.blob.len() as u64 + 2 * object;
            Ok(Some((passing, cost)))
        },
        |passing| {
            let unpacked = passing.map(|passing| unpack(passing, max_object_bytes)).collect();
            codec::digest_each(unpacked, |(_, unpacked)| unpacked.object())
                .map(|passing| {
                    let ((Passing { path, key, stored, note, rows }, unpacked), digest) = passing?;
                    match recode(unpacked, &digest, stored, blob) {
                        Ok(encoded) => Ok((path, key, encoded, note, rows)),
                        Err(source) => Err(not_a_kernel(path, key, source)),
                    }
                })
                .collect()
        },
        |passed: Result<_, CopyError>| {
            let (path, key, encoded, note, passed) = passed?;
            options.go_on(&path)?;
            finish(key, encoded, note)?;
            rows += passed;
            if let Some(progress) = progress {
                progress(Progress::of_rows(rows, total));
            }
            Ok(())
        },
    )
}

/// Takes the code object out of a row, whose blob is then beside it.
fn unpack(mut passing: Passing, limit: u64) -> Result<(Passing, Unpacked), CopyError> {
    check_key(&passing.key)
        .map_err(|source| CopyError::Key { path: passing.path.clone(), source })?;
    let Stored { blob, size, .. } = &mut passing.stored;
    match Unpacked::of(std::mem::take(blob), *size, limit) {
        Ok(unpacked) => Ok((passing, unpacked)),
        Err(source) => Err(not_a_kernel(passing.path, passing.key, source)),
    }
}

fn not_a_kernel(path: PathBuf, key: KernelKey, source: RowError) -> CopyError {
    ReadError::Row { path, key: Box::new(key), source }.into()
}

/// Checks a row's code object, and brings it into the form asked for.
///
/// # Errors
/// [`RowError`]: the row is no kernel.
fn recode(
    unpacked: Unpacked,
    digest: &[u8],
    stored: Stored,
    form: Option<Blob>,
) -> Result<Encoded, RowError> {
    let Stored { hash, size, .. } = stored;
    codec::check_digest(digest, &hash)?;
    let object_bytes = unpacked.object().len() as u64;
    if object_bytes == 0 {
        return Err(RowError::Empty);
    }
    match form {
        Some(form) => Ok(codec::encode_hashed(unpacked.into_object(), hash, form)),
        None => {
            let (blob, uncompressed_size) = (unpacked.into_blob(), size.unsigned_abs());
            Ok(Encoded { blob, hash, uncompressed_size, object_bytes })
        }
    }
}

/// Writes the rows of a kdb into a fresh one, in canonical order, with the
/// layout and storage asked for. Equal rows give equal bytes.
///
/// # Errors
/// [`CopyError`]; the destination is then as it was.
pub fn convert(input: &Path, out: &Path, options: &CopyOptions<'_>) -> Result<Written, CopyError> {
    let mut cursor = Cursor::open(input, options.max_object_bytes)?;
    let layout = options.layout.or(cursor.reader().layout()).unwrap_or_default();
    let mut sink = Sink::create(out, layout)?;
    transfer(
        options,
        cursor.count(options)?,
        || {
            let Some((entry, note)) = cursor.next()? else { return Ok(None) };
            let stored = cursor.stored(&entry.key)?;
            Ok(Some(Passing { path: input.to_owned(), key: entry.key, stored, note, rows: 1 }))
        },
        |key, encoded, note| Ok(sink.add(&key, &encoded, &note)?),
    )?;
    Ok(sink.finish()?)
}
