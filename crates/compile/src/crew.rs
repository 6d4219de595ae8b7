//! The workers of a build: they share a schedule, and each has a runner that
//! makes its jobs' objects.

use std::sync::mpsc;
use std::time::Instant;

use gfxpack_plan::plan::Plan;

use crate::engine::Preparation;
use crate::error::CompileError;
use crate::executor::{Event, JobRun};
use crate::gate::{Gate, Ticket};
use crate::job::{Built, Failure, Object};
use crate::local::Shop;
use crate::process::Cancel;
use crate::schedule::{Schedule, Task};
use crate::store::{About, ObjectInfo, ObjectStore};
use crate::usage::Usage;

/// Makes the objects of one worker's jobs, one after the other. This is the
/// one place where it shows whether a job runs here or elsewhere.
pub(crate) trait Runner {
    /// Whether its jobs take this machine's memory, so that they wait for it.
    fn is_here(&self) -> bool;

    /// Runs a job of the plan to its end. Storing what was made is the
    /// caller's.
    ///
    /// # Errors
    /// [`CompileError`] where the build can't go on; a kernel that can't be
    /// made is [`Outcome::Failed`].
    fn run(&mut self, job: usize) -> Result<Outcome, CompileError>;

    /// Told once the object of a job that it made is stored.
    fn stored(&mut self, job: usize) -> Result<(), CompileError>;
}

/// How a job ended.
pub(crate) enum Outcome {
    /// The store has its object by now, which was made for another job.
    Reused(ObjectInfo),
    /// An object that was made.
    Made(Object),
    /// None could be made.
    Failed(Failure),
}

/// What a worker reports.
pub(crate) struct Done {
    pub(crate) event: Event,
    pub(crate) object: Option<ObjectInfo>,
    pub(crate) reused: bool,
}

type Sender = mpsc::Sender<Result<Done, CompileError>>;

/// What the workers share.
pub(crate) struct Crew<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) store: &'a ObjectStore,
    pub(crate) cancel: &'a Cancel,
    pub(crate) schedule: Schedule<'a>,
    pub(crate) preparations: &'a [Preparation],
    pub(crate) gate: Gate<'a>,
    pub(crate) shop: &'a Shop<'a>,
}

impl Crew<'_> {
    /// The runner of a worker.
    fn runner(&self, _worker: usize) -> Box<dyn Runner + '_> {
        Box::new(self.shop.runner())
    }

    /// What to do next, with leave to take memory of this machine if that
    /// needs it.
    fn take(&self, here: bool) -> Option<(Task, Option<Ticket<'_>>)> {
        if here {
            let next = || self.schedule.next(self.cancel);
            let (task, ticket) = self.gate.enter(self.cancel, next)?;
            Some((task, Some(ticket)))
        } else {
            self.schedule.next_elsewhere().map(|job| (Task::Job(job), None))
        }
    }

    /// Runs jobs until none is left, or somebody asks to stop.
    pub(crate) fn work(&self, worker: usize, sender: &Sender) {
        let mut runner = self.runner(worker);
        while let Some((task, _ticket)) = self.take(runner.is_here()) {
            let made = match task {
                _ if self.cancel.is_cancelled() => Err(CompileError::Interrupted),
                Task::Prepare(index) => self.prepare(worker, index, sender),
                Task::Job(job) => self.one(worker, job, runner.as_mut(), sender),
            };
            if let Err(error) = made {
                sender.send(Err(error)).ok();
                self.cancel.cancel();
                return;
            }
        }
        if self.cancel.is_cancelled() {
            sender.send(Err(CompileError::Interrupted)).ok();
        }
    }

    fn prepare(&self, worker: usize, index: usize, sender: &Sender) -> Result<(), CompileError> {
        let started = Instant::now();
        let preparation = &self.preparations[index];
        let usage = self.shop.prepare(preparation)?;
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
        runner: &mut dyn Runner,
        sender: &Sender,
    ) -> Result<(), CompileError> {
        let job = &self.plan.jobs[index];
        let report = |event, object, reused| {
            // Nobody listens once the build is given up.
            sender.send(Ok(Done { event, object, reused })).ok();
        };
        let started = Instant::now();
        let run = JobRun { worker, started };
        report(Event::Started { job: index, run }, None, false);
        match runner.run(index)? {
            Outcome::Reused(info) => {
                let built =
                    Built { size: info.size, duration: started.elapsed(), usage: Usage::default() };
                report(Event::Finished { job: index, run, built }, Some(info), true);
            }
            Outcome::Made(object) => {
                let size = object.bytes.len() as u64;
                let about = About::of(job);
                let info = self.store.insert(job.digest, &object.bytes, &about, object.deps)?;
                runner.stored(index)?;
                if runner.is_here() {
                    self.schedule.used(index, object.usage.peak_memory);
                }
                let built = Built { size, duration: object.duration, usage: object.usage };
                report(Event::Finished { job: index, run, built }, Some(info), false);
            }
            Outcome::Failed(failure) => {
                report(Event::Failed { job: index, run, failure }, None, false);
            }
        }
        Ok(())
    }
}
