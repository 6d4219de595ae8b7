//! The results of a run's file accesses, in a form that can be stored and checked again.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use serde::{Deserialize, Serialize};

use super::path_state::PathState;
use super::{FileSystemCache, path_text};

/// Stored results of file accesses; many runs may depend on the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPathStates {
    /// The digest under which the text is stored.
    pub name: Digest,
    /// The text.
    pub text: Vec<u8>,
}

/// What the paths were that a run accessed: sorted, each once.
///
/// Relative paths lie below a directory that the caller knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStates {
    #[serde(with = "path_text::pairs")]
    states: Vec<(PathBuf, PathState)>,
    /// Groups of paths, as indices into the list, that are one file or one directory under several
    /// names. Compilers read such a file once if its text says so, and search such a directory
    /// once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    same: Vec<Vec<usize>>,
}

impl PathStates {
    /// Sorts the answers, and finds out which paths are one file.
    #[must_use]
    pub fn new(states: BTreeSet<(PathBuf, PathState)>, file_system: &FileSystemCache<'_>) -> Self {
        let states: Vec<_> = states.into_iter().collect();
        let same = same(&states, |path| file_system.file_id(path));
        Self { states, same }
    }

    /// The same for relative paths; `place` returns device and inode of each.
    #[must_use]
    pub fn of_relative(
        states: BTreeSet<(PathBuf, PathState)>,
        file_id: impl Fn(&Path) -> Option<(u64, u64)>,
    ) -> Self {
        let states: Vec<_> = states.into_iter().collect();
        let same = same(&states, file_id);
        Self { states, same }
    }

    /// For paths of which no two are one file.
    #[must_use]
    pub fn of_separate(states: BTreeSet<(PathBuf, PathState)>) -> Self {
        Self { states: states.into_iter().collect(), same: Vec::new() }
    }

    /// Whether some of the paths are one file or directory.
    #[must_use]
    pub fn have_same(&self) -> bool {
        !self.same.is_empty()
    }

    /// Whether there are no answers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Whether the paths are relative.
    #[must_use]
    pub fn are_relative(&self) -> bool {
        self.states.first().is_some_and(|(path, _)| path.is_relative())
    }

    /// Each path with its answer.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &PathState)> {
        self.states.iter().map(|(path, state)| (path.as_path(), state))
    }

    /// Whether all answers would be the same now.
    #[must_use]
    pub fn hold(&self, file_system: &FileSystemCache<'_>) -> bool {
        self.first_change(file_system).is_none()
    }

    /// The first path whose answer would be different now, with the old answer.
    #[must_use]
    pub fn first_change(&self, file_system: &FileSystemCache<'_>) -> Option<(&Path, &PathState)> {
        self.first_change_by(
            |path, state| file_system.holds(path, state),
            |path| file_system.file_id(path),
        )
    }

    /// The same with functions of the caller: whether an answer would be the same now, and device
    /// and inode of a path.
    #[must_use]
    pub fn first_change_by(
        &self,
        holds: impl Fn(&Path, &PathState) -> bool,
        file_id: impl Fn(&Path) -> Option<(u64, u64)>,
    ) -> Option<(&Path, &PathState)> {
        if let Some(changed) = self.iter().find(|(path, state)| !holds(path, state)) {
            return Some(changed);
        }
        let now = same(&self.states, file_id);
        let other = self.same.iter().find(|group| !now.contains(group));
        let other = other.or_else(|| now.iter().find(|group| !self.same.contains(group)))?;
        let (path, state) = &self.states[other[0]];
        Some((path, state))
    }

    /// The text to store, and its name. Equal answers have equal names.
    #[must_use]
    pub fn to_kept(&self) -> StoredPathStates {
        let text = serde_json::to_vec(self).expect("plain data");
        StoredPathStates { name: Self::name(&text), text }
    }

    /// The answers from a text that was stored under a name; `None` if it is damaged.
    #[must_use]
    pub fn from_text(name: Digest, text: &[u8]) -> Option<Self> {
        let known: Self =
            (Self::name(text) == name).then(|| serde_json::from_slice(text).ok())??;
        let places = || known.same.iter().flatten();
        places().all(|place| *place < known.states.len()).then_some(known)
    }

    /// The name of a text.
    #[must_use]
    pub fn name(text: &[u8]) -> Digest {
        Hasher::new("gfxpack answers to a compiler 1").field(text).finish()
    }
}

/// Groups of paths, as indices, that are one file or directory.
fn same(
    states: &[(PathBuf, PathState)],
    file_id: impl Fn(&Path) -> Option<(u64, u64)>,
) -> Vec<Vec<usize>> {
    // Files with different content are not the same file.
    let mut by_digest: HashMap<Option<Digest>, Vec<usize>> = HashMap::new();
    for (at, (_, state)) in states.iter().enumerate() {
        if state.digest().is_some() || *state == PathState::Directory {
            by_digest.entry(state.digest()).or_default().push(at);
        }
    }
    let mut groups: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for at in by_digest.into_values().filter(|places| places.len() > 1).flatten() {
        if let Some(file) = file_id(&states[at].0) {
            groups.entry(file).or_default().push(at);
        }
    }
    let mut groups: Vec<Vec<usize>> =
        groups.into_values().filter(|group| group.len() > 1).collect();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_unstable();
    groups
}

#[cfg(test)]
mod tests;
