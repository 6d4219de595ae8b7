//! Errors of reading a kdb.

use std::io;
use std::path::PathBuf;

use gfxpack_model::KernelKey;

use super::row::RowError;
use crate::error_kind::KdbErrorKind;
use crate::schema::MIN_FILE_BYTES;

/// What to do about another journal mode than DELETE.
pub(crate) const JOURNAL_MODE_HINT: &str =
    "as the file's owner run `sqlite3 FILE 'pragma journal_mode=delete'`";

/// What to do about an unfinished write.
pub(crate) const JOURNAL_HINT: &str = "close the program that writes to it; if it was killed, \
     `sqlite3 FILE 'SELECT * FROM sqlite_schema'` takes back what it had not finished";

/// Why a kdb, or a kernel in it, could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system reports an error: file absent, no permission, a
    /// failing disk.
    #[error("failed to read kdb `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A directory, pipe or device.
    #[error("failed to read kdb `{path}`: it is no regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Smaller than MIOpen reads: most likely a Git LFS pointer.
    #[error("failed to read kdb `{path}`: {size} bytes are less than {MIN_FILE_BYTES}")]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        size: u64,
    },
    /// Does not begin as an SQLite file does.
    #[error("failed to read kdb `{path}`: it is no SQLite 3 file")]
    NotSqlite {
        /// The file.
        path: PathBuf,
    },
    /// Write-ahead logging: only a user who may write beside the file can read
    /// it.
    #[error("failed to read kdb `{path}`: its journal mode is `{mode}`, not `delete`")]
    JournalMode {
        /// The file.
        path: PathBuf,
        /// SQLite's word for the mode found.
        mode: &'static str,
    },
    /// A file that is too large to be copied, and can be read only from a copy,
    /// since another program has it open in WAL mode or it seems damaged.
    #[error(
        "failed to read kdb `{path}`: its {size} bytes are too many to copy, the limit is {limit}"
    )]
    TooLargeToCopy {
        /// The file.
        path: PathBuf,
        /// Bytes of the file and its log.
        size: u64,
        /// The limit in force.
        limit: u64,
    },
    /// Another program wrote to the file during every attempt to copy it.
    #[error("failed to read kdb `{path}`: it keeps changing")]
    KeepsChanging {
        /// The file.
        path: PathBuf,
    },
    /// An operation failed once and then succeeded: the file is not damaged.
    #[error("a read of kdb `{path}` failed once and then succeeded")]
    Transient {
        /// The file.
        path: PathBuf,
        /// The first error.
        source: Box<ReadError>,
    },
    /// A rollback journal that must be played back first: the file itself holds
    /// only part of an unfinished write.
    #[error("failed to read kdb `{path}`: `{journal}` has what a program did not finish to write")]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Its rollback journal.
        journal: PathBuf,
    },
    /// The caller asked to stop.
    #[error("failed to read kdb `{path}` to its end: interrupted")]
    Interrupted {
        /// The file.
        path: PathBuf,
    },
    /// A program was killed while it wrote to the file. Before the file can be
    /// read, somebody who may change it must undo the write.
    #[error("failed to read kdb `{path}`: a write to it was cut short and is not undone yet")]
    HotJournal {
        /// The file.
        path: PathBuf,
    },
    /// The table, or a column that MIOpen selects, is missing.
    #[error("failed to read kdb `{path}`: column `{column}` of kern_db is missing")]
    Schema {
        /// The file.
        path: PathBuf,
        /// The first column missing.
        column: &'static str,
    },
    /// The schema has more than tables and indices. A view or virtual table
    /// could compute anything, and no reader of kernels needs one.
    #[error("failed to read kdb `{path}`: its schema has `{statement}`, which is no plain table")]
    Statement {
        /// The file.
        path: PathBuf,
        /// The beginning of the statement.
        statement: String,
    },
    /// A table without the unique index for lookups, so that its rows can't be
    /// read in order.
    #[error("failed to read kdb `{path}`: kern_db has no unique index on its keys")]
    NoIndex {
        /// The file.
        path: PathBuf,
    },
    /// The index yields keys out of order or twice.
    #[error("failed to read kdb `{path}` in key order: kernel `{key}` is out of order")]
    Order {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Box<KernelKey>,
    },
    /// SQLite reports an error: the file is damaged or hostile.
    #[error("failed to read kdb `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// Rows without end, or with far more content than a file of that size can
    /// hold. Only a file made for this purpose is like that.
    #[error("failed to read kdb `{path}`: its rows have no end, or hold far more than it does")]
    Runaway {
        /// The file.
        path: PathBuf,
    },
    /// A row that is not a valid kernel.
    #[error("failed to read kernel `{key}` of kdb `{path}`")]
    Row {
        /// The file.
        path: PathBuf,
        /// The row's key, as far as it could be read.
        key: Box<KernelKey>,
        /// What is wrong with it.
        source: RowError,
    },
}

