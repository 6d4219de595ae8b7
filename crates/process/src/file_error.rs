//! Failed file operations, with hints for the user.

use std::io;
use std::path::{Path, PathBuf};

use crate::scratch_dir::ScratchDir;

/// A failed operation on a file or a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A path that the user gave, or one below it.
    #[error("failed to {action} `{path}`")]
    Io {
        /// A verb: `read`.
        action: &'static str,
        /// The file or the directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No temporary directory could be created.
    #[error("failed to create a temporary directory in `{dir}`")]
    TemporaryDir {
        /// The directory for temporary files.
        dir: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A temporary file could not be written.
    #[error("failed to write `{path}`")]
    Scratch {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FileError {
    /// Makes the error of an `action`, a verb, on `path`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.as_ref().to_owned(), source }
    }

    /// Makes the error of writing a temporary file.
    pub fn scratch(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Scratch { path: path.to_owned(), source }
    }

    /// Makes the error of a temporary directory that could not be created.
    #[must_use]
    pub fn temporary_dir(source: io::Error) -> Self {
        Self::TemporaryDir { dir: tempfile::env::temp_dir(), source }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { source, .. } => io_hint(source),
            Self::TemporaryDir { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => {
                    "make room on that disk, or set TMPDIR to a directory that may be written"
                }
                _ => "set TMPDIR to a directory that may be written",
            },
            Self::Scratch { .. } => {
                "set TMPDIR to a directory with room for the largest kdb, unpacked"
            }
        }
    }

    /// Whether the fault is in a path that the user gave, not in the machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_no_such_path(source))
    }
}

/// Creates a temporary directory.
///
/// # Errors
/// [`FileError::TemporaryDir`].
pub fn temporary_dir() -> Result<ScratchDir, FileError> {
    ScratchDir::below(&tempfile::env::temp_dir()).map_err(FileError::temporary_dir)
}

/// Whether the fault is in the path, not in the machine.
#[must_use]
pub fn is_no_such_path(error: &io::Error) -> bool {
    use io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::InvalidInput
    )
}

/// Whether nothing exists at the path: it is missing, or its name is too long for the file system.
/// A compiler may get different errors for these.
#[must_use]
pub fn is_not_found(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};

    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// What the user can do about a file that could not be read or written.
#[must_use]
pub fn io_hint(error: &io::Error) -> &'static str {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room on that disk, or choose another directory (--cache-dir, --out); what is \
             compiled already is kept"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check its permissions, or choose a path that you may use"
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "a file, or a broken link, is where a directory should be: name another path"
        }
        _ => "check the path",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_is_the_users_fault_and_a_full_disk_is_not() {
        let path = Path::new("/p");
        let error = |kind: io::ErrorKind| FileError::io("read", path)(kind.into());
        assert!(error(io::ErrorKind::NotFound).is_usage());
        assert!(error(io::ErrorKind::IsADirectory).is_usage());
        let full = error(io::ErrorKind::StorageFull);
        assert!(!full.is_usage() && full.hint().starts_with("make room"));
        let denied = error(io::ErrorKind::PermissionDenied).hint();
        assert!(denied.starts_with("check its permissions"), "no other directory helps: {denied}");
        assert_eq!(full.to_string(), "failed to read `/p`");
        assert!(!FileError::scratch(path)(io::ErrorKind::NotFound.into()).is_usage());
    }
}
