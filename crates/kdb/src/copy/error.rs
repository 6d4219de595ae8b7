//! Errors of copying rows into another kdb.

use std::path::PathBuf;

use gfxpack_model::KernelKey;

use crate::error::{ReadError, WriteError};

/// Why rows were not copied into another kdb.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Reading a file failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Writing a file failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A key that no kdb should have. MIOpen binds keys when it stores rows,
    /// but splices them into the SQL when it looks them up.
    #[error("failed to take over a kernel of kdb `{path}`")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with the key.
        source: WriteError,
    },
    /// Two files have different code objects for one key.
    #[error("failed to merge kernel `{key}`: `{first}` and `{second}` differ in it")]
    Conflict {
        /// The key.
        key: Box<KernelKey>,
        /// A file with this key.
        first: PathBuf,
        /// Another file with this key.
        second: PathBuf,
    },
}

impl CopyError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(error) => error.hint(),
            Self::Write(error) => error.hint(),
            Self::Key { .. } => "build the file again: MIOpen could never find this kernel",
            Self::Conflict { .. } => {
                "--on-conflict first takes that of the file named first; `gfxpack kdb diff` lists all"
            }
        }
    }
}

impl From<CopyError> for gfxpack_model::Error {
    fn from(error: CopyError) -> Self {
        let (kind, hint) = (
            match &error {
                CopyError::Write(_) => gfxpack_model::ErrorKind::Internal,
                CopyError::Read(ReadError::Interrupted { .. }) => {
                    gfxpack_model::ErrorKind::Interrupted
                }
                _ => gfxpack_model::ErrorKind::Usage,
            },
            error.hint(),
        );
        Self::new(kind, &error, hint).caused_by(error)
    }
}
