//! Reads a kdb: one kernel by its key, or all kernels one after another.

use std::cell::Cell;
use std::path::Path;

use gfxpack_model::KernelKey;
use gfxpack_sqlite::{StepBudget, filled_log};
use rusqlite::Connection;

use crate::codec::{self, ClaimedSize};
use crate::error::{Fault, ReadError, RowError};
use crate::header::{Header, Journal};
use crate::open::{self, Opened, WorkBudget};
use crate::row::{self, RowInfo, key, key_text, row_info, shown_key};
use crate::schema::{
    IN_ORDER, MAX_OBJECT_BYTES, SELECT_ALL, SELECT_ENTRIES, SELECT_KEYS, SELECT_ONE, TABLE,
    key_index, missing_column,
};

/// A kdb open for reading. Nothing is created or changed beside the file. The
/// file must not change while it is open.
///
/// `kern_db` may have more columns than MIOpen's.
///
/// A file can claim much more than it holds, so the bytes that one pass over it
/// reads and unpacks are bounded: [`MAX_OBJECT_BYTES`], plus 256 for each byte
/// of the file.
pub struct Reader {
    pub(crate) file: Opened,
    header: Header,
    pub(crate) file_bytes: u64,
    /// Bytes unpacked by lookups of invalid rows with an implausible size.
    wasted: Cell<u64>,
    /// What rows are selected from: the table with the index that has them in
    /// order.
    listed: String,
}

/// A row with its code object, decoded and checked against its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRow {
    /// The key that MIOpen looks up.
    pub key: KernelKey,
    /// The code object that MIOpen loads.
    pub code_object: Vec<u8>,
}

/// A row's content as stored, not decoded.
#[cfg(feature = "tools")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBlob {
    pub(crate) blob: Vec<u8>,
    pub(crate) hash: String,
    pub(crate) claimed_size: ClaimedSize,
}

