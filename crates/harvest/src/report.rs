//! Reports on the files that were read.

use crate::log::LogError;

use crate::error::HarvestError;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContentKind {
    /// Text: MIOpen's log, among other output.
    Log,
    /// An earlier harvest, or a list of keys.
    Keys,
    /// An installed kdb.
    Kdb,
    /// A user's kdb.
    Ukdb,
    /// A database of another kind, found in a directory.
    Other,
}

impl ContentKind {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Keys => "keys",
            Self::Kdb => "kdb",
            Self::Ukdb => "ukdb",
            Self::Other => "other",
        }
    }
}

/// Why a line with a key or command was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Skip {
    /// A log's line.
    #[error(transparent)]
    Log(LogError),
    /// A line of a harvest.
    #[error("failed to read the line: it is no JSON object with kernel_name and kernel_args")]
    Record,
    /// A key that no kdb can have.
    #[error("failed to accept the key: it holds a NUL byte")]
    Nul,
}

impl Skip {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Log(error) => error.hint(),
            Self::Record => "docs/harvest.md describes the lines",
            Self::Nul => "see whether the file is what its program wrote",
        }
    }
}

/// Lines that were skipped for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// The reason.
    pub why: Skip,
    /// How many lines.
    pub lines: u64,
    /// Number of the first of these lines, from 1.
    pub first: u64,
}

/// Report on one file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileReport {
    /// The file as given by the user; `-` for the standard input.
    pub name: String,
    /// The kind of file.
    pub kind: ContentKind,
    /// Number of lines of a text, or of rows of a kdb.
    pub lines: u64,
    /// Number of those with a key or command that was read.
    pub used: u64,
    /// Lines with a key or command that was skipped.
    pub skipped: Vec<Skipped>,
    /// The error that ended reading.
    pub error: Option<HarvestError>,
}

impl FileReport {
    pub(crate) fn new(name: String) -> Self {
        let kind = ContentKind::Log;
        Self { name, kind, lines: 0, used: 0, skipped: Vec::new(), error: None }
    }

    pub(crate) fn skip(&mut self, line: u64, why: Skip) {
        match self.skipped.iter_mut().find(|skipped| skipped.why == why) {
            Some(skipped) => skipped.lines += 1,
            None => self.skipped.push(Skipped { why, lines: 1, first: line }),
        }
    }
}
