//! What reading, writing and merging files can fail with.

use std::io;
use std::path::PathBuf;

use crate::file::row::RowError;
use crate::key::CacheKey;

/// Why a file, or a row of it, could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file system refuses: absent, no permission, a failing disk.
    #[error("failed to read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// No SQLite file, one in another journal mode, or one that is half written.
    #[error("failed to read `{path}`: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// The schema is neither rocFFT's nor that of the dense layout. Others are
    /// not read: a view could compute rows without an end.
    #[error("failed to read `{path}`: its schema is not that of a kernel cache: `{found}`")]
    Schema {
        /// The file.
        path: PathBuf,
        /// The beginning of the first statement that does not belong, or
        /// `no cache_v1`.
        found: String,
    },
    /// SQLite refuses: a damaged or hostile file.
    #[error("failed to read `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Rows without end, or far more in them than a file of that size can hold.
    #[error("failed to read `{path}`: its rows have no end, or hold far more than it does")]
    Runaway {
        /// The file.
        path: PathBuf,
    },
    /// A row that is damaged.
    #[error("failed to read row {row} of `{path}`")]
    Row {
        /// The file.
        path: PathBuf,
        /// The row, counted from 1 in key order; 0 in a lookup.
        row: u64,
        /// What is wrong with it.
        source: RowError,
    },
}

impl ReadError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "check the path, or install the package that holds it"
            }
            Self::Io { .. } => "check the permissions of the file and of the directories above it",
            Self::Unusable { .. } => {
                "close the program that writes to it; one in WAL mode becomes readable by \
                 `sqlite3 FILE 'pragma journal_mode=delete'`"
            }
            Self::Schema { .. } => "name a kernel cache of rocFFT: rocfft_kernel_cache*.db",
            Self::Sqlite { .. } | Self::Runaway { .. } | Self::Row { .. } => {
                "the file is damaged: build it again, or install its package again"
            }
        }
    }
}

/// Why a file was not written, or files were not merged. The destination is then
/// as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A key that does not come after the one before it.
    #[error("failed to write kernel `{0}`: its key is not above the one before it")]
    Order(Box<CacheKey>),
    /// The caller could not deliver a code object.
    #[error("failed to read the code object of kernel `{key}`")]
    Code {
        /// The key.
        key: Box<CacheKey>,
        /// What the caller said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row that would make rocFFT fail.
    #[error("failed to accept kernel `{key}`")]
    Row {
        /// The key.
        key: Box<CacheKey>,
        /// What is wrong with it.
        source: RowError,
    },
    /// The file system refuses.
    #[error("failed to write `{path}`")]
    Io {
        /// The destination.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// A file that is to be merged can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two files have different code objects for one key.
    #[error("`{first}` and `{second}` differ in kernel `{key}`")]
    Conflict {
        /// The key.
        key: Box<CacheKey>,
        /// The file that was named first.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// SQLite refuses: most likely the disk is full.
    #[error("failed to write `{path}`")]
    Sqlite {
        /// The destination.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl WriteError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Order(_) => "sort the keys, and name every one once",
            Self::Code { .. } | Self::Row { .. } => {
                "build the kernel again: rocFFT fails on a row that the driver refuses"
            }
            Self::Io { .. } | Self::Sqlite { .. } => {
                "check that the directory exists, may be written, and has room for the file"
            }
            Self::Read(error) => error.hint(),
            Self::Conflict { .. } => "build both with the same toolchain, or leave one of them out",
        }
    }
}
