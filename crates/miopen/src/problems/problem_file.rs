//! A file with problems, and what was read of it.

use super::error::KeyError;

/// What was read of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProblemFile {
    /// The file as the user named it; `-` for the standard input.
    pub name: String,
    /// Lines of a text, rows of an SQLite database.
    pub lines: u64,
    /// Lines or rows that told of a problem.
    pub told: u64,
    /// Problems that no file before had.
    pub added: u64,
    /// Records of a database that no problem can be told from.
    pub passed_over: u64,
    /// The first of those, and why.
    pub first_passed_over: Option<(u64, KeyError)>,
}
