//! Errors of indexing a repository.

use gfxpack_model::{Error, ErrorKind};
use std::path::PathBuf;

use crate::signing::SigningError;

/// Why a repository could not be indexed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] Error),
    /// An index could not be signed.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// There is nothing to index.
    #[error("failed to find a .deb or .rpm below `{dir}`")]
    NoPackage {
        /// The directory.
        dir: PathBuf,
    },
    /// What is written into the directory would be written elsewhere.
    #[error("failed to write to `{path}`: it is a link")]
    Link {
        /// The link in the directory.
        path: PathBuf,
    },
    /// Another createrepo_c is running or was killed, on a file system without
    /// locks.
    #[error("failed to index `{dir}`: `{underway}` exists")]
    Underway {
        /// The directory.
        dir: PathBuf,
        /// The directory that createrepo_c writes to.
        underway: &'static str,
    },
    /// createrepo_c wrote something that is not XML.
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
            Self::File(error) => error.hint().unwrap_or_default(),
            Self::Signing(error) => return error.hint(),
            Self::NoPackage { .. } => "give the directory that `gfxpack dist` wrote packages into",
            Self::Link { .. } => "remove the link, which may lead to files that are not yours",
            Self::Underway { .. } => {
                "let the createrepo_c that runs there end; if none does, remove that directory"
            }
            Self::Xml { .. } => "remove `repodata` in the directory, and index it again",
        };
        fixed.to_owned()
    }

    /// Whether the error is in the user's command line or input, not on the
    /// machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::File(error) => error.kind() == ErrorKind::Usage,
            Self::Signing(error) => error.is_usage(),
            Self::NoPackage { .. } | Self::Link { .. } | Self::Underway { .. } => true,
            Self::Xml { .. } => false,
        }
    }
}

impl From<RepositoryError> for Error {
    fn from(error: RepositoryError) -> Self {
        let kind = if error.is_usage() { ErrorKind::Usage } else { ErrorKind::Internal };
        let hint = error.hint();
        Self::new(kind, &error, hint).caused_by(error)
    }
}
