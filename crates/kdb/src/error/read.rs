//! What reading a kdb can fail with.

use std::io;
use std::path::PathBuf;

use gfxpack_model::KernelKey;

use super::row::RowError;
use crate::fault::Fault;
use crate::schema::MIN_FILE_BYTES;

/// What to do about another journal mode than DELETE.
pub(crate) const JOURNAL_MODE_HINT: &str =
    "as the file's owner run `sqlite3 FILE 'pragma journal_mode=delete'`";

/// What to do about a write that was not finished.
pub(crate) const JOURNAL_HINT: &str = "close the program that writes to it; if it was killed, \
     `sqlite3 FILE 'SELECT * FROM sqlite_schema'` takes back what it had not finished";

/// What to do about text in UTF-16.
pub(crate) const ENCODING_HINT: &str =
    "`gfxpack kdb repair` writes its rows into a file whose text is UTF-8";

/// Why a kdb, or a kernel in it, could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file system refuses: absent, no permission, a failing disk.
    #[error("failed to read kdb `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// A directory, pipe or device.
    #[error("failed to read kdb `{path}`: it is no regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Less than MIOpen looks at: a Git LFS pointer most likely.
    #[error("failed to read kdb `{path}`: {size} bytes are less than {MIN_FILE_BYTES}")]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        size: u64,
    },
    /// Another magic at the start.
    #[error("failed to read kdb `{path}`: it is no SQLite 3 file")]
    NotSqlite {
        /// The file.
        path: PathBuf,
    },
    /// Write-ahead logging: readable only by who may write beside it.
    #[error("failed to read kdb `{path}`: its journal mode is `{mode}`, not `delete`")]
    JournalMode {
        /// The file.
        path: PathBuf,
        /// SQLite's word for the mode found.
        mode: &'static str,
    },
    /// A file that can only be read from a copy, since another program has it
    /// open in WAL mode or it seems damaged, and is too large for one.
    #[error(
        "failed to read kdb `{path}`: its {size} bytes are too many to copy, the limit is {limit}"
    )]
    TooLargeToCopy {
        /// The file.
        path: PathBuf,
        /// Its bytes, with those of its log.
        size: u64,
        /// The limit in force.
        limit: u64,
    },
    /// Another program wrote to the file whenever it was copied.
    #[error("failed to read kdb `{path}`: it keeps changing")]
    KeepsChanging {
        /// The file.
        path: PathBuf,
    },
    /// Something failed that did not fail again: the file is whole.
    #[error("a read of kdb `{path}` failed once and then succeeded")]
    Transient {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: Box<ReadError>,
    },
    /// A rollback journal that is still to be played back: the file itself
    /// holds half of what a program was writing.
    #[error("failed to read kdb `{path}`: `{journal}` has what a program did not finish to write")]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Its rollback journal.
        journal: PathBuf,
    },
    /// Text in UTF-16, so that the rows stand in another order than that of
    /// the keys' bytes.
    #[error("failed to read kdb `{path}` in key order: its text is {encoding}, not UTF-8")]
    Encoding {
        /// The file.
        path: PathBuf,
        /// SQLite's word for the encoding found.
        encoding: &'static str,
    },
    /// The caller asked to stop.
    #[error("failed to read kdb `{path}` to its end: interrupted")]
    Interrupted {
        /// The file.
        path: PathBuf,
    },
    /// A program that wrote to it was killed, and its write must be undone
    /// before the file can be read: by one who may change it.
    #[error("failed to read kdb `{path}`: a write to it was cut short and is not undone yet")]
    HotJournal {
        /// The file.
        path: PathBuf,
    },
    /// The table or a column that MIOpen asks for is not there.
    #[error("failed to read kdb `{path}`: column `{column}` of kern_db is missing")]
    Schema {
        /// The file.
        path: PathBuf,
        /// The first column missing.
        column: &'static str,
    },
    /// More in the schema than tables and indices: a view or virtual table could
    /// compute anything, and no reader of kernels needs one.
    #[error("failed to read kdb `{path}`: its schema has `{statement}`, which is no plain table")]
    Statement {
        /// The file.
        path: PathBuf,
        /// The beginning of the statement.
        statement: String,
    },
    /// A table without the unique index that lookups go through, so that its
    /// rows can't be had in order.
    #[error("failed to read kdb `{path}`: kern_db has no unique index on its keys")]
    NoIndex {
        /// The file.
        path: PathBuf,
    },
    /// The index, or a view, gives keys out of order or twice.
    #[error("failed to read kdb `{path}` in key order: kernel `{key}` is out of order")]
    Order {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Box<KernelKey>,
    },
    /// SQLite refuses: a damaged or hostile file.
    #[error("failed to read kdb `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Rows without end, or with far more in them than a file of that size can
    /// hold: only a file made for that has such.
    #[error("failed to read kdb `{path}`: its rows have no end, or hold far more than it does")]
    Runaway {
        /// The file.
        path: PathBuf,
    },
    /// A row that is no kernel.
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
    /// Whether the file is simply not there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The kind of error.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Io { source, .. } => Fault::from_io(source),
            Self::NotAFile { .. }
            | Self::Interrupted { .. }
            | Self::HotJournal { .. }
            | Self::Transient { .. } => Fault::Denied,
            Self::KeepsChanging { .. } => Fault::Busy,
            Self::TooSmall { .. } => Fault::TooSmall,
            Self::NotSqlite { .. } | Self::Runaway { .. } | Self::Order { .. } => Fault::Corrupt,
            Self::JournalMode { .. } | Self::Unfinished { .. } | Self::TooLargeToCopy { .. } => {
                Fault::Journal
            }
            Self::Schema { .. }
            | Self::Statement { .. }
            | Self::NoIndex { .. }
            | Self::Encoding { .. } => Fault::Schema,
            Self::Sqlite { source, .. } => Fault::from_sqlite(source),
            // What stands in an index concerns more than the one row.
            Self::Row { source: RowError::OtherKey(_) | RowError::Unreachable, .. } => {
                Fault::Corrupt
            }
            Self::Row { .. } => Fault::Row,
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
            Self::Encoding { .. } => ENCODING_HINT,
            Self::Interrupted { .. } => "run it again",
            Self::HotJournal { .. } => {
                "no action needed: the next program that uses it as its cache undoes the write"
            }
            Self::Schema { .. } => {
                "the file is no kernel database of MIOpen's, or a performance database: check its name"
            }
            Self::NoIndex { .. } => "`gfxpack kdb repair` writes its rows into a file that has one",
            // SQLite opens files of its own accord, and keeps the reason to itself.
            Self::Sqlite { source, .. }
                if source.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen) =>
            {
                "check the permissions of the file and its directory, and that the program may \
                 open more files (`ulimit -n`)"
            }
            Self::Sqlite { .. } if self.fault() == Fault::Denied => {
                "try again; if that changes nothing, check the system's memory and its disk"
            }
            Self::Sqlite { .. } if self.fault() == Fault::Busy => {
                "find the program that keeps it locked"
            }
            Self::Sqlite { .. } | Self::Row { .. } | Self::Order { .. } => {
                "`gfxpack kdb verify` lists all that is wrong, `gfxpack kdb repair` saves the rest; \
                 or build the file or install its package again"
            }
            Self::Statement { .. } => {
                "gfxpack reads tables, and no view but that of its dense layout: build the file \
                 again, or copy the rows into a table"
            }
            Self::Runaway { .. } => {
                "the file was made to do this: do not use it; if you trust it, allow for more \
                 with --max-object"
            }
        }
    }
}

/// What to do about a file that the system does not hand over.
fn hint_of(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        // The files may be a program's that asks for kernels, or named by hand.
        Some(Errno::MFILE | Errno::NFILE) => {
            "close some of the program's files, name fewer, or raise its limit (`ulimit -n`)"
        }
        Some(Errno::LOOP) => "check the symbolic links on the path: they lead in a circle",
        _ => "check the permissions of the file and of the directories above it",
    }
}
