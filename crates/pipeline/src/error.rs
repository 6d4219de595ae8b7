//! The errors that end a run, and what the user can do about them.

use std::fmt::Display;
use std::io;
use std::path::Path;

pub use gfxpack_model::{Error, ErrorKind, Result, in_full};

use crate::text::counted;

/// An error in the command line or an input.
pub fn usage(message: impl ToString, hint: impl ToString) -> Error {
    Error::new(ErrorKind::Usage, message, hint)
}

/// The error for a file that did not pass verification.
pub fn unsound(what: impl Display) -> Error {
    let hint = "build the file again, or replace it";
    Error::new(ErrorKind::Unsound, format!("failed to verify {what}"), hint)
}

/// Returns an error if a library could not be asked for all problems or plans.
/// `total` is their number, as text.
pub(crate) fn check_all_asked(failed: usize, total: &str, hint: &str) -> Result {
    if failed == 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Incomplete, format!("failed to ask for {failed} of {total}"), hint))
}

/// The error for a file that could not be read or written; `action` is a verb.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    Error::io(action, path)
}

/// The error for several things that are wrong in the input.
pub(crate) fn inputs(errors: Vec<Error>) -> Error {
    let message = format!("failed to accept the input: {}", counted(errors.len(), "error"));
    Error::of_parts(message, errors)
}

/// The error for a value that is no JSON.
pub fn json(error: serde_json::Error) -> Error {
    Error::without_hint(ErrorKind::Internal, error)
}