impl ReadError {
    /// Whether the file does not exist.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> KdbErrorKind {
        match self {
            Self::Io { source, .. } => KdbErrorKind::from_io(source),
            Self::NotAFile { .. }
            | Self::Interrupted { .. }
            | Self::HotJournal { .. }
            | Self::Transient { .. } => KdbErrorKind::Denied,
            Self::KeepsChanging { .. } => KdbErrorKind::Busy,
            Self::TooSmall { .. } => KdbErrorKind::TooSmall,
            Self::NotSqlite { .. } | Self::Runaway { .. } | Self::Order { .. } => {
                KdbErrorKind::Corrupt
            }
            Self::JournalMode { .. } | Self::Unfinished { .. } | Self::TooLargeToCopy { .. } => {
                KdbErrorKind::Journal
            }
            Self::Schema { .. } | Self::Statement { .. } | Self::NoIndex { .. } => {
                KdbErrorKind::Schema
            }
            Self::Sqlite { source, .. } => KdbErrorKind::from_sqlite(source),
            // Damage in an index concerns more than this one row.
            Self::Row { source: RowError::OtherKey(_) | RowError::Unreachable, .. } => {
                KdbErrorKind::Corrupt
            }
            Self::Row { .. } => KdbErrorKind::Row,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } if self.is_absent() => {
                "check the path, or install the package that holds it"
            }
            Self::Io { source, .. } => hint_of(source),
            Self::NotAFile { .. } => "name the .kdb file itself",
            Self::TooSmall { size: 0, .. } => {
                "it is empty: write it again, or install its package again"
            }
            Self::TooSmall { .. } => {
                "a Git LFS pointer looks like this: run `git lfs pull`, or install the package again"
            }
            Self::NotSqlite { .. } => "check the download: the file holds something else",
            Self::JournalMode { .. } => JOURNAL_MODE_HINT,
            Self::TooLargeToCopy { .. } => {
                "close the program that has it open, or take a smaller limit for the cache"
            }
            Self::KeepsChanging { .. } => "no action needed: it is read again",
            Self::Transient { .. } => {
                "no action needed for once; if it happens again, check the disk"
            }
            Self::Unfinished { .. } => JOURNAL_HINT,
            Self::Interrupted { .. } => "run it again",
            Self::HotJournal { .. } => {
                "no action needed: the next program that uses it as its cache undoes the write"
            }
            Self::Schema { .. } => {
                "the file is no kernel database of MIOpen's, or a performance database: check its name"
            }
            Self::NoIndex { .. } => "build the file or install its package again",
            // SQLite opens further files by itself, and does not report the
            // reason.
            Self::Sqlite { source, .. }
                if source.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen) =>
            {
                "check the permissions of the file and its directory, and that the program may \
                 open more files (`ulimit -n`)"
            }
            Self::Sqlite { .. } if self.kind() == KdbErrorKind::Denied => {
                "try again; if that changes nothing, check the system's memory and its disk"
            }
            Self::Sqlite { .. } if self.kind() == KdbErrorKind::Busy => {
                "find the program that keeps it locked"
            }
            Self::Sqlite { .. } | Self::Row { .. } | Self::Order { .. } => {
                "build the file or install its package again; `gfxpack kdb verify` lists all that \
                 is wrong"
            }
            Self::Statement { .. } => "gfxpack reads tables and no views: build the file again",
            Self::Runaway { .. } => "the file was made to do this: do not use it",
        }
    }
}

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
        _ => "check the permissions of the file and of the directories above it",
    }
}

impl From<ReadError> for gfxpack_model::Error {
    fn from(error: ReadError) -> Self {
        let (kind, hint) = (
            match error {
                ReadError::Interrupted { .. } => gfxpack_model::ErrorKind::Interrupted,
                _ => gfxpack_model::ErrorKind::Usage,
            },
            error.hint(),
        );
        Self::new(kind, &error, hint).caused_by(error)
    }
}
