//! Writes a kdb row by row in canonical order.

use std::path::{Path, PathBuf};

use gfxpack_model::KernelKey;
use gfxpack_sqlite::{NewFile, NewFileError};
use rusqlite::Connection;

use crate::encode::Encoded;
use crate::error::WriteError;
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
    ///
    /// # Errors
    /// [`WriteError::Io`] or [`WriteError::Sqlite`].
    pub(crate) fn create(path: &Path, version: MiopenVersion) -> Result<Self, WriteError> {
        let sqlite = |source| WriteError::Sqlite { path: path.to_owned(), source };
        let file = NewFile::beside(path).map_err(file_error)?;
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
    ///
    /// # Errors
    /// [`WriteError::Sqlite`] or [`WriteError::Io`].
    pub(crate) fn add(&mut self, key: &KernelKey, encoded: &Encoded) -> Result<(), WriteError> {
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
            .map_err(|source| WriteError::Sqlite { path: self.path.clone(), source })?;
        if earlier / WRITE_BACK_BYTES != now / WRITE_BACK_BYTES {
            self.file.write_back().map_err(file_error)?;
        }
        Ok(())
    }

    /// Moves the file to its destination.
    ///
    /// # Errors
    /// [`WriteError`]; the destination is then unchanged.
    pub(crate) fn finish(mut self) -> Result<Written, WriteError> {
        let sqlite = |source| WriteError::Sqlite { path: self.path.clone(), source };
        self.connection.execute_batch("COMMIT").map_err(sqlite)?;
        self.connection.flush_prepared_statement_cache();
        self.connection.close().map_err(|(_, source)| sqlite(source))?;
        self.written.file_bytes = self.file.persist().map_err(file_error)?;
        Ok(self.written)
    }
}

fn file_error(error: NewFileError) -> WriteError {
    let NewFileError { action, path, source } = error;
    WriteError::Io { action, path, source }
}
