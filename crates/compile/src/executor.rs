//! Runs a plan's jobs, here and on remote workers. Jobs whose objects are stored are skipped; the
//! others go to a pool of workers, longest first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use gfxpack_launch::{HeaderOptions, Session};
use gfxpack_model::{Digest, Error, JobId};
use gfxpack_plan::plan::Plan;
use gfxpack_process::watch::FileSystemCache;
use gfxpack_process::{
    Cancel, FileDigests, ScratchDir, available_memory, open_many, resident_of_jobs,
};
use gfxpack_toolchain::Toolchain;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::context::BuildContext;
use crate::costs::{CostFile, CostRecord, Expected};
use crate::declare::{Declared, Declarer, Inputs};
use crate::event::Event;
use crate::job::{FailureKind, Site};
use crate::memory_limiter::MemoryLimiter;
use crate::remote::{RemoteContext, RemoteWorkers};
use crate::schedule::Schedule;
use crate::shared_cache::SharedCache;
use crate::source::SourceSet;
use crate::store::{HEADERS, ObjectInfo, ObjectStore};
use crate::worker_pool::WorkerPool;

/// After this many jobs, their costs are written and their objects uploaded.
const AT_ONCE: usize = 64;

/// How a plan is run.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// The most compilers that run at once, at least 1; fewer if memory is short.
    pub jobs: usize,
    /// How long one compiler may run.
    pub time_limit: Duration,
    /// The directory for scratch directories and for the costs of jobs.
    pub cache_dir: PathBuf,
    /// Whether compilers may be started by shortcuts.
    pub shortcuts: bool,
    /// Remote workers that run jobs too.
    pub remote: Option<Remote>,
    /// A cache of objects that other machines share.
    pub shared: Option<Arc<SharedCache>>,
    /// Whether to run jobs again whose refusal the store keeps.
    pub retry_refused: bool,
    /// Directories besides the sources that compilers may read.
    pub admitted: Vec<PathBuf>,
}

/// Remote workers, and which jobs are left for this machine.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The workers.
    pub workers: Arc<dyn RemoteWorkers>,
    /// Whether this machine runs only jobs that can't run remotely.
    pub alone: bool,
}

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// The stored object of each job, and where it came from; `None` if the job failed.
    pub objects: Vec<Option<(ObjectInfo, Origin)>>,
    /// Jobs that failed, ascending; their events had the compiler's output.
    pub failures: Vec<(JobId, FailureKind)>,
    /// Of the failures, those that the store kept from an earlier run.
    pub refused_before: usize,
    /// What each job could see.
    pub(crate) inputs: HashMap<JobId, Arc<Inputs>>,
}

/// What each job may see, and its key.
type AllDeclared = HashMap<JobId, Declared>;

/// Where an object of the store came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was in the store before the run.
    Cached,
    /// The shared cache.
    Shared,
    /// A compiler of this machine.
    Here,
    /// A remote worker.
    Remote,
}

impl Summary {
    /// The number of objects with this origin.
    pub fn count(&self, origin: Origin) -> usize {
        self.objects.iter().flatten().filter(|(_, it)| *it == origin).count()
    }
}

/// Runs the jobs of a plan.
#[derive(Debug, Clone, Copy)]
pub struct Executor<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// The jobs to run; all if `None`. The stored objects of the others are not looked at.
    pub only: Option<&'a [JobId]>,
    /// The plan's sources.
    pub sources: &'a SourceSet,
    /// The plan's compilers, in its order.
    pub toolchains: &'a [Toolchain],
    /// The store for the objects.
    pub store: &'a ObjectStore,
    /// Known digests of files.
    pub digests: &'a FileDigests,
    /// How to run it.
    pub options: &'a ExecutorOptions,
    /// Cancels the run.
    pub cancel: &'a Cancel,
}

/// Called for each event.
type OnEvent<'e> = &'e mut dyn FnMut(Event);

