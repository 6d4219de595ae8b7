//! The workers of a build: each takes what is next, and reports what became
//! of it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, mpsc};
use std::time::Instant;

use gfxpack_plan::plan::Plan;

use crate::engine::{Engine, Preparation, Starter};
use crate::error::CompileError;
use crate::executor::{Event, JobRun};
use crate::gate::Gate;
use crate::job::{self, Built};
use crate::preprocessed::Earlier;
use crate::schedule::{Schedule, Task};
use crate::source::SourceSet;
use crate::store::{About, ObjectInfo, ObjectStore};
use crate::twins::Twins;
use crate::usage::Usage;
use crate::work::WorkDir;

/// What a worker reports.
pub(crate) struct Done {
    pub(crate) event: Event,
    pub(crate) object: Option<ObjectInfo>,
    pub(crate) reused: bool,
}

pub(crate) type Sender = mpsc::Sender<Result<Done, CompileError>>;

/// What the workers share.
pub(crate) struct Crew<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sources: &'a SourceSet,
    pub(crate) store: &'a ObjectStore,
    pub(crate) engine: Engine<'a>,
    pub(crate) earlier: Earlier<'a>,
    pub(crate) twins: Twins<'a>,
    pub(crate) work: &'a WorkDir,
    pub(crate) schedule: Schedule<'a>,
    pub(crate) preparations: &'a [Preparation],
    pub(crate) stages: HashMap<usize, OnceLock<Result<PathBuf, ()>>>,
    pub(crate) gate: Gate<'a>,
}

impl Crew<'_> {
    pub(crate) fn work(&self, worker: usize, sender: &Sender) {
        let mut starter = Starter::default();
        let take = || self.schedule.next(self.engine.cancel);
        while let Some((task, _ticket)) = self.gate.enter(self.engine.cancel, take) {
            let made = match task {
                _ if self.engine.cancel.is_cancelled() => Err(CompileError::Interrupted),
                Task::Prepare(index) => self.prepare(worker, index, sender),
                Task::Job(job) => self.one(worker, job, &mut starter, sender),
            };
            if let Err(error) = made {
                sender.send(Err(error)).ok();
                self.engine.cancel.cancel();
                return;
            }
        }
        if self.engine.cancel.is_cancelled() {
            sender.send(Err(CompileError::Interrupted)).ok();
        }
    }

    fn prepare(&self, worker: usize, index: usize, sender: &Sender) -> Result<(), CompileError> {
        let started = Instant::now();
        let preparation = &self.preparations[index];
        let usage = self.engine.prepare(preparation)?;
        self.schedule.prepared(index);
        let event = Event::Prepared {
            what: preparation.what,
            job: preparation.jobs[0],
            run: JobRun { worker, started },
            duration: started.elapsed(),
            usage,
        };
        sender.send(Ok(Done { event, object: None, reused: false })).ok();
        Ok(())
    }

    fn one(
        &self,
        worker: usize,
        index: usize,
        starter: &mut Starter,
        sender: &Sender,
    ) -> Result<(), CompileError> {
        let job = &self.plan.jobs[index];
        let stage = self.stage(job.source)?;
        let parent = self.work.path();
        let scratch = tempfile::Builder::new()
            .prefix("job-")
            .tempdir_in(parent)
            .map_err(CompileError::io("create", parent))?;
        let report = |event, object, reused| {
            // Nobody listens once the build is given up.
            sender.send(Ok(Done { event, object, reused })).ok();
        };
        let started = Instant::now();
        let run = JobRun { worker, started };
        report(Event::Started { job: index, run }, None, false);
        if let Some(info) = self.reused(starter, index, &stage, scratch.path())? {
            let built =
                Built { size: info.size, duration: started.elapsed(), usage: Usage::default() };
            report(Event::Finished { job: index, run, built }, Some(info), true);
            return Ok(());
        }
        match job::run(&self.engine, starter, index, &stage, scratch.path())? {
            Ok(object) => {
                let size = object.bytes.len() as u64;
                let about = About::of(job);
                let info = self.store.insert(job.digest, &object.bytes, &about, object.deps)?;
                self.twins.made(index)?;
                self.schedule.used(index, object.usage.peak_memory);
                let built = Built { size, duration: object.duration, usage: object.usage };
                report(Event::Finished { job: index, run, built }, Some(info), false);
            }
            Err(failure) => report(Event::Failed { job: index, run, failure }, None, false),
        }
        Ok(())
    }

    /// An object that was made of other text or other macros and is the same.
    fn reused(
        &self,
        starter: &mut Starter,
        index: usize,
        stage: &Path,
        scratch: &Path,
    ) -> Result<Option<ObjectInfo>, CompileError> {
        if let Some(info) = self.earlier.find(&self.engine, starter, index, stage, scratch)? {
            return Ok(Some(info));
        }
        self.twins.find(&self.engine, starter, index, (stage, scratch))
    }

    /// The directory of a staged source, made by whoever needs it first.
    fn stage(&self, source: usize) -> Result<PathBuf, CompileError> {
        let mut error = None;
        let staged = self.stages[&source].get_or_init(|| {
            let dir = self.work.path().join(format!("source-{source}"));
            let made = fs::create_dir(&dir)
                .map_err(CompileError::io("create", &dir))
                .and_then(|()| self.sources.stage(source, &dir));
            made.map(|()| dir).map_err(|fatal| error = Some(fatal))
        });
        match (staged, error) {
            (Ok(dir), _) => Ok(dir.clone()),
            (Err(()), Some(error)) => Err(error),
            (Err(()), None) => Err(CompileError::Interrupted),
        }
    }
}
