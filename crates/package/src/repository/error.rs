//! Why a repository could not be indexed.

use std::path::PathBuf;

use gfxpack_process::{FileError, SystemToolError};

use crate::signing::SigningError;

/// Why a repository could not be indexed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// What makes indexes is not there, or failed.
    #[error(transparent)]
    Tool(#[from] SystemToolError),
    /// An index could not be signed.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// There is nothing to index.
    #[error("failed to find a .deb or .rpm below `{dir}`")]
    NoPackage {
        /// The directory.
        dir: PathBuf,
    },
    /// Another createrepo_c is at work, or was killed, where files can't be
    /// locked.
    #[error("failed to index `{dir}`: `{underway}` exists")]
    Underway {
        /// The directory.
        dir: PathBuf,
        /// What createrepo_c writes into.
        underway: &'static str,
    },
    /// createrepo_c wrote what is no XML.
    #[error("failed to read `{path}`")]
    Xml {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: roxmltree::Error,
    },
}

impl RepositoryError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::File(error) => error.hint(),
            Self::Tool(error) => return error.hint(),
            Self::Signing(error) => return error.hint(),
            Self::NoPackage { .. } => "give the directory that `gfxpack dist` wrote packages into",
            Self::Underway { .. } => {
                "let the createrepo_c that runs there end; if none does, remove that directory"
            }
            Self::Xml { .. } => "remove `repodata` in the directory, and index it again",
        };
        fixed.to_owned()
    }

    /// Whether the user's command line or input is at fault, and not the
    /// machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::File(error) => error.is_usage(),
            Self::Tool(error) => error.is_usage(),
            Self::Signing(error) => error.is_usage(),
            Self::NoPackage { .. } | Self::Underway { .. } => true,
            Self::Xml { .. } => false,
        }
    }
}
