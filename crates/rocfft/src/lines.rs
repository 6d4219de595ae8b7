//! Reads lists of plans, and logs, line by line.

use std::io::{self, BufRead, Read as _};

use crate::plan::PlanError;

/// The longest line, in bytes.
const MAX_LINE: u64 = 1 << 16;
/// The most distinct plans or kernels in one file.
pub(crate) const MAX_ENTRIES: usize = 1 << 20;

/// Why a list of plans, or a log, can't be read. `name` is the file, as given by the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The file can't be read.
    #[error("failed to read `{name}`")]
    Io {
        /// The file.
        name: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// A line is neither a plan nor a comment nor empty.
    #[error("failed to read `{name}:{line}`")]
    Line {
        /// The file.
        name: String,
        /// From 1.
        line: u64,
        /// The problem.
        source: PlanError,
    },
    /// A line is too long, or no text.
    #[error("failed to read `{name}:{line}`: it is no text, or has more than {MAX_LINE} bytes")]
    NoText {
        /// The file.
        name: String,
        /// From 1.
        line: u64,
    },
    /// The file contains no plan.
    #[error("failed to find a plan in `{name}`")]
    Nothing {
        /// The file.
        name: String,
    },
    /// More plans or kernels than any program has.
    #[error("failed to take all of `{name}`: it has more than {MAX_ENTRIES} plans or kernels")]
    TooMany {
        /// The file.
        name: String,
    },
}

impl ListError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path and its permissions",
            Self::Line { source, .. } => source.hint(),
            Self::NoText { .. } | Self::Nothing { .. } => {
                "every line is a plan, `c2c sp ip 1024x1024 batch 8`, a comment (#) or empty"
            }
            Self::TooMany { .. } => "check the file, or ask for the plans in several runs",
        }
    }
}

/// Calls a function with each line and its number, from 1, without the line break; with `None` for
/// a line that is too long or no text.
pub(crate) fn for_each_line(
    name: &str,
    mut from: impl BufRead,
    mut each: impl FnMut(u64, Option<&str>) -> Result<(), ListError>,
) -> Result<(), ListError> {
    let (mut piece, mut is_start, mut number) = (Vec::new(), true, 0);
    loop {
        piece.clear();
        let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut piece);
        let read = read.map_err(|source| ListError::Io { name: name.to_owned(), source })?;
        if read == 0 {
            return Ok(());
        }
        let has_end = piece.ends_with(b"\n");
        if std::mem::replace(&mut is_start, has_end) {
            number += 1;
            let is_whole = has_end || (read as u64) < MAX_LINE;
            let line = str::from_utf8(&piece).ok().filter(|_| is_whole);
            each(number, line.map(|line| line.trim_end_matches(['\r', '\n'])))?;
        }
    }
}
