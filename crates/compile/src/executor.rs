//! Runs a plan's jobs, here and on remote workers: what the store has is not made again,
//! the rest goes longest first to a pool of workers.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use gfxpack_launch::{
    DriverLauncher, FastLauncher, HeaderOptions, Session, Shortcuts, ToolchainPlaces,
};
use gfxpack_model::JobId;
use gfxpack_plan::plan::Plan;
use gfxpack_process::watch::Looks;
use gfxpack_process::{Cancel, FileDigests, FileError, WorkDir, open_many};
use gfxpack_toolchain::Toolchain;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::context::BuildContext;
use crate::costs::{CostFile, CostRecord, Expected};
use crate::current::Current;
use crate::error::CompileError;
use crate::event::Event;
use crate::job::{FailureKind, Site};
use crate::memory_limiter::{MemoryLimiter, ThisMachine};
use crate::remote::{RemoteContext, RemoteWorkers};
use crate::schedule::Schedule;
use crate::shared::SharedCache;
use crate::source::SourceSet;
use crate::store::{HEADERS, ObjectInfo, ObjectStore};
use crate::worker_pool::{Done, WorkerPool};

/// After how many jobs their costs are kept, and others get their objects.
const AT_ONCE: usize = 64;

/// How a plan is run.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Compilers at once, at least 1; fewer run where memory carries fewer.
    pub jobs: usize,
    /// How long one compiler may run.
    pub time_limit: Duration,
    /// Where scratch directories are made, and what jobs took is kept.
    pub cache_dir: PathBuf,
    /// Which shortcuts to take.
    pub shortcuts: Shortcuts,
    /// Who runs jobs elsewhere.
    pub remote: Option<Remote>,
    /// Where objects are shared with other machines.
    pub shared: Option<Arc<SharedCache>>,
    /// Whether jobs are run again whose refusal the store keeps.
    pub retry_refused: bool,
    /// Directories besides the sources that compilers may read.
    pub admitted: Vec<PathBuf>,
}

/// Who runs jobs elsewhere, and what is left for this machine.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Those who run them.
    pub workers: Arc<dyn RemoteWorkers>,
    /// Whether this machine runs only what can't run there.
    pub alone: bool,
}

/// What a run made.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// What the store has of each job; `None` where the job failed.
    pub objects: Vec<Option<ObjectInfo>>,
    /// Jobs that failed, ascending; events had the compiler's output.
    pub failures: Vec<(JobId, FailureKind)>,
    /// Jobs that the store had, or the shared cache.
    pub cached: usize,
    /// Of those, the ones that the shared cache had.
    pub shared: usize,
    /// Of the compiled ones, those made elsewhere.
    pub remote: usize,
    /// Jobs that were compiled.
    pub compiled: usize,
    /// Of the failures, those that an earlier run saw and the store kept.
    pub refused_before: usize,
}

/// All that a plan's jobs run with.
#[derive(Debug, Clone, Copy)]
pub struct Executor<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// Which of its jobs; all of them where it is not said. What the store
    /// has of the others is not looked at.
    pub only: Option<&'a [JobId]>,
    /// The plan's sources.
    pub sources: &'a SourceSet,
    /// The plan's compilers, in its order.
    pub toolchains: &'a [Toolchain],
    /// Where objects are kept.
    pub store: &'a ObjectStore,
    /// What is known of files' digests.
    pub digests: &'a FileDigests,
    /// How to run it.
    pub options: &'a ExecutorOptions,
    /// Stops it.
    pub cancel: &'a Cancel,
}

/// Called for each event.
type OnEvent<'e> = &'e mut dyn FnMut(Event);