impl Reader {
    /// Opens a kdb, and checks that it has what MIOpen selects.
    ///
    /// # Errors
    /// [`ReadError`] if the file is absent, too small, not an SQLite file, not
    /// in journal mode DELETE, or damaged, if it lacks the table's columns or
    /// its index, or if its schema has more than tables and indices.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::open_file(path.as_ref(), false)
    }

    /// As [`Reader::open`]; also opens a file in WAL mode that has no log beside
    /// it: a user's kdb that no program is using, as MIOpen leaves it.
    pub fn open_at_rest(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::open_file(path.as_ref(), true)
    }

    fn open_file(path: &Path, wal: bool) -> Result<Self, ReadError> {
        let (header, bytes) = open::probe(path)?;
        let at_rest = wal && header.journal == Journal::Wal && filled_log(path).is_none();
        if header.journal != Journal::Delete && !at_rest {
            return Err(Fault::JournalMode(header.journal.name()).of(path));
        }
        let (connection, budget) = open::connect(path, bytes)?;
        Self::over(path, connection, budget, header, bytes)
    }

    /// A reader over an existing connection, for a file of that many bytes.
    pub(crate) fn over(
        path: &Path,
        connection: Connection,
        budget: StepBudget,
        header: Header,
        file_bytes: u64,
    ) -> Result<Self, ReadError> {
        let file = Opened::new(path, connection, budget, WorkBudget::new(file_bytes))?;
        let sqlite = |source| file.sqlite(source);
        if let Some(column) = missing_column(file.connection()).map_err(sqlite)? {
            return Err(Fault::OtherTable(column).of(path));
        }
        // Without the index every lookup would scan all rows.
        let listed = match key_index(file.connection()).map_err(sqlite)? {
            Some(index) => format!("{TABLE} INDEXED BY \"{}\"", index.replace('"', "\"\"")),
            None => return Err(Fault::NoIndex.of(path)),
        };
        Ok(Self { file, header, file_bytes, wasted: Cell::new(0), listed })
    }

    /// The file's path, as passed to `open`.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// The fields of the header: page size, journal mode, version of SQLite.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The cost of the last lookup or pass over the rows: bytes that were read,
    /// and those that compressed code objects unpack to.
    pub fn work_bytes(&self) -> u64 {
        self.file.work.spent()
    }

    /// The code object of one key, decoded and checked against its hash; `None`
    /// if the kdb does not have the key.
    ///
    /// # Errors
    /// [`ReadError`] for a damaged row or file, or a file that has cost too much.
    pub fn get(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, ReadError> {
        self.file.work.restart();
        if self.wasted.get() > self.file.work.limit() {
            return Err(Fault::Runaway.of(self.path()));
        }
        self.with_row(key, |row| {
            let (blob, claimed_size) = self.claimed(row)?;
            self.decode(row, blob, claimed_size)
        })
    }

    /// The row of one key as stored, not decoded.
    #[cfg(feature = "tools")]
    pub(crate) fn stored(&self, key: &KernelKey) -> Result<Option<StoredBlob>, ReadError> {
        self.with_row(key, |row| {
            let (blob, claimed_size) = self.claimed(row)?;
            let hash = row::text(row, 3, "kernel_hash")?.to_owned();
            Ok(StoredBlob { blob: blob.to_vec(), hash, claimed_size })
        })
    }

    fn with_row<T>(
        &self,
        key: &KernelKey,
        take: impl FnOnce(&rusqlite::Row<'_>) -> Result<T, RowError>,
    ) -> Result<Option<T>, ReadError> {
        let mut statement = self.file.prepare(SELECT_ONE)?;
        let found = statement.query((&key.kernel_name, &key.kernel_args, MAX_OBJECT_BYTES as i64));
        let mut rows = found.map_err(|source| self.file.sqlite(source))?;
        let Some(row) = self.file.next(&mut rows)? else { return Ok(None) };
        let fault = |source| self.row(key.clone(), source);
        let (name, args) = key_text(row).map_err(fault)?;
        if name != key.kernel_name || args != key.kernel_args {
            return Err(fault(RowError::OtherKey(shown_key(row))));
        }
        take(row).map(Some).map_err(fault)
    }

    /// Up to `limit` rows after `key`, or from the first row on, in canonical
    /// order.
    #[cfg(feature = "tools")]
    pub(crate) fn rows_after(
        &self,
        key: Option<&KernelKey>,
        limit: u32,
    ) -> Result<Vec<RowInfo>, ReadError> {
        // SQLite searches an index by both columns only if they are compared
        // without COLLATE.
        const AFTER: &str = "WHERE (kernel_name, kernel_args) > (?2, ?3)";
        let mut entries = Vec::new();
        let each = |row: &rusqlite::Row<'_>| {
            entries.push(self.row_info(row)?);
            Ok::<(), ReadError>(())
        };
        let after = if key.is_some() { AFTER } else { "" };
        let sql = format!("{SELECT_ENTRIES} {} {after} {IN_ORDER} LIMIT ?1", self.listed);
        match key {
            None => self.file.for_each(&sql, [limit], each)?,
            Some(KernelKey { kernel_name, kernel_args }) => {
                self.file.for_each(&sql, (limit, kernel_name, kernel_args), each)?;
            }
        }
        Ok(entries)
    }

    /// Passes every row without its code object to `each`, ordered by name and
    /// then by arguments, bytewise. Blobs are not read.
    ///
    /// # Errors
    /// The first error: a damaged row, a damaged file, or an error of `each`.
    pub fn for_each_row<E: From<ReadError>>(
        &self,
        mut each: impl FnMut(RowInfo) -> Result<(), E>,
    ) -> Result<(), E> {
        self.file.work.restart();
        let sql = format!("{SELECT_ENTRIES} {} {IN_ORDER}", self.listed);
        self.file.for_each(&sql, (), |row| each(self.row_info(row)?))
    }

    /// Passes every key to `each`, ordered by name and then by arguments,
    /// bytewise. Only the index of the keys is read.
    pub fn for_each_key<E: From<ReadError>>(
        &self,
        mut each: impl FnMut(KernelKey) -> Result<(), E>,
    ) -> Result<(), E> {
        self.file.work.restart();
        let sql = format!("{SELECT_KEYS} {} {IN_ORDER}", self.listed);
        self.file.for_each(&sql, (), |row| {
            each(key(row).map_err(|source| self.row(shown_key(row), source))?)
        })
    }

    /// Passes every row with its code object to `each`, in the order of the
    /// file. One code object is held at a time.
    ///
    /// # Errors
    /// The first error: a damaged row, a damaged file, or an error of `each`.
    pub fn for_each_kernel<E: From<ReadError>>(
        &self,
        mut each: impl FnMut(KernelRow) -> Result<(), E>,
    ) -> Result<(), E> {
        self.file.work.restart();
        self.file.for_each(SELECT_ALL, [MAX_OBJECT_BYTES as i64], |row| {
            let fault = |source| self.row(shown_key(row), source);
            let key = key(row).map_err(fault)?;
            let (blob, claimed_size) = self.claimed(row).map_err(fault)?;
            let code_object = self.decode(row, blob, claimed_size).map_err(fault)?;
            each(KernelRow { key, code_object })
        })
    }

    /// Counts the rows.
    pub fn count(&self) -> Result<u64, ReadError> {
        self.file.count()
    }

    /// Decodes the code object of a row, and checks its hash.
    fn decode(
        &self,
        row: &rusqlite::Row<'_>,
        blob: &[u8],
        claimed_size: ClaimedSize,
    ) -> Result<Vec<u8>, RowError> {
        let hash = row::text(row, 3, "kernel_hash")?;
        let object = codec::unpack(blob, claimed_size).and_then(|object| {
            codec::check_hash(&object, hash)?;
            Ok(object.into_owned())
        });
        if object.is_err() && claimed_size.is_unlikely(blob) {
            self.wasted.set(self.wasted.get().saturating_add(claimed_size.bytes()));
        }
        object
    }

    /// The blob of a row with all columns, and its checked size.
    fn claimed<'a>(&self, row: &'a rusqlite::Row<'_>) -> Result<(&'a [u8], ClaimedSize), RowError> {
        let blob = row::kernel_blob(row)?;
        let size = row::integer(row, 4, "uncompressed_size")?;
        Ok((blob, codec::claimed_size(blob, size, &self.file.work)?))
    }

    fn row_info(&self, row: &rusqlite::Row<'_>) -> Result<RowInfo, ReadError> {
        row_info(row).map_err(|source| self.row(shown_key(row), source))
    }

    pub(crate) fn row(&self, key: KernelKey, source: RowError) -> ReadError {
        Fault::Row(Box::new(key), source).of(self.path())
    }
}
