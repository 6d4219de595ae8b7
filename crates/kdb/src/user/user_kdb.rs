//! The user's own kdb.

use std::io;
use std::path::Path;
use std::time::Duration;

use gfxpack_model::KernelKey;
use gfxpack_sqlite::{StepBudget, beside};
use rusqlite::Connection;

use crate::encode::{Blob, encode};
use crate::error::{Fault, KdbErrorKind, ReadError};
use crate::header::{Header, Journal, MiopenVersion};
use crate::open::{has_log, sqlite_error};
use crate::read::Reader;
use crate::schema::{
    CREATE_INDEX, CREATE_TABLE, MIN_FILE_BYTES, TABLE, check_key, check_object_size, missing_column,
};
use crate::user::connect::ReadMode;
use crate::user::transaction::{Transaction, WRITE, hold_locks};
use crate::user::{busy_handler, connect, transaction, usage};

/// Options of a user's kdb.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UserOptions {
    /// Bytes that the file may take; the least recently used rows are deleted
    /// first.
    pub limit_bytes: u64,
    /// How long to wait for others who have the file locked. There is no wait
    /// for a program that has it open in WAL mode, since that may last as long
    /// as the program runs.
    pub busy: Duration,
    /// Whether nothing is created, changed or removed: no file or table is
    /// created, no log written back, no journal rolled back. Such a file can't
    /// be stored into. Close it soon: it stays locked against writing, and a
    /// file at rest in WAL mode must not change while it is open.
    pub look_only: bool,
}

impl Default for UserOptions {
    fn default() -> Self {
        Self { limit_bytes: u64::MAX, busy: Duration::from_secs(10), look_only: false }
    }
}

/// A user's kdb open for reading and writing. Close it after an error.
///
/// The file is opened only through SQLite: closing any other handle on it would
/// drop this process's locks. Only [`DamagedKdb::confirm`] and
/// [`KdbSnapshot::take`] open it themselves, while no thread of the process
/// uses the file.
///
/// Source: SQLite, "How To Corrupt An SQLite Database File", section 2.2.
///
/// [`DamagedKdb::confirm`]: crate::DamagedKdb::confirm
/// [`KdbSnapshot::take`]: crate::KdbSnapshot::take
pub struct UserKdb {
    reader: Reader,
    options: UserOptions,
    /// Whether the file stays locked as long as it is open.
    keeps_lock: bool,
}

pub(super) const DELETE_ONE: &str =
    "DELETE FROM kern_db WHERE kernel_name = ?1 AND kernel_args = ?2";

pub(super) const INSERT_ONE: &str = "INSERT INTO kern_db \
    (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) \
    VALUES (?1, ?2, ?3, ?4, ?5)";

impl UserKdb {
    /// Opens the file. An absent file is created with mode 0600; MIOpen's table
    /// is created if it is missing.
    ///
    /// The file has a rollback journal. If MIOpen put it into WAL mode, it is
    /// taken out of it, now and later, as soon as nobody else has it open;
    /// MIOpen puts it back when it opens it. Memory that is shared with other
    /// programs is never mapped. No symbolic link in `path` is followed, so its
    /// directory must be given by its real name.
    ///
    /// # Errors
    /// [`ReadError`] as for [`Reader::open`], and if the file can't be created;
    /// [`KdbErrorKind::Busy`] if others have it locked, or open in WAL mode. With
    /// [`UserOptions::look_only`] also if its content can't be read without
    /// changing it: an unfinished write, or a log, of which
    /// [`KdbSnapshot`](crate::KdbSnapshot) makes a copy.
    pub fn open(path: &Path, options: &UserOptions) -> Result<Self, ReadError> {
        let size = probe(path, !options.look_only)?;
        if options.look_only {
            return Self::look(path, size, options);
        }
        let connect = || {
            let connected = connect::connect_to_write(path);
            let (connection, budget) = connected.map_err(|source| sqlite_error(path, source))?;
            Self::over(path, connection, budget, options)
        };
        // Each attempt is a new connection: one that fails may keep a lock, for
        // which others would wait.
        busy_handler::wait_up_to(options.busy);
        loop {
            match busy_handler::without_waiting(connect) {
                Err(error)
                    if error.kind() == KdbErrorKind::Busy
                        && !has_log(path)
                        && busy_handler::wait() => {}
                other => return other,
            }
        }
    }