impl Executor<'_> {
    /// Runs every job of the plan that the store does not have. Events come
    /// on the calling thread.
    ///
    /// # Errors
    /// [`CompileError`] where the build can't go on: interrupted, a full
    /// disk, a compiler that can't be started. What was made until then is in
    /// the store. A job that fails is no error but part of the summary.
    pub fn run(&self, on_event: &mut dyn FnMut(Event)) -> Result<Summary, CompileError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.options.jobs.max(1))
            .thread_name(|index| format!("worker-{index}"))
            .build()
            .map_err(|error| {
                FileError::io("start", "worker threads")(std::io::Error::other(error))
            })?;
        let looks = Looks::new(self.digests);
        let (sources, toolchains, store) = (self.sources, self.toolchains, self.store);
        let admitted = &self.options.admitted;
        let current = Current::new(&looks, sources, toolchains, store, self.cancel, admitted);
        let (summary, to_run) = self.look_up(&pool, &current, on_event);
        if to_run.is_empty() {
            return Ok(summary);
        }
        // Each compiler's server takes four open files, and its record one.
        open_many();
        let mut results = Results {
            executor: self,
            summary,
            cost_file: CostFile::in_dir(&self.options.cache_dir),
            costs: Vec::new(),
            made: Vec::new(),
            error: None,
        };
        self.make(&pool, &current, &to_run, &mut results, on_event)?;
        results.settle()
    }

    /// Looks for the jobs' objects in the store and in the shared cache, and for
    /// kept refusals; gives the jobs that are left to run.
    fn look_up(
        &self,
        pool: &ThreadPool,
        current: &Current<'_>,
        on_event: OnEvent<'_>,
    ) -> (Summary, Vec<JobId>) {
        let Self { plan, store, options, cancel, .. } = *self;
        let wanted = self.only.map_or_else(|| plan.job_ids().collect(), <[JobId]>::to_vec);
        let lookup = |index: &JobId| {
            let (digest, now) = (plan[*index].digest, current.for_job(&plan[*index]));
            let object = store.lookup(digest, now);
            let ask = object.is_none() && !options.retry_refused;
            (object, ask.then(|| store.refusal(digest, now)).flatten())
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
            objects[index.0] = object;
        }
        let mut shared = 0;
        if let Some(cache) = options.shared.as_deref() {
            if cache.takes_all() {
                cache.top_up(plan, &had, store, cancel);
            }
            let fetched = cache.fetch(plan, &to_run, store, current, cancel);
            shared = fetched.len();
            for (index, object) in fetched {
                objects[index.0] = Some(object);
            }
            to_run.retain(|job| objects[job.0].is_none());
            self.warn(on_event);
        }
        let size = |index: JobId| Some((index, objects[index.0].as_ref()?.size));
        let cached: Vec<_> = wanted.into_iter().filter_map(size).collect();
        let summary = Summary {
            cached: cached.len(),
            shared,
            objects,
            failures: refused.iter().map(|(job, failure)| (*job, failure.kind.clone())).collect(),
            refused_before: refused.len(),
            ..Summary::default()
        };
        on_event(Event::Looked { cached, refused });
        (summary, to_run)
    }

    /// Tells what is wrong with the shared cache.
    fn warn(&self, on_event: OnEvent<'_>) {
        let warnings = self.options.shared.as_deref().map(SharedCache::warnings);
        let warnings = warnings.unwrap_or_default();
        warnings.into_iter().for_each(|message| on_event(Event::Warning { message }));
    }

    /// The jobs with what each is expected to cost, longest first, so that
    /// none is left to run alone at the end; of equal ones those with larger
    /// sources.
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

    /// Runs the jobs that are left.
    fn make(
        &self,
        pool: &ThreadPool,
        current: &Current<'_>,
        to_run: &[JobId],
        results: &mut Results<'_>,
        on_event: OnEvent<'_>,
    ) -> Result<(), CompileError> {
        let Self { plan, sources, toolchains, options, .. } = *self;
        let (cancel, looks) = (&self.cancel.child(), current.looks());
        let work = WorkDir::create(&options.cache_dir)
            .map_err(FileError::io("create", options.cache_dir.join("work")))?;
        let kept = self.store.dir().join(HEADERS);
        let places_with = |admitted: &[PathBuf]| -> Vec<ToolchainPlaces> {
            toolchains.iter().map(|it| ToolchainPlaces::new(it, admitted, &kept, looks)).collect()
        };
        let places = places_with(&options.admitted);
        // Other builds use them too, which may admit nothing.
        let of_headers = places_with(&[]);
        let session = Session::new(current.drivers(), options.time_limit, cancel);
        let headers = HeaderOptions {
            kept: kept.clone(),
            scratch: work.path(),
            looks,
            places: &of_headers,
            sources,
        };
        let context = BuildContext {
            plan,
            sources,
            toolchains,
            cancel,
            time_limit: options.time_limit,
            drivers: current.drivers(),
            launchers: [
                &FastLauncher::new(&session, options.shortcuts, headers),
                &DriverLauncher::new(&session),
            ],
            looks,
            places: &places,
            admitted: &options.admitted,
            unwatched: Default::default(),
        };
        self.run_all(pool, &context, &work, to_run, results, on_event);
        if let Some(message) = context.unwatched_warning() {
            on_event(Event::Warning { message });
        }
        Ok(())
    }

    /// Has workers run the jobs, here and elsewhere.
    fn run_all(
        &self,
        pool: &ThreadPool,
        context: &BuildContext<'_>,
        work: &WorkDir,
        to_run: &[JobId],
        results: &mut Results<'_>,
        on_event: OnEvent<'_>,
    ) {
        let Self { plan, store, options, .. } = *self;
        let remote = options.remote.as_ref();
        let here = if remote.is_some_and(|remote| remote.alone) { 0 } else { options.jobs.max(1) };
        let elsewhere = remote.map_or(0, |remote| remote.workers.count().max(1));
        // Nobody else has a use for them.
        let header_groups = if here > 0 { context.header_groups(to_run) } else { Vec::new() };
        let queue = self.queue(to_run, &results.cost_file);
        let jobs = queue.iter().map(|(index, expected)| (*index, expected.time)).collect();
        on_event(Event::Queued { workers: here + elsewhere, jobs });
        let workers = WorkerPool {
            context,
            store,
            schedule: Schedule::new(plan, &queue, &header_groups),
            header_groups: &header_groups,
            limiter: MemoryLimiter::new(&ThisMachine, options.jobs.max(1)),
            work,
            stages: to_run.iter().map(|job| (plan[*job].source, OnceLock::new())).collect(),
            here,
            remote: remote.map(|remote| RemoteContext::new(&*remote.workers, context)),
        };
        let shared = options.shared.as_deref();
        SharedCache::uploading(shared, plan, store, self.cancel, |upload| {
            run_workers(&workers, pool, elsewhere, &mut |message| {
                results.take(message, upload, on_event);
            });
            results.release(upload);
        });
        self.warn(on_event);
    }
}

