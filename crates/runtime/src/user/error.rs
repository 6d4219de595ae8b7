//! Errors of reading and writing the user's kdb.

use std::path::PathBuf;

use gfxpack_kdb::{KdbErrorKind, ReadError};

use crate::miss::MissReason;
use crate::trust::Untrusted;

/// Why the user's kdb could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UserError {
    #[error("failed to use the user's kernel cache")]
    Untrusted(#[from] Untrusted),
    #[error("failed to open the user's kdb")]
    Open(#[from] ReadError),
    #[error("failed to write the user's kdb")]
    Write(#[source] ReadError),
    #[error("failed to write `{}`: it can only be read", .0.display())]
    ReadOnly(PathBuf),
}

impl UserError {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            _ if self.is_busy() => "find the program that keeps the user's kdb locked",
            Self::Untrusted(error) => error.hint(),
            _ => "check that the disk has room and the directory is yours",
        }
    }

    /// The error of the file itself.
    pub(super) fn of_file(&self) -> Option<&ReadError> {
        match self {
            Self::Open(error) | Self::Write(error) => Some(error),
            Self::Untrusted(_) | Self::ReadOnly(_) => None,
        }
    }

    /// The same, described as an error of a read.
    pub(super) fn into_read(self) -> Result<ReadError, Self> {
        match self {
            Self::Open(error) | Self::Write(error) => Ok(error.of_read()),
            other => Err(other),
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.of_file().is_some_and(|error| error.kind() == KdbErrorKind::Busy)
    }
}

impl From<UserError> for MissReason {
    fn from(error: UserError) -> Self {
        match error {
            UserError::Untrusted(error) => Self::Untrusted(error),
            UserError::Open(error) | UserError::Write(error) => Self::of(error),
            // Only of a store.
            UserError::ReadOnly(_) => Self::NoKernel,
        }
    }
}
