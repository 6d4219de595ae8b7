//! Errors of reading, writing and merging files.

use std::io;
use std::path::PathBuf;

use crate::file::row::RowError;
use crate::key::CacheKey;

/// Why a file, or a row of it, could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// An error of the file system: missing, no permission, a failing disk.
    #[error("failed to read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// Not an SQLite file, one in another journal mode, or a partly written one.
    #[error("failed to read `{path}`: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: &'static str,
    },
    /// The schema is not rocFFT's. Others are refused, since a view could compute rows endlessly.
    #[error("failed to read `{path}`: its schema is not that of a kernel cache: `{found}`")]
    Schema {
        /// The file.
        path: PathBuf,
        /// The beginning of the first unexpected statement, or `no cache_v1`.
        found: String,
    },
    /// An error of SQLite: a damaged or malicious file.
    #[error("failed to read `{path}`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// Rows without end, or with far more data than a file of that size can contain.
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
        /// The problem.
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

/// Why a file was not written, or files were not merged. The destination is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A key that does not come after the one before it.
    #[error("failed to write kernel `{0}`: its key is not above the one before it")]
    Order(Box<CacheKey>),
    /// The caller could not provide a code object.
    #[error("failed to read the code object of kernel `{key}`")]
    Code {
        /// The key.
        key: Box<CacheKey>,
        /// The caller's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row that would make rocFFT fail.
    #[error("failed to accept kernel `{key}`")]
    Row {
        /// The key.
        key: Box<CacheKey>,
        /// The problem.
        source: RowError,
    },
    /// An error of the file system.
    #[error("failed to write `{path}`")]
    Io {
        /// The destination.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file to merge can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two files have different code objects for one key.
    #[error("`{first}` and `{second}` differ in kernel `{key}`")]
    Conflict {
        /// The key.
        key: Box<CacheKey>,
        /// The file that was given first.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },
    /// An error of SQLite: most likely the disk is full.
    #[error("failed to write `{path}`")]
    Sqlite {
        /// The destination.
        path: PathBuf,
        /// SQLite's error.
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

impl From<ReadError> for gfxpack_model::Error {
    fn from(error: ReadError) -> Self {
        let (kind, hint) = (gfxpack_model::ErrorKind::Usage, error.hint());
        Self::new(kind, &error, hint).caused_by(error)
    }
}

impl From<WriteError> for gfxpack_model::Error {
    fn from(error: WriteError) -> Self {
        let (kind, hint) = (gfxpack_model::ErrorKind::Internal, error.hint());
        Self::new(kind, &error, hint).caused_by(error)
    }
}
