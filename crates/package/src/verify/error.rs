//! Errors of verification.

use gfxpack_model::{Error, ErrorKind, io_hint, is_no_such_path};
use std::path::PathBuf;

use crate::read::ReadError;
use crate::signing::SigningError;

/// Why something could not be verified. What is wrong with it is not an error but
/// a [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A file could not be read, or a temporary one could not be written.
    #[error(transparent)]
    File(#[from] Error),
    /// Signatures could not be checked.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// A package could not be read to its end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The name does not have the extension of a package.
    #[error("failed to verify `{path}`: its name is no package's")]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// A pipe, a device or a socket.
    #[error("failed to verify `{path}`: it is neither file nor directory")]
    NotAFile {
        /// The path that was given.
        path: PathBuf,
    },
    /// There is nothing to verify.
    #[error("failed to find a package below `{dir}`")]
    NoPackage {
        /// The directory.
        dir: PathBuf,
    },
}

impl VerifyError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::File(error) => error.hint().unwrap_or_default(),
            Self::Signing(error) => return error.hint(),
            Self::Read(ReadError::Io { source, .. }) => io_hint(source),
            Self::Read(ReadError::Visitor(cause)) => {
                cause.downcast_ref().and_then(Error::hint).unwrap_or("see the cause")
            }
            Self::Name { .. } => {
                "give a .deb, .rpm, .tar.gz, .tar.xz, .tar.zst, .whl, .oci.tar or .pkg.tar.zst, or a directory; \
                 kdbs are verified by `gfxpack kdb verify`, performance and find databases by \
                 `gfxpack perfdb lint`"
            }
            Self::NotAFile { .. } => {
                "write what comes through a pipe or from a device to a file first"
            }
            Self::NoPackage { .. } => {
                "give a repository, or a directory that `gfxpack dist` wrote packages into"
            }
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
            Self::Read(ReadError::Io { source, .. }) => is_no_such_path(source),
            Self::Read(ReadError::Visitor(_)) => false,
            Self::Name { .. } | Self::NotAFile { .. } | Self::NoPackage { .. } => true,
        }
    }
}

impl From<VerifyError> for Error {
    fn from(error: VerifyError) -> Self {
        let kind = if error.is_usage() { ErrorKind::Usage } else { ErrorKind::Internal };
        let hint = error.hint();
        Self::new(kind, &error, hint).caused_by(error)
    }
}
