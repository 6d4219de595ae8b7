//! The result of checking several files. All are checked, even if the first one
//! has findings.

use std::collections::BTreeSet;
use std::path::Path;

use crate::fail::{Error, ErrorKind, Result, in_full};
use crate::output::{Output, counted, joined};

/// How many files with findings the error names; all of them were reported before.
const NAMED: usize = 3;

/// The findings so far, and what to do about them.
pub(crate) struct CheckedFiles<'a> {
    output: &'a Output,
    unsound: Vec<String>,
    hints: BTreeSet<&'static str>,
    /// The last file that could not be read, whose error may become the run's and is not reported
    /// yet.
    unread: Option<Error>,
}

impl<'a> CheckedFiles<'a> {
    pub(crate) fn new(output: &'a Output) -> Self {
        Self { output, unsound: Vec::new(), hints: BTreeSet::new(), unread: None }
    }

    pub(crate) fn unsound(&mut self, path: &Path, hints: impl IntoIterator<Item = &'static str>) {
        self.unsound.push(format!("`{}`", path.display()));
        self.hints.extend(hints);
    }

    pub(crate) fn unread(&mut self, error: impl Into<Error>) {
        if let Some(before) = self.unread.replace(error.into()) {
            self.output.warn(&in_full(&before));
        }
    }

    /// Returns the run's error.
    pub(crate) fn finish(self) -> Result<()> {
        if self.unsound.is_empty() {
            return self.unread.map_or(Ok(()), Err);
        }
        if let Some(error) = &self.unread {
            self.output.warn(&in_full(error));
        }
        let message = match self.unsound.len() {
            1..=NAMED => format!("failed to verify {}", joined(self.unsound)),
            count => format!("{} have findings, see above", counted(count, "file")),
        };
        let hints: Vec<&str> = self.hints.into_iter().collect();
        Err(Error::new(ErrorKind::Unsound, message, hints.join("; ")))
    }
}
