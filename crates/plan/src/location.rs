//! Positions in the user's input, and errors there.

use std::fmt;
use std::sync::Arc;

use gfxpack_model::{KernelKey, KeyError};

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
    #[must_use]
    pub fn new(file: &str, line: usize) -> Self {
        Self { file: file.into(), line }
    }

    /// The position of a byte offset in the file's text.
    #[must_use]
    pub fn of_offset(file: &str, text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        Self::new(file, 1 + before.iter().filter(|&&byte| byte == b'\n').count())
    }

    /// An error here, with this message.
    #[must_use]
    pub fn fault(&self, message: impl Into<String>, hint: impl Into<String>) -> InputError {
        self.error(InputFault::new(message, hint))
    }

    /// The error of this `problem` here.
    #[must_use]
    pub fn error(&self, problem: InputFault) -> InputError {
        InputError { location: self.clone(), problem }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// An error in a manifest or key list, with its file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
pub struct InputError {
    /// The position.
    pub location: Location,
    /// The problem.
    pub problem: InputFault,
}

/// A problem in a manifest or key list, with a hint for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InputFault {
    message: String,
    hint: String,
    /// Whether the problem is that the right source was not found.
    pub no_source: bool,
}

impl InputFault {
    /// A problem with this message.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into(), no_source: false }
    }

    /// The problem that the right source was not found.
    pub fn no_source(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { no_source: true, ..Self::new(message, hint) }
    }

    /// The problem that a key is repeated.
    #[must_use]
    pub fn duplicate(key: &KernelKey, first: &Location) -> Self {
        Self::new(
            format!("failed to accept key `{key}`: it is already at {first}"),
            "take one of the two out; `gfxpack harvest A B -o keys.jsonl` makes one list of \
             several, with each key once",
        )
    }
}

impl From<KeyError> for InputFault {
    fn from(error: KeyError) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

impl InputError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        self.problem.hint.clone()
    }
}

impl From<InputError> for gfxpack_model::Error {
    fn from(error: InputError) -> Self {
        let (kind, hint) = (gfxpack_model::ErrorKind::Usage, error.hint());
        Self::new(kind, &error, hint).caused_by(error)
    }
}
