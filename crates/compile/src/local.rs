//! Runs jobs on this machine: sources are staged by whoever needs them first.

use std::collections::HashMap;
use std::sync::OnceLock;

use gfxpack_process::{Usage, WorkDir};

use crate::crew::{Outcome, Runner};
use crate::engine::{Engine, Preparation, Starter};
use crate::error::CompileError;
use crate::job;
use crate::judge::Stage;

/// What the workers of this machine share.
pub(crate) struct Shop<'a> {
    engine: Engine<'a>,
    work: &'a WorkDir,
    stages: HashMap<usize, OnceLock<Result<Stage, ()>>>,
}

/// One worker of this machine.
pub(crate) struct Local<'a> {
    shop: &'a Shop<'a>,
    starter: Starter<'a>,
}

impl<'a> Shop<'a> {
    /// Ready to run these jobs of the plan.
    pub(crate) fn new(engine: Engine<'a>, work: &'a WorkDir, jobs: &[usize]) -> Self {
        let stages =
            jobs.iter().map(|job| (engine.plan.jobs[*job].source, OnceLock::new())).collect();
        Self { engine, work, stages }
    }

    pub(crate) fn engine(&self) -> &Engine<'a> {
        &self.engine
    }

    pub(crate) fn runner(&self) -> Local<'_> {
        Local { shop: self, starter: self.engine.starter() }
    }

    /// Makes what several jobs share.
    pub(crate) fn prepare(&self, preparation: &Preparation) -> Result<Usage, CompileError> {
        self.engine.prepare(preparation)
    }

    /// A staged source, made by whoever needs it first.
    fn stage(&self, source: usize) -> Result<&Stage, CompileError> {
        let mut error = None;
        let staged = self.stages[&source].get_or_init(|| {
            let dir = self.work.path().join(format!("source-{source}"));
            let made = Stage::new(self.engine.sources, source, dir);
            made.map_err(|fatal| error = Some(fatal))
        });
        match (staged, error) {
            (Ok(stage), _) => Ok(stage),
            (Err(()), Some(error)) => Err(error),
            (Err(()), None) => Err(CompileError::Interrupted),
        }
    }
}

impl Runner for Local<'_> {
    fn is_here(&self) -> bool {
        true
    }

    fn run(&mut self, index: usize) -> Result<Outcome, CompileError> {
        let Self { shop, starter } = self;
        let stage = shop.stage(shop.engine.plan.jobs[index].source)?;
        let parent = shop.work.path();
        let scratch = tempfile::Builder::new()
            .prefix("job-")
            .tempdir_in(parent)
            .map_err(CompileError::io("create", parent))?;
        Ok(match job::run(&shop.engine, starter, index, stage, scratch.path())? {
            Ok(object) => Outcome::Made(object),
            Err(refusal) => Outcome::Failed(refusal),
        })
    }
}
