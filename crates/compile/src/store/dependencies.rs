//! What a job's outcome depends on besides its digest.

use std::path::PathBuf;
use std::sync::Arc;

use gfxpack_model::Digest;
use gfxpack_process::watch::{Answer, Answers, KeptAnswers};

/// What a job's outcome depends on besides its digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// What its driver would run, if that is known.
    pub commands: Option<Digest>,
    /// The results of its compiler's file accesses.
    pub system: Answers,
    /// What it found, and did not find, where its sources lie.
    pub sources: Answers,
    /// The same of what was made for it before: precompiled headers.
    pub shared: Vec<Arc<KeptAnswers>>,
    /// Names of the directories that it may read since the user admitted them,
    /// where it did.
    pub admitted: Vec<Digest>,
}

impl Dependencies {
    /// Something that is never so, since not all is known: what was made is for
    /// one build alone. `merge` still checks that the sources are these.
    pub(crate) fn for_one_build(sources: Answers) -> Self {
        // The root is always there.
        let never = [(PathBuf::from("/"), Answer::Absent)].into();
        Self { system: Answers::of_separate(never), sources, ..Self::default() }
    }
}
