//! A file with problems, and statistics of reading it.

use super::error::KeyError;

/// Statistics of reading one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProblemFile {
    /// The file as the user named it; `-` for the standard input.
    pub name: String,
    /// Lines of a text, rows of an SQLite database.
    pub lines: u64,
    /// Lines or rows with a problem.
    pub used: u64,
    /// Problems that no earlier file contained.
    pub added: u64,
    /// Records of a database without a problem.
    pub passed_over: u64,
    /// The first skipped record, and why.
    pub first_passed_over: Option<(u64, KeyError)>,
}
