//! Why a kdb can't be read, or a user's kdb not be written, and what the user can do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::{Error, ErrorKind, KernelKey};
use rusqlite::ErrorCode;

use crate::schema::{MAX_OBJECT_BYTES, MIN_FILE_BYTES};

/// The kind of an error, for programs that can go on without the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KdbErrorKind {
    /// The file does not exist.
    Absent,
    /// Between 0 and 511 bytes: most likely a Git LFS pointer, which MIOpen takes for absent.
    TooSmall,
    /// Not an SQLite file, or damaged as a whole.
    Corrupt,
    /// Rows without end, or with far more content than a file of that size can
    /// hold. Only a file made for this purpose is like that.
    Runaway,
    /// An SQLite file without the table, or a column that MIOpen selects.
    OtherTable,
    /// The table has no unique index on its keys, or the file has more than tables and indices.
    Schema,
    /// In a journal mode that can't be used at this place.
    Journal,
    /// A rollback journal must be played back first: the file itself holds only
    /// part of an unfinished write.
    Unfinished,
    /// Others kept it locked for longer than the caller was ready to wait.
    Busy,
    /// One row is damaged; the file is not.
    Row,
    /// One row is beyond the limits or rules of this crate; MIOpen may be able to use it.
    RowLimit,
    /// The index leads to another row, or to none.
    RowIndex,
    /// Anything else: the operating system refuses, the disk is full, the path is not a regular
    /// file, the file can't be read without changing it, or the caller's input fits no kdb.
    Denied,
}

impl KdbErrorKind {
    /// Whether the file as a whole is no kdb.
    pub fn is_damage(self) -> bool {
        use KdbErrorKind::*;
        matches!(self, Corrupt | Runaway | TooSmall | Schema | OtherTable | RowIndex)
    }

    /// Classifies an error of SQLite.
    ///
    /// Source: SQLite, "Result and Error Codes".
    pub(crate) fn from_sqlite(error: &rusqlite::Error) -> Self {
        use rusqlite::Error;
        // A value of an unexpected type, such as text in the schema that is not
        // UTF-8. No program that writes kdbs writes this.
        if matches!(
            error,
            Error::FromSqlConversionFailure(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::InvalidColumnType(..)
                | Error::Utf8Error(..)
        ) {
            return Self::Corrupt;
        }
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::SchemaChanged,
            ) => Self::Busy,
            // The last three: a statement that does not fit the table, or a row
            // that SQLite reports as a duplicate right after the old one was
            // deleted. Then the schema or an index is damaged.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::Unknown,
            ) => Self::Corrupt,
            _ => Self::Denied,
        }
    }
}

/// Why a kdb, or a kernel in it, could not be read; or a user's kdb not be written, which is then
/// unchanged.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    pub(crate) fault: Fault,
}

