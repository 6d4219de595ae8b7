//! Positions in the user's input, and errors there.

use std::fmt;
use std::sync::Arc;

use gfxpack_model::{Error, KernelKey};

/// A file and a line, as in every message about input.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The file as the user gave it.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
}

impl Location {
    /// A place in a file.
    pub fn new(file: &str, line: usize) -> Self {
        Self { file: file.into(), line }
    }

    /// The position of a byte offset in the file's text.
    pub fn of_offset(file: &str, text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        Self::new(file, 1 + before.iter().filter(|&&byte| byte == b'\n').count())
    }

    /// An error here in the user's input, with this message.
    pub fn fault(&self, message: impl fmt::Display, hint: impl ToString) -> Error {
        Error::usage(format!("{self}: {message}"), hint)
    }

    /// The error of this `problem` here.
    pub fn error(&self, problem: &Error) -> Error {
        self.fault(problem, problem.hint().unwrap_or_default()).of_kind(problem.kind())
    }

    /// The error of a key that is repeated here.
    pub fn duplicate(&self, key: &KernelKey, first: &Self) -> Error {
        self.fault(
            format!("failed to accept key `{key}`: it is already at {first}"),
            "take one of the two out; `gfxpack harvest A B -o keys.jsonl` makes one list of \
             several, with each key once",
        )
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
