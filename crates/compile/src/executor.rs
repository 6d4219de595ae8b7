//! Runs a plan's jobs on this machine: what the store has is not made again,
//! the rest goes longest first to a pool of workers.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, mpsc};
use std::time::Duration;

use gfxpack_plan::Language;
use gfxpack_plan::plan::Plan;
use rayon::prelude::*;

use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::job::{self, Bench, Built, Failure};
use crate::memory::{JOB_MEMORY, available_memory, jobs_for};
use crate::process::Cancel;
use crate::source::SourceSet;
use crate::store::{ObjectInfo, ObjectStore};
use crate::toolchain::Toolchain;
use crate::work::WorkDir;

/// How a plan is run.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Compilers at once, at least 1; fewer run where memory carries fewer.
    pub jobs: usize,
    /// How long one compiler may run.
    pub time_limit: Duration,
    /// Where scratch directories are made.
    pub cache_dir: PathBuf,
}

/// What happens while a plan runs, in the order it happens. Jobs are indices
/// into the plan's.
#[derive(Debug, Clone)]
pub enum Event {
    /// So many jobs are in the store already; the others follow.
    Looked {
        /// Jobs whose objects the store has.
        cached: Vec<usize>,
    },
    /// A compiler was started.
    Started {
        /// The job.
        job: usize,
    },
    /// An object was made and stored.
    Finished {
        /// The job.
        job: usize,
        /// The object.
        built: Built,
    },
    /// A kernel could not be made.
    Failed {
        /// The job.
        job: usize,
        /// Why, with the compiler's words.
        failure: Failure,
    },
}

/// What a run made.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// What the store has of each job; `None` where the kernel failed.
    pub objects: Vec<Option<ObjectInfo>>,
    /// Kernels that could not be made, by job, ascending.
    pub failures: Vec<(usize, Failure)>,
    /// Jobs that the store had.
    pub cached: usize,
    /// Jobs that were compiled.
    pub compiled: usize,
}

/// All that a plan's jobs run with.
#[derive(Debug, Clone, Copy)]
pub struct Executor<'a> {
    /// What to run.
    pub plan: &'a Plan,
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

impl Executor<'_> {
    /// Runs every job of the plan that the store does not have. Events come
    /// on the calling thread.
    ///
    /// # Errors
    /// [`CompileError`] where the build can't go on: interrupted, a full
    /// disk, a compiler that can't be started. What was made until then is in
    /// the store. A kernel that fails is no error but part of the summary.
    pub fn run(&self, on_event: &mut dyn FnMut(Event)) -> Result<Summary, CompileError> {
        run(self, on_event)
    }
}

fn run(executor: &Executor<'_>, on_event: &mut dyn FnMut(Event)) -> Result<Summary, CompileError> {
    let Executor { plan, sources, toolchains, store, digests, options, cancel } = *executor;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs_for(options.jobs, available_memory()))
        .thread_name(|index| format!("worker-{index}"))
        .build()
        .map_err(|error| CompileError::Start {
            program: "worker threads".into(),
            source: std::io::Error::other(error),
        })?;
    let objects: Vec<Option<ObjectInfo>> = pool
        .install(|| plan.jobs.par_iter().map(|job| store.lookup(job.digest, digests)).collect());
    let has = |index: &usize| objects[*index].is_some();
    let (cached, mut missing): (Vec<usize>, Vec<usize>) = (0..plan.jobs.len()).partition(has);
    let mut summary = Summary { cached: cached.len(), objects, ..Summary::default() };
    on_event(Event::Looked { cached });
    if missing.is_empty() {
        return Ok(summary);
    }
    missing.sort_by_key(|&index| {
        let job = &plan.jobs[index];
        // Medians: HIP 1.6 s, OpenCL C 0.17 s, assembly 0.07 s.
        let rank = match job.language {
            Language::Hip => 0,
            Language::OpenclC => 1,
            Language::Assembly => 2,
        };
        (rank, usize::MAX - sources.closure_size(job.source), index)
    });
    let work = WorkDir::create(&options.cache_dir)?;
    let cancel = cancel.child();
    let crew = Crew {
        plan,
        sources,
        store,
        bench: Bench { toolchains, digests, time_limit: options.time_limit, cancel: &cancel },
        work: &work,
        queue: &missing,
        next: AtomicUsize::new(0),
        stages: missing.iter().map(|&job| (plan.jobs[job].source, OnceLock::new())).collect(),
        gate: Gate::default(),
    };
    let (sender, receiver) = mpsc::channel();
    let mut error = None;
    std::thread::scope(|scope| {
        let crew = &crew;
        let pool = &pool;
        scope.spawn(move || pool.broadcast(|_| crew.work(&sender.clone())));
        for message in receiver {
            match message {
                Ok(Done { event, object }) => {
                    match &event {
                        Event::Finished { job, .. } => {
                            summary.compiled += 1;
                            summary.objects[*job] = object;
                        }
                        Event::Failed { job, failure } => {
                            summary.failures.push((*job, failure.clone()));
                        }
                        Event::Looked { .. } | Event::Started { .. } => {}
                    }
                    on_event(event);
                }
                // The first one tells; that others were stopped follows from it.
                Err(fatal) => {
                    if matches!(error, None | Some(CompileError::Interrupted)) {
                        error = Some(fatal);
                    }
                }
            }
        }
    });
    summary.failures.sort_by_key(|(job, _)| *job);
    // An upgrade in the middle of a build: nobody knows which compiler made what.
    let used: BTreeSet<usize> = missing.iter().map(|&job| plan.jobs[job].toolchain).collect();
    for index in used {
        if let Err(changed) = toolchains[index].check_unchanged(digests) {
            let jobs = missing.iter().map(|&job| &plan.jobs[job]);
            jobs.filter(|job| job.toolchain == index).for_each(|job| store.remove(job.digest));
            error = Some(changed);
        }
    }
    error.map_or(Ok(summary), Err)
}

