//! Builds a kdb: writes every row in canonical order into a new file,
//! completely or not at all.

use std::path::{Path, PathBuf};

use gfxpack_model::{Error, KernelKey, Result};
use gfxpack_sqlite::{NewFile, NewFileError};
use rusqlite::Connection;

use crate::encode::{Blob, Encoded, encode};
use crate::error::WRITE_HINT;
use crate::header::MiopenVersion;
use crate::parallel;
use crate::schema::{CREATE_INDEX, CREATE_TABLE, OBJECT_HINT, check_key, check_object_size};

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
        |index| {
            let key = rows[index].key;
            let object = code_object(index).map_err(|source| unread(key, source.into()))?;
            check_object_size(key, object.len() as u64)?;
            Ok(encode(object, form))
        },
        |encoded: Result<Encoded>| {
            let index = sink.written.rows as usize;
            sink.add(rows[index].key, &encoded?)?;
            if let Some(progress) = progress {
                progress(sink.written.rows, rows.len() as u64);
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

/// The error of a code object's source.
fn unread(key: &KernelKey, source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match source.downcast::<Error>() {
        Ok(error) => *error,
        Err(source) => {
            let message = format!("failed to read the code object of kernel `{key}`");
            Error::internal(message, OBJECT_HINT).caused_by(source)
        }
    }
}

/// Bytes of blobs after which the disk starts writing.
const WRITE_BACK_BYTES: u64 = 32 << 20;

/// Inserts one row with all columns.
const INSERT: &str = "INSERT INTO kern_db VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Number of kernels.
    pub rows: u64,
    /// Number of kernels that are stored raw.
    pub raw_rows: u64,
    /// Bytes of all code objects.
    pub object_bytes: u64,
    /// Bytes of all blobs as stored.
    pub stored_bytes: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

/// The file, its connection, and counts of what was written to it.
pub(crate) struct Sink {
    path: PathBuf,
    file: NewFile,
    connection: Connection,
    /// Of what was written so far, without the file's size.
    written: Written,
}

impl Sink {
    /// Creates an empty file beside `path`.
    pub(crate) fn create(path: &Path, version: MiopenVersion) -> Result<Self> {
        let sqlite = sqlite_error(path);
        let file = NewFile::beside(path).map_err(file_error(path))?;
        let connection = file.connect().map_err(sqlite)?;
        // The index exists before the rows: they come in its own order, so it
        // grows only at its end.
        let version = format!("PRAGMA user_version = {}", version.0);
        for statement in [&version, CREATE_TABLE, CREATE_INDEX] {
            connection.execute_batch(statement).map_err(sqlite)?;
        }
        Ok(Self { path: path.to_owned(), file, connection, written: Written::default() })
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, key: &KernelKey, encoded: &Encoded) -> Result {
        let written = &mut self.written;
        let earlier = written.stored_bytes;
        written.rows += 1;
        written.raw_rows += u64::from(encoded.uncompressed_size == 0);
        written.object_bytes += encoded.object_bytes();
        written.stored_bytes += encoded.blob.len() as u64;
        let (row, now) = (written.rows as i64, written.stored_bytes);
        let Encoded { blob, hash, uncompressed_size } = encoded;
        let size = *uncompressed_size as i64;
        self.connection
            .prepare_cached(INSERT)
            .and_then(|mut insert| {
                insert.execute((row, &key.kernel_name, &key.kernel_args, blob, hash, size))
            })
            .map_err(sqlite_error(&self.path))?;
        if earlier / WRITE_BACK_BYTES != now / WRITE_BACK_BYTES {
            self.file.write_back().map_err(file_error(&self.path))?;
        }
        Ok(())
    }

    /// Moves the file to its destination.
    pub(crate) fn finish(mut self) -> Result<Written> {
        let sqlite = sqlite_error(&self.path);
        self.connection.execute_batch("COMMIT").map_err(sqlite)?;
        self.connection.flush_prepared_statement_cache();
        self.connection.close().map_err(|(_, source)| sqlite(source))?;
        self.written.file_bytes = self.file.persist().map_err(file_error(&self.path))?;
        Ok(self.written)
    }
}

fn file_error(path: &Path) -> impl Fn(NewFileError) -> Error {
    move |(action, source)| {
        let message = format!("failed to {action} kdb `{}`", path.display());
        Error::internal(message, WRITE_HINT).caused_by(source)
    }
}

fn sqlite_error(path: &Path) -> impl Fn(rusqlite::Error) -> Error + Copy {
    move |source| {
        let message = format!("failed to write kdb `{}`", path.display());
        Error::internal(message, WRITE_HINT).caused_by(source)
    }
}
