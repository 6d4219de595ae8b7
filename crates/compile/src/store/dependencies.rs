//! The dependencies of a job's outcome besides its digest.

use std::path::PathBuf;
use std::sync::Arc;

use gfxpack_model::Digest;
use gfxpack_process::watch::{PathState, PathStates, StoredPathStates};

/// The dependencies of a job's outcome besides its digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// The name of the commands that its driver would run, if they are known.
    pub commands: Option<Digest>,
    /// The results of its compiler's file accesses.
    pub system: PathStates,
    /// What the compiler found, and did not find, among the sources.
    pub sources: PathStates,
    /// The file accesses of shared preparations: precompiled headers.
    pub shared: Vec<Arc<StoredPathStates>>,
    /// Names of the directories that it read because the user had admitted them.
    pub admitted: Vec<Digest>,
}

impl Dependencies {
    /// A dependency that never holds, since not all are known: the object is for one build only.
    /// `merge` still checks that the sources are these.
    pub(crate) fn for_one_build(sources: PathStates) -> Self {
        // The root directory always exists.
        let never = [(PathBuf::from("/"), PathState::Absent)].into();
        Self { system: PathStates::of_separate(never), sources, ..Self::default() }
    }
}