/// What a worker reports.
struct Done {
    event: Event,
    object: Option<ObjectInfo>,
}

type Sender = mpsc::Sender<Result<Done, CompileError>>;

/// What the workers share.
struct Crew<'a> {
    plan: &'a Plan,
    sources: &'a SourceSet,
    store: &'a ObjectStore,
    bench: Bench<'a>,
    work: &'a WorkDir,
    queue: &'a [usize],
    next: AtomicUsize,
    stages: HashMap<usize, OnceLock<Result<PathBuf, ()>>>,
    gate: Gate,
}

impl Crew<'_> {
    fn work(&self, sender: &Sender) {
        while let Some(&job) = self.queue.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.bench.cancel.is_cancelled() {
                sender.send(Err(CompileError::Interrupted)).ok();
                return;
            }
            if let Err(error) = self.one(job, sender) {
                sender.send(Err(error)).ok();
                self.bench.cancel.cancel();
                return;
            }
        }
    }

    fn one(&self, index: usize, sender: &Sender) -> Result<(), CompileError> {
        let job = &self.plan.jobs[index];
        let stage = self.stage(job.source)?;
        let parent = self.work.path();
        let scratch = tempfile::Builder::new()
            .prefix("job-")
            .tempdir_in(parent)
            .map_err(CompileError::io("create", parent))?;
        let _ticket = self.gate.enter();
        let report = |event, object| {
            // Nobody listens once the build is given up.
            sender.send(Ok(Done { event, object })).ok();
        };
        report(Event::Started { job: index }, None);
        match job::run(&self.bench, job, &stage, scratch.path())? {
            Ok(object) => {
                let size = object.bytes.len() as u64;
                let info = self.store.insert(job.digest, &object.bytes, object.deps)?;
                let built = Built { size, duration: object.duration, usage: object.usage };
                report(Event::Finished { job: index, built }, Some(info));
            }
            Err(failure) => report(Event::Failed { job: index, failure }, None),
        }
        Ok(())
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

/// Lets a job start only while memory for it is there; one may always run.
#[derive(Default)]
struct Gate {
    running: Mutex<usize>,
    left: Condvar,
}

struct Ticket<'a>(&'a Gate);

impl Gate {
    fn enter(&self) -> Ticket<'_> {
        let mut running = self.running.lock().expect("no panic inside");
        while *running > 0 && available_memory().is_some_and(|bytes| bytes < JOB_MEMORY) {
            let again = Duration::from_millis(500);
            running = self.left.wait_timeout(running, again).expect("no panic inside").0;
        }
        *running += 1;
        Ticket(self)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        *self.0.running.lock().expect("no panic inside") -= 1;
        self.0.left.notify_one();
    }
}
