//! The result of checking several files. All are checked, even if the first one
//! has findings.

use std::collections::BTreeSet;
use std::path::Path;

use crate::fail::{Error, ErrorKind, Result};
use crate::output::{counted, joined};

/// How many files with findings the error names; all of them were reported before.
const NAMED: usize = 3;

/// The findings so far, and the remedies for them.
#[derive(Debug)]
pub(crate) struct CheckedFiles<R> {
    /// Files with findings.
    unsound: Vec<String>,
    remedies: BTreeSet<R>,
    /// The last file that could not be read, whose error is not reported yet.
    unread: Option<Error>,
}

impl<R: Ord> Default for CheckedFiles<R> {
    fn default() -> Self {
        Self { unsound: Vec::new(), remedies: BTreeSet::new(), unread: None }
    }
}

impl<R: Ord> CheckedFiles<R> {
    /// Notes that a file has findings.
    pub(crate) fn unsound(&mut self, path: &Path, remedies: impl IntoIterator<Item = R>) {
        self.unsound.push(format!("`{}`", path.display()));
        self.remedies.extend(remedies);
    }

    /// Notes that a file could not be read. Returns the error of the one before
    /// it, which the caller reports now; the last one may become the run's error.
    pub(crate) fn unread(&mut self, error: impl Into<Error>) -> Option<Error> {
        self.unread.replace(error.into())
    }

    /// Returns the run's error. If files have findings, the last error about an
    /// unreadable file is passed to `warn`. `hint` gives the text of a remedy.
    ///
    /// # Errors
    /// If a file has findings or could not be read.
    pub(crate) fn finish(self, hint: impl Fn(&R) -> &str, warn: impl FnOnce(&Error)) -> Result<()> {
        if self.unsound.is_empty() {
            return self.unread.map_or(Ok(()), Err);
        }
        if let Some(error) = &self.unread {
            warn(error);
        }
        let hints: Vec<&str> = self.remedies.iter().map(hint).collect();
        let message = match self.unsound.len() {
            1..=NAMED => format!("failed to verify {}", joined(self.unsound)),
            count => format!("{} have findings, see above", counted(count, "file")),
        };
        Err(Error::new(ErrorKind::Unsound, message, hints.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fail::usage;

    #[test]
    fn findings_come_before_files_that_cannot_be_read() {
        let none: CheckedFiles<&str> = CheckedFiles::default();
        assert!(none.finish(|hint| hint, |_| ()).is_ok());

        let mut checked: CheckedFiles<&str> = CheckedFiles::default();
        assert!(checked.unread(usage("first", "")).is_none());
        let before = checked.unread(usage("second", "")).map(|error| error.to_string());
        assert_eq!(before.as_deref(), Some("first"));
        let mut warned = Vec::new();
        checked.unsound(Path::new("a.kdb"), ["build it again"]);
        checked.unsound(Path::new("b.kdb"), ["build it again", "a device is wrong"]);
        let result = checked.finish(|hint| hint, |error| warned.push(error.to_string()));
        assert_eq!(warned, ["second"]);
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), "failed to verify `a.kdb`, `b.kdb`");
        assert_eq!(error.hint(), Some("a device is wrong; build it again"));

        let mut unread: CheckedFiles<&str> = CheckedFiles::default();
        unread.unread(usage("only", ""));
        let result = unread.finish(|hint| hint, |_| panic!("it is the error"));
        assert_eq!(result.unwrap_err().to_string(), "only");
    }
}
