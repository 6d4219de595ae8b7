//! Errors of storing a kernel into the user's kdb.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{KdbErrorKind, ReadError, WriteError};

use crate::trust::Untrusted;

/// Why a kernel could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("failed to use the user's kernel cache")]
    Untrusted(#[from] Untrusted),
    #[error("failed to open the user's kdb")]
    Open(#[from] ReadError),
    #[error("failed to write the user's kdb")]
    Write(#[from] WriteError),
    #[error("failed to write `{}`: it can only be read", .0.display())]
    ReadOnly(PathBuf),
}

impl StoreError {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            _ if self.is_busy() => "find the program that keeps the user's kdb locked",
            Self::Untrusted(error) => error.hint(),
            _ => "check that the disk has room and the directory is yours",
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Open(error) => error.kind() == KdbErrorKind::Busy,
            Self::Write(error) => error.kind() == KdbErrorKind::Busy,
            _ => false,
        }
    }

    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Open(error) => is_damage(error.kind()),
            Self::Write(error) => is_damage(error.kind()),
            _ => false,
        }
    }

    pub(crate) fn into_read_error(self, path: &Path) -> ReadError {
        match self {
            Self::Open(error) => error,
            Self::Write(WriteError::Sqlite { path, source }) => ReadError::Sqlite { path, source },
            // The error describes a read, whichever operation failed.
            _ => ReadError::NotSqlite { path: path.to_owned() },
        }
    }

    /// An error that did not happen again.
    pub(crate) fn passing(self, path: &Path) -> Self {
        let source = Box::new(self.into_read_error(path));
        Self::Open(ReadError::Transient { path: path.to_owned(), source })
    }
}

/// Whether the error means that the file as a whole is not a kdb.
pub(crate) fn is_damage(kind: KdbErrorKind) -> bool {
    matches!(kind, KdbErrorKind::Corrupt | KdbErrorKind::TooSmall | KdbErrorKind::Schema)
}
