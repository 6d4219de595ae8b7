//! Writes a kdb row by row in canonical order, in either layout.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gfxpack_model::KernelKey;
use gfxpack_sqlite::{NewFile, NewFileError};
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};

use crate::encode::Encoded;
use crate::error::WriteError;
use crate::key::key_check;
use crate::layout::{CREATE_KEYS, CREATE_OBJECTS, CREATE_VIEW, Layout};
use crate::object_origin::Note;
use crate::schema::{CREATE_INDEX, CREATE_TABLE, PAGE_SIZE};
use crate::write::notes::NoteWriter;

/// Bytes of blobs after which the disk starts writing.
const WRITE_BACK_BYTES: u64 = 32 << 20;

/// Inserts one row with all columns.
const INSERT: &str = "INSERT INTO kern_db VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Page size of the dense layout, in bytes. Small pages leave less space
/// unused. A code object of 40 kB then takes 40 reads instead of 10, which
/// costs a fraction of its decompression.
const DENSE_PAGE_SIZE: u32 = 1024;

impl Layout {
    fn page_size(self) -> u32 {
        match self {
            Self::Miopen => PAGE_SIZE,
            Self::Dense => DENSE_PAGE_SIZE,
        }
    }

    /// The statements that create an empty kdb. The file stores these texts, so
    /// they are part of the format. Indices exist before the rows: rows come in
    /// the index's own order, so it grows only at its end.
    fn statements(self) -> &'static [&'static str] {
        match self {
            Self::Miopen => &[CREATE_TABLE, CREATE_INDEX],
            Self::Dense => &[CREATE_OBJECTS, CREATE_KEYS, CREATE_VIEW],
        }
    }
}

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
    layout: Layout,
    notes: NoteWriter,
    /// Number of the stored blob by its digest; used only in the dense layout.
    objects: HashMap<[u8; 16], u32>,
    written: Written,
}

impl Sink {
    /// Creates an empty file beside `path`.
    ///
    /// # Errors
    /// [`WriteError::Io`] or [`WriteError::Sqlite`].
    pub(crate) fn create(path: &Path, layout: Layout) -> Result<Self, WriteError> {
        let sqlite = |source| WriteError::Sqlite { path: path.to_owned(), source };
        let file = NewFile::beside(path).map_err(file_error)?;
        let connection = file.connect(layout.page_size()).map_err(sqlite)?;
        for statement in layout.statements() {
            connection.execute_batch(statement).map_err(sqlite)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            connection,
            layout,
            notes: NoteWriter::default(),
            objects: HashMap::new(),
            written: Written::default(),
        })
    }

    /// Counts of what was written so far, without the file's size.
    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// Number of pages in the file, and their size in bytes.
    pub(crate) fn pages(&self) -> Result<(u64, u32), WriteError> {
        let count = self
            .connection
            .prepare_cached("PRAGMA page_count")
            .and_then(|mut statement| statement.query_row((), |row| row.get::<_, i64>(0)));
        let count = count.map_err(|source| self.sqlite(source))?;
        Ok((count.unsigned_abs(), self.layout.page_size()))
    }

    /// Adds a row, whose hash must have the form that [`encode`] makes: 32
    /// lower-case hexadecimal digits.
    ///
    /// # Errors
    /// [`WriteError::Sqlite`] or [`WriteError::Io`].
    ///
    /// [`encode`]: crate::encode::encode
    pub(crate) fn add(
        &mut self,
        key: &KernelKey,
        encoded: &Encoded,
        note: &Note,
    ) -> Result<(), WriteError> {
        let written = &mut self.written;
        let earlier = written.stored_bytes;
        written.rows += 1;
        written.raw_rows += u64::from(encoded.uncompressed_size == 0);
        written.object_bytes += encoded.object_bytes();
        written.stored_bytes += encoded.blob.len() as u64;
        let now = written.stored_bytes;
        self.insert(key, encoded, note).map_err(|source| self.sqlite(source))?;
        if earlier / WRITE_BACK_BYTES != now / WRITE_BACK_BYTES {
            self.file.write_back().map_err(file_error)?;
        }
        Ok(())
    }

    fn insert(
        &mut self,
        key: &KernelKey,
        encoded: &Encoded,
        note: &Note,
    ) -> Result<(), rusqlite::Error> {
        let row = self.written.rows;
        let Encoded { blob, hash, uncompressed_size, .. } = encoded;
        let size = *uncompressed_size as i64;
        let (name, args) = (&key.kernel_name, &key.kernel_args);
        match self.layout {
            Layout::Miopen => {
                let mut insert = self.connection.prepare_cached(INSERT)?;
                insert.execute((row as i64, name, args, blob, hash, size))?;
            }
            Layout::Dense => {
                let object = self.object(blob, hash, size)?;
                let hash = u128::from_str_radix(hash, 16).expect("checked by who hands it over");
                let sql = "INSERT INTO kern_keys VALUES (?1, ?2, ?3, ?4, ?5)";
                let mut insert = self.connection.prepare_cached(sql)?;
                insert.execute((name, args, hash.to_be_bytes(), object, key_check(key)))?;
            }
        }
        self.notes.add(&self.connection, row, note)
    }

    /// The number of a blob, which is stored if it is new.
    fn object(&mut self, blob: &[u8], hash: &str, size: i64) -> Result<i64, rusqlite::Error> {
        let digest = digest(blob, hash, size);
        if let Some(id) = self.objects.get(&digest) {
            return Ok(i64::from(*id));
        }
        let id = self.objects.len() as u32 + 1;
        let sql = "INSERT INTO kern_objects VALUES (?1, ?2, ?3)";
        self.connection.prepare_cached(sql)?.execute((id, blob, size))?;
        self.objects.insert(digest, id);
        Ok(i64::from(id))
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

    fn sqlite(&self, source: rusqlite::Error) -> WriteError {
        WriteError::Sqlite { path: self.path.clone(), source }
    }
}

fn file_error(error: NewFileError) -> WriteError {
    let NewFileError { action, path, source } = error;
    WriteError::Io { action, path, source }
}

/// Identifies a stored blob. MD5 alone would not do: two code objects can be
/// constructed to have the same.
fn digest(blob: &[u8], hash: &str, size: i64) -> [u8; 16] {
    let mut digest = Sha256::new();
    digest.update(hash);
    digest.update(size.to_le_bytes());
    digest.update(blob);
    digest.finalize()[..16].try_into().expect("32 bytes")
}
