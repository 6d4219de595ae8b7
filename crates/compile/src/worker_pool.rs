//! The workers of a build. They share a schedule, and run its jobs on this machine or remotely.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Instant;

use gfxpack_model::{Digest, Error, JobId, KernelKey, SourceId};
use gfxpack_process::{ScratchDir, interrupted};

use crate::context::{BuildContext, get_or_make};
use crate::costs::usual_memory;
use crate::declare::Declared;
use crate::event::{Event, JobRun};
use crate::job::{self, Compiled, Failure, Made, Outcome, Site};
use crate::memory_limiter::{MemoryLimiter, Permit};
use crate::remote::RemoteContext;
use crate::schedule::{Schedule, Task};
use crate::stage::stage;
use crate::store::{ObjectPurpose, ObjectStore};

/// The directory of a staged source.
type StageSlot = OnceLock<Option<PathBuf>>;
/// By source and the files that only headers of the system name.
type Stages = HashMap<(SourceId, Option<Digest>), Arc<StageSlot>>;

type Sender = mpsc::Sender<Result<Event, Error>>;

/// The state that the workers share.
pub(crate) struct WorkerPool<'a> {
    pub(crate) context: &'a BuildContext<'a>,
    pub(crate) store: &'a ObjectStore,
    pub(crate) schedule: Schedule<'a>,
    pub(crate) header_groups: &'a [Vec<JobId>],
    pub(crate) limiter: MemoryLimiter<'a>,
    pub(crate) work: &'a ScratchDir,
    /// What each job may see, and its key.
    pub(crate) declared: &'a HashMap<JobId, Declared>,
    /// The staged sources.
    pub(crate) stages: Mutex<Stages>,
    /// The number of workers of this machine; those with higher numbers are remote.
    pub(crate) here: usize,
    pub(crate) remote: Option<RemoteContext<'a>>,
}

impl WorkerPool<'_> {
    /// The remote context of a worker, if it is a remote one.
    fn remote_of(&self, worker: usize) -> Option<&RemoteContext<'_>> {
        self.remote.as_ref().filter(|_| worker >= self.here)
    }

    /// The next task, with a permit for memory of this machine if the task needs one.
    fn take(&self, worker: usize) -> Option<(Task, Option<Permit<'_>>)> {
        if self.remote_of(worker).is_some() {
            return self.schedule.next_elsewhere().map(|job| (Task::Job(job), None));
        }
        let next = || self.schedule.next(self.context.cancel);
        let (task, permit) = self.limiter.acquire(self.context.cancel, next)?;
        Some((task, Some(permit)))
    }

    /// Runs jobs until none is left or the build is cancelled.
    pub(crate) fn work(&self, worker: usize, sender: &Sender) {
        let _cancelling = self.context.cancel.on_panic();
        while let Some((task, _permit)) = self.take(worker) {
            let made = match task {
                _ if self.context.cancel.is_cancelled() => Err(interrupted()),
                Task::PrecompileHeaders(index) => self.precompile_headers(worker, index, sender),
                Task::Job(job) => self.run_and_store(worker, job, sender),
            };
            if let Err(error) = made {
                sender.send(Err(error)).ok();
                self.context.cancel.cancel();
                return;
            }
        }
        if self.context.cancel.is_cancelled() {
            sender.send(Err(interrupted())).ok();
        }
    }

    fn precompile_headers(
        &self,
        worker: usize,
        index: usize,
        sender: &Sender,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let group = &self.header_groups[index];
        let usage = self.context.session.prepare(&self.context.commands(group))?;
        self.schedule.precompiled(index);
        let event = Event::HeadersPrecompiled {
            job: group[0],
            run: JobRun { worker, started },
            duration: started.elapsed(),
            usage,
        };
        report(sender, event);
        Ok(())
    }

    /// Runs a job on the worker's machine, or on this one if it can't run remotely.
    fn run_here_or_remotely(
        &self,
        worker: usize,
        job: JobId,
        sender: &Sender,
    ) -> Result<Outcome, Error> {
        let Some(remote) = self.remote_of(worker) else { return self.run_here(job) };
        if let Some(outcome) =
            remote.run(job, |message| report(sender, Event::Warning { message }))?
        {
            return Ok(outcome);
        }
        let memory = usual_memory(self.context.plan[job].language);
        let permit = self.limiter.acquire(self.context.cancel, || Some(((), memory)));
        let _permit = permit.ok_or_else(interrupted)?;
        self.run_here(job)
    }

    fn run_here(&self, job: JobId) -> Result<Outcome, Error> {
        let declared = &self.declared[&job];
        let job = &self.context.plan[job];
        // Laid out by the first worker that needs it.
        let slot = {
            let mut stages = self.stages.lock().expect("no panic inside");
            let others = declared.inputs.as_ref().map(|inputs| inputs.others_digest);
            Arc::clone(stages.entry((job.source, others)).or_default())
        };
        let dir = self.work.path().join(format!("source-{:p}", Arc::as_ptr(&slot)));
        let others = declared.inputs.as_ref().map(|inputs| &inputs.others);
        let make = || stage(self.context.sources, job.source, others, dir).map(Some);
        let stage = get_or_make(&slot, make)?.ok_or_else(interrupted)?;
        let scratch = tempfile::Builder::new()
            .prefix("job-")
            .tempdir_in(self.work.path())
            .map_err(Error::io("create", self.work.path()))?;
        job::run(self.context, job, declared, stage, scratch.path())
    }

    /// Runs a job, stores its outcome, and reports it.
    fn run_and_store(&self, worker: usize, index: JobId, sender: &Sender) -> Result<(), Error> {
        let job = &self.context.plan[index];
        let run = JobRun { worker, started: Instant::now() };
        report(sender, Event::Started { job: index, run });
        // The compiler must still be the one that the outcome is kept for.
        let toolchain = self.context.declarer.toolchain(job.toolchain);
        let digests = self.context.declarer.file_system.digests();
        let key = self.declared[&index].key;
        let run_job = || self.run_here_or_remotely(worker, index, sender);
        let outcome = toolchain.while_unchanged(job.language, digests, run_job)?;
        let (kernel, target_id) = (KernelKey::clone(&job.key), job.target_id.clone());
        let about = ObjectPurpose { key: kernel, target_id, arguments: job.arguments.clone() };
        let Outcome { made, duration, usage, site } = outcome;
        match made {
            Made::Object { bytes, is_known } => {
                let for_one_build = || self.context.declarer.key_for_one_build(job);
                let key = if is_known { key } else { for_one_build() };
                let info = self.store.insert(key, &bytes, &about)?;
                if site == Site::Here {
                    self.schedule.used(index, usage.peak_memory);
                }
                let compiled = Compiled { object: info, duration, usage, site };
                report(sender, Event::Finished { job: index, run, compiled });
            }
            Made::Nothing { kind, output, is_kept } => {
                let failure = Failure { kind, output, duration, usage, site };
                if is_kept {
                    self.store.insert_refusal(key, &failure, &about)?;
                }
                report(sender, Event::Failed { job: index, run, failure });
            }
        }
        Ok(())
    }
}

fn report(sender: &Sender, event: Event) {
    // The receiver is gone once the build has ended.
    sender.send(Ok(event)).ok();
}