    /// Opens the file for [`UserOptions::look_only`].
    ///
    /// The journal mode is not read from the header: closing our own handle on
    /// the file would drop this process's locks. SQLite has no call that
    /// returns the mode without opening the log, so opening the file without
    /// locks shows it.
    fn look(path: &Path, size: u64, options: &UserOptions) -> Result<Self, ReadError> {
        if size == 0 {
            // SQLite would take a journal beside an empty file for a leftover.
            return Err(Fault::OtherTable("kernel_name").of(path));
        }
        busy_handler::wait_up_to(options.busy);
        let connect = |look| connect::connect_read_only(path, look);
        let is_wal = || {
            let error = connect(ReadMode::WithoutLocks).err();
            let code = error.and_then(|error| error.sqlite_error_code());
            code == Some(rusqlite::ErrorCode::CannotOpen)
        };
        let (look, journal) =
            match std::fs::symlink_metadata(beside(path, "-wal")).ok().map(|log| log.len()) {
                Some(1..) => return Err(Fault::JournalMode(Journal::Wal.name()).of(path)),
                Some(0) => (ReadMode::AtRest, Journal::Wal),
                None if is_wal() => (ReadMode::AtRest, Journal::Wal),
                None => (ReadMode::Live, Journal::Delete),
            };
        let (connection, budget) = connect(look).map_err(|source| sqlite_error(path, source))?;
        let reader = reader(path, connection, budget, journal)?;
        Ok(Self { reader, options: options.clone(), keeps_lock: true })
    }

    /// Prepares a file that was just opened, by a connection that
    /// [keeps](transaction::hold_locks) its locks.
    pub(crate) fn over(
        path: &Path,
        connection: Connection,
        budget: StepBudget,
        options: &UserOptions,
    ) -> Result<Self, ReadError> {
        let sqlite = |source| sqlite_error(path, source);
        // A power failure may lose the last kernels. They are compiled again;
        // hashes reveal damage.
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(sqlite)?;
        if missing_column(&connection).map_err(sqlite)?.is_some() {
            create_table(&connection).map_err(sqlite)?;
            hold_locks(&connection).map_err(sqlite)?;
        }
        let reader = reader(path, connection, budget, Journal::Delete)?;
        transaction::release_locks(reader.file.connection()).map_err(sqlite)?;
        Ok(Self { reader, options: options.clone(), keeps_lock: false })
    }

    /// Changes [`UserOptions::busy`], how long to wait for others.
    pub fn set_busy(&mut self, busy: Duration) {
        self.options.busy = busy;
    }

    /// The code object of one key, decoded and checked against its hash; `None`
    /// if the file does not have the key.
    ///
    /// # Errors
    /// As [`Reader::get`]; [`KdbErrorKind::Busy`] as for [`UserKdb::open`].
    pub fn get(&self, key: &KernelKey) -> Result<Option<Vec<u8>>, ReadError> {
        if self.keeps_lock {
            return self.reader.get(key);
        }
        let sqlite = |source| self.reader.file.sqlite(source);
        let transaction = self.begin().map_err(sqlite)?;
        let found = self.reader.get(key)?;
        transaction.commit().map_err(sqlite)?;
        Ok(found)
    }

