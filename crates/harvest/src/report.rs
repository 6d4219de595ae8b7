//! What was read of each file.

use crate::log::LogError;

use crate::error::HarvestError;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Text: MIOpen's log, with whatever else.
    Log,
    /// An earlier harvest, or a list of keys.
    Keys,
    /// An installed kdb.
    Kdb,
    /// A user's kdb.
    Ukdb,
    /// A database of another kind, which was in a directory.
    Other,
}

impl Kind {
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

/// Why a line was passed over that should tell of a key or command.
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

/// Lines that were passed over for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// The reason.
    pub why: Skip,
    /// How many lines.
    pub lines: u64,
    /// The first of them, counted from 1.
    pub first: u64,
}

/// What was read of one file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileReport {
    /// The file as the user named it; `-` for the standard input.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Lines of a text, rows of a kdb.
    pub lines: u64,
    /// Those of them that told of a key, or a command.
    pub told: u64,
    /// Those that should have.
    pub skipped: Vec<Skipped>,
    /// Why nothing more of it was read.
    pub error: Option<HarvestError>,
}

impl FileReport {
    pub(crate) fn new(name: String) -> Self {
        let kind = Kind::Log;
        Self { name, kind, lines: 0, told: 0, skipped: Vec::new(), error: None }
    }

    pub(crate) fn skip(&mut self, line: u64, why: Skip) {
        match self.skipped.iter_mut().find(|skipped| skipped.why == why) {
            Some(skipped) => skipped.lines += 1,
            None => self.skipped.push(Skipped { why, lines: 1, first: line }),
        }
    }
}