/// What is wrong with a file. Most messages end a sentence that begins with `failed to read kdb` and
/// the path.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "tools"), expect(dead_code, reason = "of whole files"))]
pub(crate) enum Fault {
    #[error("")]
    Io(#[source] io::Error),
    #[error(": it is no regular file")]
    NotAFile,
    #[error(": {0} bytes are less than {MIN_FILE_BYTES}")]
    TooSmall(u64),
    #[error(": it is no SQLite 3 file")]
    NotSqlite,
    /// SQLite's word for the mode found.
    #[error(": its journal mode is `{0}`, not `delete`")]
    JournalMode(&'static str),
    /// Bytes of the file and its log, and the limit: it can be read only from a copy, since another
    /// program has it open in WAL mode or it seems damaged.
    #[error(": its {0} bytes are too many to copy, the limit is {1}")]
    TooLargeToCopy(u64, u64),
    /// During every attempt to copy it.
    #[error(": it keeps changing")]
    KeepsChanging,
    /// The first error of an operation that then succeeded: the file is not damaged.
    #[error("")]
    Transient(#[source] Box<ReadError>),
    /// Its rollback journal.
    #[error(": `{}` has what a program did not finish to write", .0.display())]
    Unfinished(PathBuf),
    #[error(" to its end: interrupted")]
    Interrupted,
    /// A program was killed while it wrote to the file, and only who may change it can undo that.
    #[error(": a write to it was cut short and is not undone yet")]
    HotJournal,
    /// The first column missing.
    #[error(": column `{0}` of kern_db is missing")]
    OtherTable(&'static str),
    /// A view or virtual table, which could compute anything.
    #[error(": its schema has `{0}`, which is no plain table")]
    Statement(String),
    /// So that its rows can't be read in order.
    #[error(": kern_db has no unique index on its keys")]
    NoIndex,
    /// The index has the key out of order or twice.
    #[error(" in key order: kernel `{0}` is out of order")]
    Order(Box<KernelKey>),
    #[error("")]
    Sqlite(#[source] rusqlite::Error),
    #[error(": its rows have no end, or hold far more than it does")]
    Runaway,
    /// The row's key, as far as it could be read.
    #[error("")]
    Row(Box<KernelKey>, #[source] RowError),
    /// SQLite's error of a write.
    #[error("")]
    Write(#[source] rusqlite::Error),
    /// The row that was just written can't be read back: the file is damaged in a
    /// way that writing did not detect.
    #[error("")]
    ReadBack(Box<KernelKey>),
    /// A key or code object that no kdb accepts.
    #[error("")]
    Input(Box<Error>),
}

impl Fault {
    pub(crate) fn of(self, path: &Path) -> ReadError {
        ReadError { path: path.to_owned(), fault: self }
    }
}

impl ReadError {
    /// The error of a file that the operating system can't read.
    pub fn io(path: &Path, source: io::Error) -> Self {
        Fault::Io(source).of(path)
    }

    /// The error of an operation that failed with this one, and then succeeded.
    #[must_use]
    pub fn transient(self) -> Self {
        Self { path: self.path.clone(), fault: Fault::Transient(Box::new(self)) }
    }

    /// The same, described as an error of a read, whichever operation failed.
    #[must_use]
    pub fn of_read(self) -> Self {
        let fault = match self.fault {
            Fault::Write(source) => Fault::Sqlite(source),
            Fault::ReadBack(_) => Fault::NotSqlite,
            other => other,
        };
        Self { fault, ..self }
    }

    /// The kind of error.
    pub fn kind(&self) -> KdbErrorKind {
        match &self.fault {
            Fault::Io(source) if source.kind() == io::ErrorKind::NotFound => KdbErrorKind::Absent,
            Fault::Io(_)
            | Fault::NotAFile
            | Fault::Interrupted
            | Fault::HotJournal
            | Fault::Input(_)
            | Fault::Transient(_) => KdbErrorKind::Denied,
            Fault::KeepsChanging => KdbErrorKind::Busy,
            Fault::TooSmall(_) => KdbErrorKind::TooSmall,
            Fault::NotSqlite | Fault::Order(_) | Fault::ReadBack(_) => KdbErrorKind::Corrupt,
            Fault::Runaway => KdbErrorKind::Runaway,
            Fault::JournalMode(_) | Fault::TooLargeToCopy(..) => KdbErrorKind::Journal,
            Fault::Unfinished(_) => KdbErrorKind::Unfinished,
            Fault::OtherTable(_) => KdbErrorKind::OtherTable,
            Fault::Statement(_) | Fault::NoIndex => KdbErrorKind::Schema,
            Fault::Sqlite(source) | Fault::Write(source) => KdbErrorKind::from_sqlite(source),
            Fault::Row(_, RowError::OtherKey(_) | RowError::Unreachable) => KdbErrorKind::RowIndex,
            Fault::Row(
                _,
                RowError::Bzip2(_)
                | RowError::Length { .. }
                | RowError::HashForm(_)
                | RowError::HashMismatch { .. },
            ) => KdbErrorKind::Row,
            Fault::Row(..) => KdbErrorKind::RowLimit,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match &self.fault {
            Fault::Io(source) => hint_of(source),
            Fault::NotAFile => "name the .kdb file itself",
            Fault::TooSmall(0) => "it is empty: write it again, or install its package again",
            Fault::TooSmall(_) => {
                "a Git LFS pointer looks like this: run `git lfs pull`, or install the package again"
            }
            Fault::NotSqlite => "check the download: the file holds something else",
            Fault::JournalMode(_) => JOURNAL_MODE_HINT,
            Fault::TooLargeToCopy(..) => {
                "close the program that has it open, or take a smaller limit for the cache"
            }
            Fault::KeepsChanging => "no action needed: it is read again",
            Fault::Transient(_) => "no action needed for once; if it happens again, check the disk",
            Fault::Unfinished(_) => JOURNAL_HINT,
            Fault::Interrupted => "run it again",
            Fault::HotJournal => {
                "no action needed: the next program that uses it as its cache undoes the write"
            }
            Fault::OtherTable(_) => {
                "the file is no kernel database of MIOpen's, or a performance database: check its name"
            }
            Fault::NoIndex => "build the file or install its package again",
            // SQLite opens further files by itself, and does not report the
            // reason.
            Fault::Sqlite(source) if source.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
                "check the permissions of the file and its directory, and that the program may \
                 open more files (`ulimit -n`)"
            }
            Fault::Sqlite(source)
                if self.kind() == KdbErrorKind::Denied
                    && !matches!(
                        source.sqlite_error_code(),
                        Some(ErrorCode::DiskFull | ErrorCode::TooBig)
                    ) =>
            {
                "try again; if that changes nothing, check the system's memory and its disk"
            }
            Fault::Sqlite(_) if self.kind() == KdbErrorKind::Busy => {
                "find the program that keeps it locked"
            }
            Fault::Sqlite(_) | Fault::Row(..) | Fault::Order(_) => {
                "build the file or install its package again; `gfxpack kdb verify` lists all that \
                 is wrong"
            }
            Fault::Statement(_) => "gfxpack reads tables and no views: build the file again",
            Fault::Runaway => "the file was made to do this: do not use it",
            Fault::Write(_) => WRITE_HINT,
            Fault::ReadBack(_) => "remove the file: it is damaged",
            Fault::Input(_) => "check the kernel's key and its code object",
        }
    }
}

/// What to do about another journal mode than DELETE.
pub(crate) const JOURNAL_MODE_HINT: &str =
    "as the file's owner run `sqlite3 FILE 'pragma journal_mode=delete'`";

/// What to do about an unfinished write.
pub(crate) const JOURNAL_HINT: &str = "close the program that writes to it; if it was killed, \
     `sqlite3 FILE 'SELECT * FROM sqlite_schema'` takes back what it had not finished";

/// What to do about a file that could not be written.
pub(crate) const WRITE_HINT: &str =
    "check that the directory exists, may be written, and has room for the file";

/// What to do about an error of the operating system.
fn hint_of(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        // The files may belong to a program that looks up kernels, or be given
        // on the command line.
        Some(Errno::MFILE | Errno::NFILE) => {
            "close some of the program's files, name fewer, or raise its limit (`ulimit -n`)"
        }
        Some(Errno::LOOP) => "check the symbolic links on the path: they lead in a circle",
        _ if error.kind() == io::ErrorKind::NotFound => {
            "check the path, or install the package that holds it"
        }
        _ => "check the permissions of the file and of the directories above it",
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.fault {
            Fault::Transient(_) => {
                write!(f, "a read of kdb `{path}` failed once and then succeeded")
            }
            Fault::Row(key, _) => write!(f, "failed to read kernel `{key}` of kdb `{path}`"),
            Fault::Write(_) => write!(f, "failed to write kdb `{path}`"),
            Fault::ReadBack(key) => {
                write!(f, "failed to find kernel `{key}` in kdb `{path}` after it was written")
            }
            Fault::Input(error) => error.fmt(f),
            fault => write!(f, "failed to read kdb `{path}`{fault}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            Fault::Input(error) => error.source(),
            fault => std::error::Error::source(fault),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        let kind = match error.fault {
            Fault::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Usage,
        };
        Self::new(kind, &error, error.hint()).caused_by(error)
    }
}

/// Why a stored row is not a valid kernel.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "tools"), expect(dead_code, reason = "of whole files"))]
pub(crate) enum RowError {
    #[error("failed to read column `{column}`: it holds {found}")]
    ColumnType { column: &'static str, found: &'static str },
    #[error("failed to read column `{column}`: its text is not UTF-8")]
    NotUtf8 { column: &'static str },
    /// `uncompressed_size` is negative, or an object is too large.
    #[error("failed to accept a code object of {0} bytes: the limit is {MAX_OBJECT_BYTES}")]
    Size(i64),
    /// A small blob that declares a large object and does not begin as a code
    /// object.
    #[error(
        "failed to accept a code object of {declared} bytes in a blob of {stored}: it does not \
         begin as one"
    )]
    Filler { stored: usize, declared: u64 },
    /// Earlier rows have used up what all rows of the file may unpack to.
    #[error(
        "failed to accept a code object of {size} bytes: the rows of a file of this size may \
         unpack to {limit} in all"
    )]
    Work { size: u64, limit: u64 },
    #[error("failed to accept a code object of no bytes")]
    Empty,
    #[error("failed to decompress the blob")]
    Bzip2(#[source] io::Error),
    /// `relation`: `only`, or `at least` if decoding stopped at the bound.
    #[error("failed to decompress the blob to {declared} bytes: it holds {relation} {actual}")]
    Length { declared: u64, relation: &'static str, actual: u64 },
    #[error("failed to accept the blob: {0} bytes follow its bzip2 stream")]
    Trailing(usize),
    #[error("failed to accept hash `{0}`: it is not 32 lower-case hexadecimal digits")]
    HashForm(String),
    #[error("the hash differs: `{stored}` is stored, the code object has `{computed}`")]
    HashMismatch { stored: String, computed: String },
    #[error("failed to reach the kernel: the index leads to `{0}`")]
    OtherKey(KernelKey),
    #[error("failed to reach the kernel: its key leads to no row")]
    Unreachable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_is_not_utf8_is_damage() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let asked =
            connection.query_row("SELECT CAST(x'ff' AS TEXT)", [], |row| row.get::<_, String>(0));
        assert_eq!(KdbErrorKind::from_sqlite(&asked.unwrap_err()), KdbErrorKind::Corrupt);
    }
}
