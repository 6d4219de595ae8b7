//! The results of a run's file accesses, in a form that can be stored and checked again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::path_state::PathState;
use super::{FileSystemCache, path_text};

/// What the paths were that a run accessed: sorted, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStates {
    #[serde(with = "path_text::pairs")]
    states: Vec<(PathBuf, PathState)>,
}

impl PathStates {
    /// Sorts the answers.
    #[must_use]
    pub fn new(states: BTreeSet<(PathBuf, PathState)>) -> Self {
        Self { states: states.into_iter().collect() }
    }

    /// Whether all answers would be the same now.
    #[must_use]
    pub fn hold(&self, file_system: &FileSystemCache<'_>) -> bool {
        self.first_change(file_system).is_none()
    }

    /// The first path whose answer would be different now.
    #[must_use]
    pub fn first_change(&self, file_system: &FileSystemCache<'_>) -> Option<&Path> {
        let mut states = self.states.iter();
        let changed = states.find(|(path, state)| !file_system.holds(path, state));
        changed.map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests;
