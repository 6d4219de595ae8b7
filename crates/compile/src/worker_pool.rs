//! The workers of a build: they share a schedule, and each has a runner that
//! makes its jobs' objects.

use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use gfxpack_model::JobId;
use gfxpack_process::Cancel;

use crate::context::BuildContext;
use crate::costs::usual_memory;
use crate::error::CompileError;
use crate::event::{Event, JobRun};
use crate::job::{Built, FailedJob, Object};
use crate::local::{Local, LocalContext};
use crate::memory_limiter::{MemoryLimiter, Permit};
use crate::remote::RemoteContext;
use crate::runner::{Outcome, Runner};
use crate::schedule::{Schedule, Task};
use crate::store::{About, ObjectInfo, ObjectStore};

/// How many jobs may run on this machine besides its own workers'.
pub(crate) struct Slots {
    free: Mutex<usize>,
    left: Condvar,
}

/// Given back when it is dropped.
struct Slot<'a>(&'a Slots);

/// How often a waiting worker looks whether the build was cancelled.
const AGAIN: Duration = Duration::from_millis(200);

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count.max(1)), left: Condvar::new() }
    }

    fn take(&self, cancel: &Cancel) -> Option<Slot<'_>> {
        let mut free = self.free.lock().expect("no panic inside");
        while *free == 0 {
            free = self.left.wait_timeout(free, AGAIN).expect("no panic inside").0;
            if cancel.is_cancelled() {
                return None;
            }
        }
        *free -= 1;
        Some(Slot(self))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().expect("no panic inside") += 1;
        self.0.left.notify_one();
    }
}

/// What a worker reports.
pub(crate) struct Done {
    pub(crate) event: Event,
    pub(crate) object: Option<ObjectInfo>,
}

type Sender = mpsc::Sender<Result<Done, CompileError>>;

/// What the workers share.
pub(crate) struct WorkerPool<'a> {
    pub(crate) context: &'a BuildContext<'a>,
    pub(crate) store: &'a ObjectStore,
    pub(crate) schedule: Schedule<'a>,
    pub(crate) preparations: &'a [Vec<JobId>],
    pub(crate) limiter: MemoryLimiter<'a>,
    pub(crate) local: &'a LocalContext<'a>,
    /// Workers of this machine; those with higher numbers are elsewhere.
    pub(crate) here: usize,
    /// For jobs that came back from elsewhere.
    pub(crate) slots: Slots,
    pub(crate) remote: Option<RemoteContext<'a>>,
}

impl WorkerPool<'_> {
    /// The runner of a worker.
    fn runner(&self, worker: usize) -> Box<dyn Runner + '_> {
        match &self.remote {
            Some(remote) if worker >= self.here => Box::new(remote.runner()),
            _ => Box::new(self.local.runner()),
        }
    }

    /// What to do next, with leave to take memory of this machine if that
    /// needs it.
    fn take(&self, here: bool) -> Option<(Task, Option<Permit<'_>>)> {
        if here {
            let next = || self.schedule.next(self.context.cancel);
            let (task, permit) = self.limiter.acquire(self.context.cancel, next)?;
            Some((task, Some(permit)))
        } else {
            self.schedule.next_elsewhere().map(|job| (Task::Job(job), None))
        }
    }

    /// Runs jobs until none is left, or somebody asks to stop.
    pub(crate) fn work(&self, worker: usize, sender: &Sender) {
        let mut runner = self.runner(worker);
        let mut spare = self.local.runner();
        while let Some((task, _permit)) = self.take(runner.is_here()) {
            let made = match task {
                _ if self.context.cancel.is_cancelled() => Err(CompileError::Interrupted),
                Task::Prepare(index) => self.prepare(worker, index, sender),
                Task::Job(job) => self.one(worker, job, runner.as_mut(), &mut spare, sender),
            };
            if let Err(error) = made {
                sender.send(Err(error)).ok();
                self.context.cancel.cancel();
                return;
            }
        }
        if self.context.cancel.is_cancelled() {
            sender.send(Err(CompileError::Interrupted)).ok();
        }
    }

    fn prepare(&self, worker: usize, index: usize, sender: &Sender) -> Result<(), CompileError> {
        let started = Instant::now();
        let preparation = &self.preparations[index];
        let usage = self.context.prepare(preparation)?;
        self.schedule.prepared(index);
        let event = Event::Prepared {
            job: preparation[0],
            run: JobRun { worker, started },
            duration: started.elapsed(),
            usage,
        };
        sender.send(Ok(Done { event, object: None })).ok();
        Ok(())
    }

    /// What becomes of a job, and who made its object.
    fn run<'r>(
        &self,
        index: JobId,
        runner: &'r mut dyn Runner,
        spare: &'r mut Local<'_>,
        sender: &Sender,
    ) -> Result<(Outcome, &'r mut dyn Runner), CompileError> {
        match runner.run(index)? {
            Outcome::Here(warning) => {
                if let Some(message) = warning {
                    let event = Event::Warning { message };
                    sender.send(Ok(Done { event, object: None })).ok();
                }
                let _slot =
                    self.slots.take(self.context.cancel).ok_or(CompileError::Interrupted)?;
                let memory = usual_memory(self.context.plan[index].language);
                let leave = self.limiter.acquire(self.context.cancel, || Some(((), memory)));
                let _leave = leave.ok_or(CompileError::Interrupted)?;
                Ok((spare.run(index)?, spare))
            }
            outcome => Ok((outcome, runner)),
        }
    }

    fn one(
        &self,
        worker: usize,
        index: JobId,
        runner: &mut dyn Runner,
        spare: &mut Local<'_>,
        sender: &Sender,
    ) -> Result<(), CompileError> {
        let job = &self.context.plan[index];
        let report = |event, object| {
            // Nobody listens once the build is given up.
            sender.send(Ok(Done { event, object })).ok();
        };
        let started = Instant::now();
        let run = JobRun { worker, started };
        report(Event::Started { job: index, run }, None);
        let (outcome, runner) = self.run(index, runner, spare, sender)?;
        match outcome {
            Outcome::Here(_) => unreachable!("this machine's own workers run every job"),
            Outcome::Made(object) => {
                let size = object.bytes.len() as u64;
                // A build may be killed at any time: what it leaves was made
                // by the compiler that it is kept for.
                self.context.toolchains[job.toolchain.0].check_identity(job.language)?;
                let about = About::from_job(job);
                let info =
                    self.store.insert(job.digest, &object.bytes, &about, &object.rests_on)?;
                if runner.is_here() {
                    self.schedule.used(index, object.usage.peak_memory);
                }
                let Object { duration, usage, site, .. } = object;
                let built = Built { size, duration, usage, site };
                report(Event::Finished { job: index, run, built }, Some(info));
            }
            Outcome::Failed(FailedJob { failure, rests_on }) => {
                if let Some(rests_on) = rests_on {
                    self.context.toolchains[job.toolchain.0].check_identity(job.language)?;
                    self.store.insert_refusal(
                        job.digest,
                        &failure,
                        &About::from_job(job),
                        &rests_on,
                    )?;
                }
                report(Event::Failed { job: index, run, failure }, None);
            }
        }
        Ok(())
    }
}
