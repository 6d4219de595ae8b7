//! Builds a kdb: writes every row in canonical order into a new file,
//! completely or not at all.

pub(crate) mod sink;

use std::path::Path;

use gfxpack_model::{Error, KernelKey, Result};

use crate::encode::{Blob, Encoded, encode};
use crate::header::MiopenVersion;
use crate::parallel;
use crate::schema::{OBJECT_HINT, check_key, check_object_size};
use crate::write::sink::{Sink, Written};

/// Bytes of code objects in memory at a time.
const WINDOW_BYTES: u64 = 64 << 20;
/// The same for raw ones.
const RAW_WINDOW_BYTES: u64 = 8 << 20;

/// Options for writing a kdb.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct WriteOptions<'a> {
    /// How code objects are stored.
    pub blob: Blob,
    /// The MIOpen that looks for these kernels.
    pub miopen_version: MiopenVersion,
    /// Called on the calling thread after every row, with the number of rows so
    /// far and in all.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// One row to write.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The key that MIOpen will look up.
    pub key: &'a KernelKey,
    /// Size of the code object in bytes, if known. It only bounds the memory in
    /// use.
    pub size: u64,
}

/// Writes a kdb of `rows`, which must be in strictly ascending order of their
/// keys, as [`KernelKey`] orders them. `code_object` returns each by its index
/// in `rows`. It is called from several threads, in roughly that order.
///
/// Equal rows and code objects give equal bytes, whatever the number of
/// threads. The file appears under `path` only when it is complete and on disk;
/// an older one is replaced. Work runs in the current rayon pool.
///
/// # Errors
/// If keys are out of order or no kdb accepts them, or a code object or the file has an error; of
/// several faulty code objects, the first in row order. An [`Error`] of `code_object` is passed on
/// unchanged. The destination is then unchanged, with nothing left beside it.
pub fn write<E>(
    path: &Path,
    rows: &[Row<'_>],
    options: &WriteOptions<'_>,
    code_object: impl Fn(usize) -> Result<Vec<u8>, E> + Sync,
) -> Result<Written>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    check(rows)?;
    let WriteOptions { blob: form, miopen_version, progress } = *options;
    let mut sink = Sink::create(path, miopen_version)?;
    let mut indices = 0..rows.len();
    let (window, held) = match form {
        // Nothing to compress: reading further ahead only evicts CPU caches.
        Blob::Raw => (RAW_WINDOW_BYTES, 1),
        // The bytes and their encoded form are both held for a while.
        Blob::Smaller => (WINDOW_BYTES, 2),
    };
    parallel::in_order(
        window,
        || Ok(indices.next().map(|index| (index, rows[index].size.saturating_mul(held)))),
        |index| Ok(encode(object(rows[index].key, code_object(index))?, form)),
        |encoded: Result<Encoded>| {
            let index = sink.written().rows as usize;
            let encoded = encoded?;
            sink.add(rows[index].key, &encoded)?;
            if let Some(progress) = progress {
                progress(sink.written().rows, rows.len() as u64);
            }
            Ok::<(), Error>(())
        },
    )?;
    sink.finish()
}

fn check(rows: &[Row<'_>]) -> Result {
    let mut previous: Option<&KernelKey> = None;
    for Row { key, .. } in rows.iter().copied() {
        check_key(key)?;
        match previous {
            Some(previous) if previous == key => {
                let hint = "name every kernel once, with the same arguments byte for byte";
                let message = format!("failed to take kernel `{key}`: the key occurs twice");
                return Err(Error::internal(message, hint));
            }
            Some(previous) if previous > key => {
                let hint = "sort the keys by name and then by arguments, bytewise";
                let message =
                    format!("failed to take kernel `{key}`: it must stand before `{previous}`");
                return Err(Error::internal(message, hint));
            }
            _ => previous = Some(key),
        }
    }
    Ok(())
}

fn object<E>(key: &KernelKey, bytes: Result<Vec<u8>, E>) -> Result<Vec<u8>>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes = bytes.map_err(|source| match source.into().downcast::<Error>() {
        Ok(error) => *error,
        Err(source) => {
            let message = format!("failed to read the code object of kernel `{key}`");
            Error::internal(message, OBJECT_HINT).caused_by(source)
        }
    })?;
    check_object_size(key, bytes.len() as u64)?;
    Ok(bytes)
}
