//! A file with problems, and statistics of reading it.

use gfxpack_harvest::Skips;
use gfxpack_harvest::log::Seen;

use super::error::{KeyError, ProblemsError};

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
    /// Commands of MIOpenDriver in comments.
    pub comments: u64,
    /// Lines that should be problems or records but can't be read.
    pub skipped: Skips,
    /// What the file has.
    pub seen: Seen,
}

impl ProblemFile {
    /// Fails for the first line that can't be read, or if there is nothing to read.
    pub(super) fn check(&self) -> Result<(), ProblemsError> {
        let name = self.name.clone();
        match self.skipped.iter().next() {
            Some(first) => {
                let (first, more) = (first.clone(), self.skipped.lines() - 1);
                Err(ProblemsError::Lines { name, first, more })
            }
            None if self.used > 0 => Ok(()),
            None => Err(ProblemsError::Nothing {
                name,
                passed_over: self.first_passed_over.clone(),
                seen: self.seen,
            }),
        }
    }
}
