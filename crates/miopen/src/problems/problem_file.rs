//! A file with problems, and statistics of reading it.

use gfxpack_harvest::Skips;
use gfxpack_harvest::log::Seen;
use gfxpack_model::{Error, Result};

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
    pub first_passed_over: Option<(u64, String)>,
    /// Commands of MIOpenDriver in comments.
    pub comments: u64,
    /// Lines that should be problems or records but can't be read.
    pub skipped: Skips,
    /// What the file has.
    pub seen: Seen,
}

impl ProblemFile {
    /// Fails for the first line that can't be read, or if there is nothing to read.
    pub(super) fn check(&self) -> Result {
        let name = &self.name;
        if let Some(first) = self.skipped.iter().next() {
            let more = match self.skipped.lines() - 1 {
                0 => String::new(),
                1 => " and 1 further line".to_owned(),
                lines => format!(" and {lines} further lines"),
            };
            let message = format!("failed to read `{name}:{}`{more}: {}", first.first, first.why);
            return Err(Error::usage(message, first.hint));
        }
        if self.used > 0 {
            return Ok(());
        }
        let hint = match (&self.first_passed_over, self.seen) {
            (Some((line, why)), _) => {
                format!("the first record that was skipped is in line {line}: {why}")
            }
            (None, Seen::Nothing) => {
                "the file is empty, or has nothing but NUL bytes: get it again, or look where its \
                 program writes"
                    .to_owned()
            }
            (None, Seen::Messages) => {
                "MIOpen writes problems into its log where MIOPEN_ENABLE_LOGGING_CMD is 1"
                    .to_owned()
            }
            (None, Seen::Text) => {
                "no line is of MIOpen: give the log of a run with MIOPEN_ENABLE_LOGGING_CMD=1, a \
                 list of lines as `MIOpenDriver conv -n 1 -c 64 …`, or a database"
                    .to_owned()
            }
        };
        Err(Error::usage(format!("failed to find a problem in `{name}`"), hint))
    }
}