impl Executor<'_> {
    /// Runs every job of the plan that has no stored object. Events are reported on the calling
    /// thread.
    ///
    /// # Errors
    /// If the build can't go on: interrupted, a full disk, a compiler that can't
    /// be started. The objects made until then are stored. A job that fails is no error but part of
    /// the summary.
    pub fn run(&self, on_event: &mut dyn FnMut(Event)) -> Result<Summary, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.options.jobs)
            .thread_name(|index| format!("worker-{index}"))
            .build()
            .map_err(|error| Error::io("start", "worker threads")(std::io::Error::other(error)))?;
        let file_system = FileSystemCache::new(self.digests);
        let (sources, toolchains, store) = (self.sources, self.toolchains, self.store);
        let admitted = &self.options.admitted;
        let declarer =
            Declarer::new(&file_system, sources, toolchains, store, self.cancel, admitted);
        let wanted = self.only.map_or_else(|| self.plan.job_ids().collect(), <[JobId]>::to_vec);
        let declare = |job: &JobId| (*job, declarer.declared(&self.plan[*job]));
        let declared: AllDeclared = pool.install(|| wanted.par_iter().map(declare).collect());
        let (summary, to_run) = self.look_up(&pool, wanted, &declared, on_event);
        if to_run.is_empty() {
            return Ok(summary);
        }
        // Each compiler's server takes four open files, and its record one.
        open_many();
        let mut results = Results {
            plan: self.plan,
            summary,
            cost_file: CostFile::in_dir(&self.options.cache_dir),
            costs: Vec::new(),
            made: Vec::new(),
            declared: &declared,
            error: None,
        };
        self.run_missing(&pool, (&declarer, &declared), &to_run, &mut results, on_event)?;
        results.keep_costs();
        results.summary.failures.sort_by_key(|(job, _)| *job);
        results.error.map_or(Ok(results.summary), Err)
    }

    /// Looks for the jobs' objects in the store and the shared cache, and for kept refusals;
    /// returns the jobs that are left to run.
    fn look_up(
        &self,
        pool: &ThreadPool,
        wanted: Vec<JobId>,
        declared: &AllDeclared,
        on_event: OnEvent<'_>,
    ) -> (Summary, Vec<JobId>) {
        let Self { plan, store, options, cancel, .. } = *self;
        let lookup = |job: &JobId| {
            let key = declared[job].key;
            let object = store.lookup(key);
            let ask = object.is_none() && !options.retry_refused;
            (object, ask.then(|| store.refusal(key)).flatten())
        };
        let found: Vec<_> = pool.install(|| wanted.par_iter().map(lookup).collect());
        let mut objects = vec![None; plan.jobs.len()];
        let (mut had, mut refused, mut to_run) = (Vec::new(), Vec::new(), Vec::new());
        for (&index, (object, refusal)) in wanted.iter().zip(found) {
            match refusal {
                Some(failure) => refused.push((index, failure)),
                None if object.is_some() => had.push(index),
                None => to_run.push(index),
            }
            objects[index.0] = object.map(|object| (object, Origin::Cached));
        }
        if let Some(cache) = options.shared.as_deref() {
            cache.top_up(&had, declared, store, cancel);
            for (index, object) in cache.fetch(plan, &to_run, declared, store, cancel) {
                objects[index.0] = Some((object, Origin::Shared));
            }
            to_run.retain(|job| objects[job.0].is_none());
            self.warn(on_event);
        }
        let size = |index: JobId| Some((index, objects[index.0].as_ref()?.0.size));
        let cached: Vec<_> = wanted.into_iter().filter_map(size).collect();
        let inputs = |(job, it): (&JobId, &Declared)| Some((*job, Arc::clone(it.inputs.as_ref()?)));
        let summary = Summary {
            objects,
            failures: refused.iter().map(|(job, failure)| (*job, failure.kind.clone())).collect(),
            refused_before: refused.len(),
            inputs: declared.iter().filter_map(inputs).collect(),
        };
        on_event(Event::FoundInCache { cached, refused });
        (summary, to_run)
    }

    /// Reports problems of the shared cache.
    fn warn(&self, on_event: OnEvent<'_>) {
        let warnings = self.options.shared.as_deref().map(SharedCache::warnings);
        let warnings = warnings.unwrap_or_default();
        warnings.into_iter().for_each(|message| on_event(Event::Warning { message }));
    }

    /// The jobs with their expected costs, longest first, so that no long job is left to run alone
    /// at the end. Among equal ones, those with larger sources come first.
    fn queue(&self, to_run: &[JobId], cost_file: &CostFile) -> Vec<(JobId, Expected)> {
        let costs = cost_file.read();
        let expect = |index: &JobId| (*index, costs.expect(self.plan, &self.plan[*index]));
        let mut queue: Vec<(JobId, Expected)> = to_run.iter().map(expect).collect();
        queue.sort_by_cached_key(|(index, expected)| {
            let size = self.sources.closure_size(self.plan[*index].source);
            (Reverse((expected.time, size)), *index)
        });
        queue
    }

    /// Has workers run the jobs that are left, on this machine and remotely.
    fn run_missing(
        &self,
        pool: &ThreadPool,
        (declarer, declared): (&Declarer<'_>, &AllDeclared),
        to_run: &[JobId],
        results: &mut Results<'_>,
        on_event: OnEvent<'_>,
    ) -> Result<(), Error> {
        let Self { plan, sources, store, options, .. } = *self;
        let cancel = &self.cancel.child();
        let work = &ScratchDir::in_cache(&options.cache_dir)
            .map_err(Error::io("create", options.cache_dir.join("work")))?;
        let kept = store.dir.join(HEADERS);
        let headers = HeaderOptions { kept, scratch: work.path(), search: declarer };
        let shortcuts = options.shortcuts.then_some(headers);
        let session = Session::new(&declarer.drivers, options.time_limit, cancel, shortcuts);
        let (time_limit, unwatched) = (options.time_limit, Default::default());
        let context =
            &BuildContext { plan, sources, cancel, time_limit, declarer, session, unwatched };
        let remote = options.remote.as_ref();
        let here = if remote.is_some_and(|remote| remote.alone) { 0 } else { options.jobs };
        let remote_workers = remote.map_or(0, |remote| remote.workers.count().max(1));
        // Remote workers have no use for precompiled headers.
        let header_groups = if here > 0 { context.header_groups(to_run) } else { Vec::new() };
        let queue = self.queue(to_run, &results.cost_file);
        let jobs = queue.iter().map(|(index, expected)| (*index, expected.time)).collect();
        on_event(Event::Queued { workers: here + remote_workers, jobs });
        let workers = WorkerPool {
            context,
            store,
            schedule: Schedule::new(plan, &queue, &header_groups),
            header_groups: &header_groups,
            limiter: MemoryLimiter::new(available_memory, resident_of_jobs, options.jobs),
            work,
            declared,
            stages: Mutex::default(),
            here,
            remote: remote.map(|remote| RemoteContext::new(&*remote.workers, context, declared)),
        };
        let shared = options.shared.as_deref();
        SharedCache::uploading(shared, store, self.cancel, |upload| {
            run_workers(&workers, pool, remote_workers, &mut |message| {
                results.take(message, upload, on_event);
            });
            results.release(upload);
        });
        self.warn(on_event);
        if let Some(message) = context.unwatched_warning() {
            on_event(Event::Warning { message });
        }
        Ok(())
    }
}

