//! Runs jobs on this machine: sources are staged by whoever needs them first.

use std::collections::HashMap;
use std::sync::OnceLock;

use gfxpack_model::{JobId, SourceId};
use gfxpack_process::{FileError, WorkDir};

use crate::context::BuildContext;
use crate::error::CompileError;
use crate::job::{self, Outcome};
use crate::stage::Stage;

/// What the workers of this machine share.
pub(crate) struct LocalContext<'a> {
    context: &'a BuildContext<'a>,
    work: &'a WorkDir,
    stages: HashMap<SourceId, OnceLock<Result<Stage, ()>>>,
}

impl<'a> LocalContext<'a> {
    /// Ready to run these jobs of the plan.
    pub(crate) fn new(context: &'a BuildContext<'a>, work: &'a WorkDir, jobs: &[JobId]) -> Self {
        let sources = jobs.iter().map(|job| context.plan[*job].source);
        Self { context, work, stages: sources.map(|source| (source, OnceLock::new())).collect() }
    }

    /// A staged source, made by whoever needs it first.
    fn stage(&self, source: SourceId) -> Result<&Stage, CompileError> {
        let mut error = None;
        let staged = self.stages[&source].get_or_init(|| {
            let dir = self.work.path().join(format!("source-{}", source.0));
            let made = Stage::new(self.context.sources, source, dir);
            made.map_err(|fatal| error = Some(fatal))
        });
        match (staged, error) {
            (Ok(stage), _) => Ok(stage),
            (Err(()), Some(error)) => Err(error),
            (Err(()), None) => Err(CompileError::Interrupted),
        }
    }

    /// Runs a job of the plan to its end. Storing what was made is the caller's.
    pub(crate) fn run(&self, job: JobId) -> Result<Outcome, CompileError> {
        let job = &self.context.plan[job];
        let stage = self.stage(job.source)?;
        let scratch = tempfile::Builder::new()
            .prefix("job-")
            .tempdir_in(self.work.path())
            .map_err(FileError::io("create", self.work.path()))?;
        job::run(self.context, job, stage, scratch.path())
    }
}