    /// Begins a read transaction. Statements in it may wait as long again.
    fn begin(&self) -> Result<Transaction<'_>, rusqlite::Error> {
        busy_handler::wait_up_to(Duration::ZERO);
        let begun = match transaction::begin(self.reader.file.connection()) {
            Err(error)
                if KdbErrorKind::from_sqlite(&error) == KdbErrorKind::Busy
                    && !has_log(self.reader.path()) =>
            {
                busy_handler::wait_up_to(self.options.busy);
                return transaction::begin(self.reader.file.connection());
            }
            other => other?,
        };
        busy_handler::wait_up_to(self.options.busy);
        Ok(begun)
    }

    /// Stores a code object in place of the key's old one, last used at `now`
    /// (seconds since the epoch), and records when the kernels of `used` were
    /// used. If the file would grow beyond its limit, the least recently used
    /// kernels are deleted first. Returns how many.
    ///
    /// # Errors
    /// [`ReadError`] for a key or size that no kdb accepts, a full disk, a
    /// file that others have locked, or a damaged one. The file is then
    /// unchanged.
    pub fn store(
        &mut self,
        key: &KernelKey,
        code_object: &[u8],
        now: u64,
        used: &[(KernelKey, u64)],
    ) -> Result<u64, ReadError> {
        let path = self.reader.path().to_owned();
        check_key(key)
            .and_then(|()| check_object_size(key, code_object.len() as u64))
            .map_err(|error| Fault::Input(Box::new(error)).of(&path))?;
        // Encoding takes longest, so it is done before anything is locked.
        let encoded = encode(code_object.to_vec(), Blob::Smaller);
        let sqlite = |source| Fault::Write(source).of(&path);
        // Waits for others, but not for a program that has the file in WAL
        // mode.
        drop(self.begin().map_err(sqlite)?);
        let more = encoded.blob.len() as u64 + ROW_OVERHEAD_BYTES;
        let gone =
            usage::make_room(&self.reader.file, more, self.options.limit_bytes).map_err(sqlite)?;
        let transaction =
            transaction::begin_writing(self.reader.file.connection(), WRITE).map_err(sqlite)?;
        let size = encoded.uncompressed_size as i64;
        let text = (&key.kernel_name, &key.kernel_args);
        transaction.execute(DELETE_ONE, text).map_err(sqlite)?;
        transaction
            .execute(INSERT_ONE, (text.0, text.1, &encoded.blob, &encoded.hash, size))
            .map_err(sqlite)?;
        let used = used.iter().map(|(key, seconds)| (key, *seconds)).chain([(key, now)]);
        usage::note(&transaction, used).map_err(sqlite)?;
        transaction.commit().map_err(sqlite)?;
        match self.get(key) {
            // Another process may have stored its own code object meanwhile.
            Ok(Some(_)) => Ok(gone),
            Err(error) if error.kind() == KdbErrorKind::Busy => Ok(gone),
            Ok(None) | Err(_) => Err(Fault::ReadBack(Box::new(key.clone())).of(&path)),
        }
    }

    /// Records when kernels were used, in one short transaction; at once or not
    /// at all.
    pub fn note_use(&mut self, used: &[(KernelKey, u64)]) -> Result<(), ReadError> {
        let sqlite = |source| Fault::Write(source).of(self.reader.path());
        // Not worth a wait.
        busy_handler::wait_up_to(Duration::ZERO);
        let transaction =
            transaction::begin_writing(self.reader.file.connection(), WRITE).map_err(sqlite)?;
        usage::note(&transaction, used.iter().map(|(key, seconds)| (key, *seconds)))
            .and_then(|()| transaction.commit())
            .map_err(sqlite)
    }
}

/// Bytes that a row takes in addition to its blob: key, index entry, hash and
/// the rest of its last page.
pub(super) const ROW_OVERHEAD_BYTES: u64 = 8192;

/// The size of the file in bytes, without opening it. If it is absent and
/// `create` is set, it is created.
pub(super) fn probe(path: &Path, create: bool) -> Result<u64, ReadError> {
    let io = |source| ReadError::io(path, source);
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && create => {
            // Creates the file without opening it or following a link.
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            return match mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0) {
                // Another process created it first.
                Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(0),
                Err(error) => Err(io(error.into())),
            };
        }
        other => other.map_err(io)?,
    };
    if !metadata.is_file() {
        return Err(Fault::NotAFile.of(path));
    }
    // An empty file is new, and another process is about to fill it.
    match metadata.len() {
        size @ 1..MIN_FILE_BYTES => Err(Fault::TooSmall(size).of(path)),
        size => Ok(size),
    }
}

/// A reader over a connection whose file may grow.
pub(crate) fn reader(
    path: &Path,
    connection: Connection,
    budget: StepBudget,
    journal: Journal,
) -> Result<Reader, ReadError> {
    let page_size = connection.pragma_query_value(None, "page_size", |row| row.get::<_, u32>(0));
    let page_size = page_size.map_err(|source| sqlite_error(path, source))?;
    let header = Header { page_size, journal, sqlite_version: 0, miopen_version: MiopenVersion(0) };
    // The work budget is unlimited, since the file may grow.
    Reader::over(path, connection, budget, header, u64::MAX)
}

/// Creates MIOpen's table in a file without it. A table with other columns is
/// left unchanged, and opening the file then fails.
pub(super) fn create_table(connection: &Connection) -> Result<(), rusqlite::Error> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
    if connection.query_row(sql, [TABLE], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(());
    }
    let pages = connection.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))?;
    // Another process may create them first.
    let if_absent = |sql: &str, kind| sql.replacen(kind, &format!("{kind} IF NOT EXISTS"), 1);
    let table = if_absent(CREATE_TABLE, "TABLE");
    // `auto_vacuum` must be set before the first table; it lets the file shrink
    // later.
    let first = if pages == 0 { "PRAGMA auto_vacuum = INCREMENTAL" } else { &table };
    let transaction = transaction::begin_writing(connection, first)?;
    transaction.execute_batch(&table)?;
    transaction.execute_batch(&if_absent(CREATE_INDEX, "INDEX"))?;
    transaction.commit()
}
