//! Errors of a harvest.

use std::io;

use gfxpack_kdb::ReadError;

/// A file that can't be harvested, or a harvest that can't continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarvestError {
    /// A file or directory can't be read.
    #[error("failed to read `{name}`")]
    Read {
        /// The file as given by the user.
        name: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A compressed file is damaged or ends early.
    #[error("failed to unpack `{name}`: it is damaged, or ends early ({codec})")]
    Damaged {
        /// The file.
        name: String,
        /// The compression program for such files.
        codec: &'static str,
        /// The decompressor's error.
        source: io::Error,
    },
    /// A kdb can't be read.
    #[error(transparent)]
    Kdb(#[from] ReadError),
    /// A kdb in a stream; SQLite needs a file.
    #[error("failed to read a kdb from `{name}`: it is packed, or no file")]
    PackedKdb {
        /// The file.
        name: String,
    },
    /// A Git LFS pointer in place of a file that was not fetched.
    #[error("failed to read `{name}`: it is a pointer of Git LFS, not the file")]
    LfsPointer {
        /// The file.
        name: String,
    },
    /// The standard input was given more than once.
    #[error("`-` is given twice")]
    StdinTwice,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl HarvestError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check the permissions of the file and of the directories above it"
            }
            Self::Read { .. } => "check the path",
            Self::Damaged { .. } => "get the file again; --keep-going takes what can be read of it",
            Self::Kdb(error) => error.hint(),
            Self::PackedKdb { .. } => "unpack it, and name the file",
            Self::LfsPointer { .. } => "fetch the file itself with `git lfs pull`",
            Self::StdinTwice => "name `-` once: the standard input can only be read once",
            Self::Interrupted => "start it again",
        }
    }
}

impl From<HarvestError> for gfxpack_model::Error {
    fn from(error: HarvestError) -> Self {
        let (kind, hint) = (
            match error {
                HarvestError::Interrupted => gfxpack_model::ErrorKind::Interrupted,
                _ => gfxpack_model::ErrorKind::Usage,
            },
            error.hint(),
        );
        Self::new(kind, &error, hint).caused_by(error)
    }
}
