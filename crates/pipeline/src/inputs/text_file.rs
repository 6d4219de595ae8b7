//! Files of text among the inputs.

use std::path::Path;

use crate::error::{self, Error, Result};

pub(super) fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    error::usage(format!("failed to read `{}`: {error}", path.display()), "check the path")
}

pub(super) fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
    as_text(path, bytes, 0)
}

/// The bytes as text. `lines` is the number of lines before them in the file.
pub(super) fn as_text(path: &Path, bytes: Vec<u8>, lines: usize) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = 1 + lines + before.iter().filter(|&&byte| byte == b'\n').count();
        error::usage(
            format!("{}:{line}: failed to read text: it is not UTF-8", path.display()),
            "save the file as UTF-8",
        )
    })
}
