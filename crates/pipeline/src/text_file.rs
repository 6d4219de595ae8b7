//! Files of text among the inputs.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::error::{self, Result};

/// Opens a file for reading; `-` is standard input.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).map_err(error::io("read", path))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

/// The whole text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(error::io("read", path))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        error::usage(
            format!("{}:{line}: failed to read text: it is not UTF-8", path.display()),
            "save the file as UTF-8",
        )
    })
}
