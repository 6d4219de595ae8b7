//! Writes a kdb row by row in canonical order.

use std::path::{Path, PathBuf};

use gfxpack_model::{Error, KernelKey, Result};
use gfxpack_sqlite::{NewFile, NewFileError};
use rusqlite::Connection;

use crate::encode::Encoded;
use crate::error::WRITE_HINT;
use crate::header::MiopenVersion;
use crate::schema::{CREATE_INDEX, CREATE_TABLE};

/// Bytes of blobs after which the disk starts writing.
const WRITE_BACK_BYTES: u64 = 32 << 20;

/// Inserts one row with all columns.
const INSERT: &str = "INSERT INTO kern_db VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
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

    /// Counts of what was written so far, without the file's size.
    pub(crate) fn written(&self) -> &Written {
        &self.written
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
