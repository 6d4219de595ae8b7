//! Reads lists of plans, and logs, line by line.

use std::io::{self, BufRead};

use gfxpack_harvest::Skipped;
use gfxpack_harvest::log::Lines;

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
    /// No line is a plan, or all have to be.
    #[error("failed to read `{name}:{}`: {}", .first.first, .first.why)]
    Line {
        /// The file.
        name: String,
        /// The first lines that are none.
        first: Skipped,
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
            Self::Line { first, .. } => first.hint,
            Self::Nothing { .. } => {
                "every line is a plan, `c2c sp ip 1024x1024 batch 8`, a comment (#) or empty"
            }
            Self::TooMany { .. } => "check the file, or ask for the plans in several runs",
        }
    }
}

/// Calls a function with each line that is not empty and its number, from 1.
pub(crate) fn for_each_line(
    name: &str,
    mut from: impl BufRead,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), ListError>,
) -> Result<(), ListError> {
    let mut ended = Ok(());
    let mut line = |number, line: &[u8], _| {
        if ended.is_ok() {
            ended = each(number, line);
        }
    };
    let mut lines = Lines::all();
    loop {
        let piece = match from.fill_buf() {
            Ok([]) => break,
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(ListError::Io { name: name.to_owned(), source }),
        };
        lines.push(piece, &mut line);
        let read = piece.len();
        from.consume(read);
    }
    lines.finish(&mut line);
    ended
}

impl From<ListError> for gfxpack_model::Error {
    fn from(error: ListError) -> Self {
        let (kind, hint) = (gfxpack_model::ErrorKind::Usage, error.hint());
        Self::new(kind, &error, hint).caused_by(error)
    }
}