/// Has the workers run all jobs, those of the pool on this machine; what they
/// report comes on the calling thread.
fn run_workers(
    workers: &WorkerPool<'_>,
    pool: &ThreadPool,
    elsewhere: usize,
    take: &mut dyn FnMut(Result<Done, CompileError>),
) {
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for worker in workers.here..workers.here + elsewhere {
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

/// What has come of the jobs so far.
struct Results<'a> {
    executor: &'a Executor<'a>,
    summary: Summary,
    cost_file: CostFile,
    /// Costs that are not in the file yet.
    costs: Vec<CostRecord>,
    /// Jobs whose objects others are to get.
    made: Vec<JobId>,
    error: Option<CompileError>,
}

impl Results<'_> {
    /// Takes what a worker reports.
    fn take(
        &mut self,
        message: Result<Done, CompileError>,
        upload: &dyn Fn(JobId),
        on_event: OnEvent<'_>,
    ) {
        let Done { event, object } = match message {
            Ok(done) => done,
            // The first one tells; that others were stopped follows from it.
            Err(fatal) => {
                if matches!(self.error, None | Some(CompileError::Interrupted)) {
                    self.error = Some(fatal);
                }
                return;
            }
        };
        match &event {
            Event::Finished { job, compiled, .. } => {
                self.made.push(*job);
                if self.made.len() >= AT_ONCE {
                    self.keep_costs();
                    self.release(upload);
                }
                let here = compiled.site == Site::Here;
                self.summary.remote += usize::from(!here);
                self.summary.compiled += 1;
                self.summary.objects[job.0] = object;
                // What a job costs elsewhere, it does not cost here.
                if here {
                    let plan = self.executor.plan;
                    self.costs.push(CostRecord::new(plan, &plan[*job], compiled));
                }
            }
            Event::Failed { job, failure, .. } => {
                self.summary.failures.push((*job, failure.kind.clone()));
            }
            _ => {}
        }
        on_event(event);
    }

    /// Gives others what was made.
    fn release(&mut self, upload: &dyn Fn(JobId)) {
        self.made.drain(..).for_each(upload);
    }

    /// Costs are a help and no more: a build does without where they can't be
    /// kept.
    fn keep_costs(&mut self) {
        if let Err(error) = self.cost_file.add(&self.costs) {
            tracing::debug!(%error, "the jobs' costs are not kept");
        }
        self.costs.clear();
    }

    /// Ends the build.
    fn settle(mut self) -> Result<Summary, CompileError> {
        self.keep_costs();
        self.summary.failures.sort_by_key(|(job, _)| *job);
        self.error.map_or(Ok(self.summary), Err)
    }
}
