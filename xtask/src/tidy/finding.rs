//! A finding: what to correct, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something to correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) path: PathBuf,
    /// Counted from 1; 0 for the whole file.
    pub(super) line: usize,
    pub(super) what: String,
}

impl Finding {
    pub(super) fn new(path: &Path, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.what),
        }
    }
}