/// Has the workers run all jobs, those of the pool on this machine. Their reports are handled on
/// the calling thread.
fn run_workers(
    workers: &WorkerPool<'_>,
    pool: &ThreadPool,
    remote_workers: usize,
    take: &mut dyn FnMut(Result<Event, Error>),
) {
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for worker in workers.here..workers.here + remote_workers {
            let sender = sender.clone();
            scope.spawn(move || workers.work(worker, &sender));
        }
        if workers.here > 0 {
            scope.spawn(move || {
                pool.broadcast(|worker| workers.work(worker.index(), &sender.clone()));
            });
        } else {
            drop(sender);
        }
        receiver.into_iter().for_each(take);
    });
}

/// The results of the jobs so far.
struct Results<'a> {
    plan: &'a Plan,
    summary: Summary,
    cost_file: CostFile,
    /// Costs that are not written to the file yet.
    costs: Vec<CostRecord>,
    /// Keys whose objects are still to be uploaded.
    made: Vec<Digest>,
    declared: &'a AllDeclared,
    error: Option<Error>,
}

impl Results<'_> {
    /// Handles a worker's report.
    fn take(
        &mut self,
        message: Result<Event, Error>,
        upload: &dyn Fn(Digest),
        on_event: OnEvent<'_>,
    ) {
        let event = match message {
            Ok(event) => event,
            // The first error is reported; the others were stopped because of it.
            Err(fatal) => {
                if self.error.as_ref().is_none_or(Error::is_interrupted) {
                    self.error = Some(fatal);
                }
                return;
            }
        };
        match &event {
            Event::Finished { job, compiled, .. } => {
                // An object for one build is of no use to others.
                let key = compiled.object.key;
                self.made.extend((key == self.declared[job].key).then_some(key));
                if self.made.len() >= AT_ONCE {
                    self.keep_costs();
                    self.release(upload);
                }
                let here = compiled.site == Site::Here;
                let origin = if here { Origin::Here } else { Origin::Remote };
                self.summary.objects[job.0] = Some((compiled.object.clone(), origin));
                // A remote job's cost says nothing about this machine.
                if here {
                    self.costs.push(CostRecord::new(self.plan, &self.plan[*job], compiled));
                }
            }
            Event::Failed { job, failure, .. } => {
                self.summary.failures.push((*job, failure.kind.clone()));
            }
            _ => {}
        }
        on_event(event);
    }

    /// Uploads the objects that were made.
    fn release(&mut self, upload: &dyn Fn(Digest)) {
        self.made.drain(..).for_each(upload);
    }

    /// Writes the costs to their file. An error is ignored, since a build can do without them.
    fn keep_costs(&mut self) {
        self.cost_file.add(&self.costs).ok();
        self.costs.clear();
    }
}
