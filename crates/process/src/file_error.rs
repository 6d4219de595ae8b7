//! Failed file operations, with hints for the user.

use std::io;
use std::path::Path;

use gfxpack_model::Error;

use crate::scratch_dir::ScratchDir;

/// The error of writing a temporary file.
pub fn scratch_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| {
        let hint = "set TMPDIR to a directory with room for the largest kdb, unpacked";
        Error::internal(format!("failed to write `{}`", path.display()), hint).caused_by(source)
    }
}

fn temporary_dir_error(source: io::Error) -> Error {
    let dir = tempfile::env::temp_dir();
    let hint = match source.kind() {
        io::ErrorKind::StorageFull => {
            "make room on that disk, or set TMPDIR to a directory that may be written"
        }
        _ => "set TMPDIR to a directory that may be written",
    };
    let message = format!("failed to create a temporary directory in `{}`", dir.display());
    Error::internal(message, hint).caused_by(source)
}

/// Creates a temporary directory.
///
/// # Errors
/// If it can't be created.
pub fn temporary_dir() -> Result<ScratchDir, Error> {
    ScratchDir::below(&tempfile::env::temp_dir()).map_err(temporary_dir_error)
}

/// Whether nothing exists at the path: it is missing, or its name is too long for the file system.
/// A compiler may get different errors for these.
pub fn is_not_found(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};

    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}
