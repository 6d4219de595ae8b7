//! The dependencies of a job's outcome besides its digest.

use std::path::PathBuf;
use std::sync::Arc;

use gfxpack_model::Digest;
use gfxpack_process::watch::{Answer, Answers, KeptAnswers};

/// The dependencies of a job's outcome besides its digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// The name of the commands that its driver would run, if they are known.
    pub commands: Option<Digest>,
    /// The results of its compiler's file accesses.
    pub system: Answers,
    /// What the compiler found, and did not find, among the sources.
    pub sources: Answers,
    /// The file accesses of shared preparations: precompiled headers.
    pub shared: Vec<Arc<KeptAnswers>>,
    /// Names of the directories that it read because the user had admitted them.
    pub admitted: Vec<Digest>,
}

impl Dependencies {
    /// A dependency that never holds, since not all are known: the object is for one build only.
    /// `merge` still checks that the sources are these.
    pub(crate) fn for_one_build(sources: Answers) -> Self {
        // The root directory always exists.
        let never = [(PathBuf::from("/"), Answer::Absent)].into();
        Self { system: Answers::of_separate(never), sources, ..Self::default() }
    }
}
