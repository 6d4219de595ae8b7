//! The results of a run's accesses to paths, in a form that can be stored and checked again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use serde::{Deserialize, Serialize};

use super::FileSystemCache;

/// What exists at a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathState {
    /// Nothing exists.
    Absent,
    /// A directory, whatever it contains.
    Directory,
    /// A directory, by a path with links or `..`; with its path without these.
    LinkedDirectory(PathBuf),
    /// A directory that contains these names.
    Listing(Digest),
    /// A symbolic link with this target, whether or not that exists.
    Link(PathBuf),
    /// Not a symbolic link.
    NoLink,
    /// A regular file.
    File {
        /// SHA-256 of its content.
        digest: Digest,
        /// Its path without links, if that is different.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        real: Option<PathBuf>,
    },
    /// A regular file, and whether any user may execute it.
    Executable(bool),
    /// Another kind of file, or one that can't be accessed.
    Other,
}

/// A question about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathQuery {
    /// What exists there, links followed.
    Content,
    /// The same, with the names in it if it is a directory.
    Listing,
    /// The target of the link, if it is one.
    Link,
    /// Whether any user may execute it, if it is a file.
    Executable,
}

impl PathState {
    /// The question that has this answer.
    pub(super) fn query(&self) -> PathQuery {
        match self {
            Self::Listing(_) => PathQuery::Listing,
            Self::Link(_) | Self::NoLink => PathQuery::Link,
            Self::Executable(_) => PathQuery::Executable,
            _ => PathQuery::Content,
        }
    }
}

/// What the paths were that a run accessed: sorted, each once. They can't be stored if one is no
/// UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStates {
    states: BTreeSet<(PathBuf, PathState)>,
}

impl PathStates {
    /// The answers of a run.
    pub fn new(states: BTreeSet<(PathBuf, PathState)>) -> Self {
        Self { states }
    }

    /// Whether all answers would be the same now.
    pub fn hold(&self, file_system: &FileSystemCache<'_>) -> bool {
        self.first_change(file_system).is_none()
    }

    /// The first path whose answer would be different now.
    pub fn first_change(&self, file_system: &FileSystemCache<'_>) -> Option<&Path> {
        let now = |path: &Path, state: &PathState| file_system.state(path, state.query());
        let mut states = self.states.iter();
        let changed = states.find(|(path, state)| now(path, state).as_ref() != Some(state));
        changed.map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests;
