//! What is asked, how, and what happens meanwhile.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use gfxpack_model::Target;

/// How a library is asked.
#[derive(Debug, Clone)]
pub struct AskOptions {
    /// The device to claim, with its compute units.
    pub target: Target,
    /// Directories of databases. Each problem is asked with each of them, and
    /// without any.
    pub databases: Vec<PathBuf>,
    /// Which programs the kernels are for.
    pub uses: Uses,
    /// Problems that are worked on at a time.
    pub workers: usize,
    /// How long a problem may take.
    pub time_limit: Duration,
    /// A directory for temporary files that have no place in memory.
    pub scratch: PathBuf,
    /// The executable `gfxpack-miopen-probe`.
    pub probe: PathBuf,
}

impl AskOptions {
    /// How long a problem may take, where nothing else is said.
    pub const TIME_LIMIT: Duration = Duration::from_secs(300);

    /// Asks for all uses, without databases, with one worker.
    #[must_use]
    pub fn new(target: Target, probe: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self {
            target,
            databases: Vec::new(),
            uses: Uses::ALL,
            workers: 1,
            time_limit: Self::TIME_LIMIT,
            scratch: scratch.into(),
            probe: probe.into(),
        }
    }
}

/// Ways in which programs come to a kernel; a set of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uses {
    /// Searching (`miopenFindConvolution…`): the kernels of every applicable
    /// solver.
    pub search: bool,
    /// Finding the problem in a find database: the kernels of the solver that
    /// it records as the fastest.
    pub hit: bool,
    /// Immediate mode, in which kernels have arguments of another form.
    pub immediate: bool,
}

/// A text names no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no list of uses")]
pub struct UsesError(String);

impl UsesError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "write one or more of search, hit and immediate, separated by commas"
    }
}

impl Uses {
    /// All of them.
    pub const ALL: Self = Self { search: true, hit: true, immediate: true };
    /// None of them.
    pub const NONE: Self = Self { search: false, hit: false, immediate: false };

    /// Uses in this set and in the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            search: self.search && other.search,
            hit: self.hit && other.hit,
            immediate: self.immediate && other.immediate,
        }
    }

    /// Uses in this set or in the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            search: self.search || other.search,
            hit: self.hit || other.hit,
            immediate: self.immediate || other.immediate,
        }
    }
}

impl fmt::Display for Uses {
    /// `search,hit,immediate`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.search, "search"), (self.hit, "hit"), (self.immediate, "immediate")];
        let names: Vec<_> = names.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Uses {
    type Err = UsesError;

    fn from_str(text: &str) -> Result<Self, UsesError> {
        let mut uses = Self::NONE;
        for name in text.split(',') {
            match name.trim() {
                "search" => uses.search = true,
                "hit" => uses.hit = true,
                "immediate" => uses.immediate = true,
                _ => return Err(UsesError(text.to_owned())),
            }
        }
        Ok(uses)
    }
}

/// What happens while a library is asked.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum AskEvent<'a> {
    /// The library is loaded, with that directory of databases.
    Loading {
        /// The directory, or none.
        database: Option<&'a Path>,
    },
    /// So much is done, of so much.
    Progress {
        /// Problems that were asked, counted once for each way of asking.
        done: usize,
        /// All of them.
        total: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_named() {
        for text in ["search", "hit", "immediate", "search,immediate", "search,hit,immediate"] {
            assert_eq!(text.parse::<Uses>().unwrap().to_string(), text);
        }
        assert_eq!("immediate, search".parse(), Ok(Uses { hit: false, ..Uses::ALL }));
        assert!("".parse::<Uses>().is_err());
        assert!("search,find".parse::<Uses>().is_err());
    }
}
