//! The results of a run's file accesses, in a form that can be stored and checked again.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::{Looks, path_text};

/// Stored results of file accesses; many runs may depend on the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswers {
    /// The digest under which the text is stored.
    pub name: Digest,
    /// The text.
    pub text: Vec<u8>,
}

/// The results of a run's accesses to several paths: sorted, each once.
///
/// Relative paths lie below a directory that the caller knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    #[serde(with = "path_text::pairs")]
    answers: Vec<(PathBuf, Answer)>,
    /// Groups of paths, as indices into the list, that are one file or one directory under several
    /// names. Compilers read such a file once if its text says so, and search such a directory
    /// once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    same: Vec<Vec<usize>>,
}

impl Answers {
    /// Sorts the answers, and finds out which paths are one file.
    #[must_use]
    pub fn new(answers: BTreeSet<(PathBuf, Answer)>, looks: &Looks<'_>) -> Self {
        let answers: Vec<_> = answers.into_iter().collect();
        let same = same(&answers, |path| looks.place(path));
        Self { answers, same }
    }

    /// The same for relative paths; `place` returns device and inode of each.
    #[must_use]
    pub fn of_relative(
        answers: BTreeSet<(PathBuf, Answer)>,
        place: impl Fn(&Path) -> Option<(u64, u64)>,
    ) -> Self {
        let answers: Vec<_> = answers.into_iter().collect();
        let same = same(&answers, place);
        Self { answers, same }
    }

    /// For paths of which no two are one file.
    #[must_use]
    pub fn of_separate(answers: BTreeSet<(PathBuf, Answer)>) -> Self {
        Self { answers: answers.into_iter().collect(), same: Vec::new() }
    }

    /// Whether some of the paths are one file or directory.
    #[must_use]
    pub fn have_same(&self) -> bool {
        !self.same.is_empty()
    }

    /// Whether there are no answers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Whether the paths are relative.
    #[must_use]
    pub fn are_relative(&self) -> bool {
        self.answers.first().is_some_and(|(path, _)| path.is_relative())
    }

    /// Each path with its answer.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Answer)> {
        self.answers.iter().map(|(path, answer)| (path.as_path(), answer))
    }

    /// Whether all answers would be the same now.
    #[must_use]
    pub fn hold(&self, looks: &Looks<'_>) -> bool {
        self.first_change(looks).is_none()
    }

    /// The first path whose answer would be different now, with the old answer.
    #[must_use]
    pub fn first_change(&self, looks: &Looks<'_>) -> Option<(&Path, &Answer)> {
        self.first_change_by(|path, answer| looks.holds(path, answer), |path| looks.place(path))
    }

    /// The same with functions of the caller: whether an answer would be the same now, and device
    /// and inode of a path.
    #[must_use]
    pub fn first_change_by(
        &self,
        holds: impl Fn(&Path, &Answer) -> bool,
        place: impl Fn(&Path) -> Option<(u64, u64)>,
    ) -> Option<(&Path, &Answer)> {
        if let Some(changed) = self.iter().find(|(path, answer)| !holds(path, answer)) {
            return Some(changed);
        }
        let now = same(&self.answers, place);
        let other = self.same.iter().find(|group| !now.contains(group));
        let other = other.or_else(|| now.iter().find(|group| !self.same.contains(group)))?;
        let (path, answer) = &self.answers[other[0]];
        Some((path, answer))
    }

    /// The text to store, and its name. Equal answers have equal names.
    #[must_use]
    pub fn to_kept(&self) -> KeptAnswers {
        let text = serde_json::to_vec(self).expect("plain data");
        KeptAnswers { name: Self::name(&text), text }
    }

    /// The answers from a text that was stored under a name; `None` if it is damaged.
    #[must_use]
    pub fn from_text(name: Digest, text: &[u8]) -> Option<Self> {
        let known: Self =
            (Self::name(text) == name).then(|| serde_json::from_slice(text).ok())??;
        let places = || known.same.iter().flatten();
        places().all(|place| *place < known.answers.len()).then_some(known)
    }

    /// The name of a text.
    #[must_use]
    pub fn name(text: &[u8]) -> Digest {
        Hasher::new("gfxpack answers to a compiler 1").field(text).finish()
    }
}

/// Groups of paths, as indices, that are one file or directory.
fn same(
    answers: &[(PathBuf, Answer)],
    place: impl Fn(&Path) -> Option<(u64, u64)>,
) -> Vec<Vec<usize>> {
    // Files with different content are not the same file.
    let mut by_digest: HashMap<Option<Digest>, Vec<usize>> = HashMap::new();
    for (at, (_, answer)) in answers.iter().enumerate() {
        if answer.digest().is_some() || *answer == Answer::Directory {
            by_digest.entry(answer.digest()).or_default().push(at);
        }
    }
    let mut groups: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for at in by_digest.into_values().filter(|places| places.len() > 1).flatten() {
        if let Some(file) = place(&answers[at].0) {
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
