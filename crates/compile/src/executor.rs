//! Runs a plan's jobs on this machine: what the store has is not made again,
//! the rest goes longest first to a pool of workers.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gfxpack_plan::plan::Plan;
use rayon::prelude::*;

use crate::costs::{CostFile, Expected, Record};
use crate::crew::{Crew, Done};
use crate::engine::{Engine, Environments, Prepared, Shortcuts};
use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::gate::{Gate, ThisMachine};
use crate::job::{Built, Failure, FailureKind};
use crate::local::Shop;
use crate::preprocessed::Earlier;
use crate::process::Cancel;
use crate::schedule::Schedule;
use crate::source::SourceSet;
use crate::store::{ObjectInfo, ObjectStore};
use crate::toolchain::Toolchain;
use crate::twins::Twins;
use crate::usage::Usage;
use crate::work::WorkDir;

/// How many jobs' costs may be lost if the build is killed.
const COSTS_AT_ONCE: usize = 500;

/// How a plan is run.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Compilers at once, at least 1; fewer run where memory carries fewer.
    pub jobs: usize,
    /// How long one compiler may run.
    pub time_limit: Duration,
    /// Where scratch directories are made.
    pub cache_dir: PathBuf,
    /// Which shortcuts to take.
    pub shortcuts: Shortcuts,
}

/// What happens while a plan runs, in the order it happens. Jobs are indices
/// into the plan's.
#[derive(Debug, Clone)]
pub enum Event {
    /// So many jobs are in the store already; the others follow.
    Looked {
        /// Jobs whose objects the store has, with their sizes.
        cached: Vec<(usize, u64)>,
    },
    /// In this order the others will start; not sent if there are none.
    Queued {
        /// Workers, numbered from 0: so many jobs run at once at most.
        workers: usize,
        /// Jobs, with how long each is expected to run.
        jobs: Vec<(usize, Duration)>,
    },
    /// Something was made that several of the jobs share.
    Prepared {
        /// What.
        what: Prepared,
        /// One of the jobs that it is for.
        job: usize,
        /// Where and when; nothing else ran there meanwhile.
        run: JobRun,
        /// How long it took.
        duration: Duration,
        /// What the compilers for it used.
        usage: Usage,
    },
    /// A compiler was started.
    Started {
        /// The job.
        job: usize,
        /// Where and when.
        run: JobRun,
    },
    /// An object was made and stored.
    Finished {
        /// The job.
        job: usize,
        /// Where and when.
        run: JobRun,
        /// The object.
        built: Built,
    },
    /// A kernel could not be made.
    Failed {
        /// The job.
        job: usize,
        /// Where and when.
        run: JobRun,
        /// Why, with the compiler's words.
        failure: Failure,
    },
}

/// Where and when a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobRun {
    /// The worker's number.
    pub worker: usize,
    /// When its compiler was started.
    pub started: Instant,
}

/// What a run made.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// What the store has of each job; `None` where the kernel failed.
    pub objects: Vec<Option<ObjectInfo>>,
    /// Kernels that could not be made, by job, ascending; events had the
    /// compiler's words.
    pub failures: Vec<(usize, FailureKind)>,
    /// Jobs that the store had.
    pub cached: usize,
    /// Jobs that were compiled.
    pub compiled: usize,
    /// Jobs that were given an earlier object, since their source differs in
    /// text only.
    pub reused: usize,
}

/// All that a plan's jobs run with.
#[derive(Debug, Clone, Copy)]
pub struct Executor<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// Which of its jobs; all of them where it is not said. What the store
    /// has of the others is not looked at.
    pub only: Option<&'a [usize]>,
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
    let Executor { plan, only, sources, toolchains, store, digests, options, cancel } = *executor;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.jobs.max(1))
        .thread_name(|index| format!("worker-{index}"))
        .build()
        .map_err(|error| CompileError::Start {
            program: "worker threads".into(),
            source: std::io::Error::other(error),
        })?;
    let all: Vec<usize>;
    let wanted = match only {
        Some(some) => some,
        None => {
            all = (0..plan.jobs.len()).collect();
            &all
        }
    };
    let lookup = |job: &usize| store.lookup(plan.jobs[*job].digest, digests);
    let found: Vec<Option<ObjectInfo>> = pool.install(|| wanted.par_iter().map(lookup).collect());
    let mut objects = vec![None; plan.jobs.len()];
    let (mut cached, mut missing) = (Vec::new(), Vec::new());
    for (&index, object) in wanted.iter().zip(found) {
        match &object {
            Some(object) => cached.push((index, object.size)),
            None => missing.push(index),
        }
        objects[index] = object;
    }
    let mut summary = Summary { cached: cached.len(), objects, ..Summary::default() };
    on_event(Event::Looked { cached });
    if missing.is_empty() {
        return Ok(summary);
    }
    let cost_file = CostFile::of(&options.cache_dir);
    let expected = cost_file.read().expect(plan, &missing, |source| sources.closure_size(source));
    let mut queue: Vec<(usize, Expected)> = missing.iter().copied().zip(expected).collect();
    // Longest first, so that none is left to run alone at the end.
    queue.sort_by_key(|(index, expected)| (Reverse(expected.time), *index));
    let work = WorkDir::create(&options.cache_dir)?;
    let cancel = cancel.child();
    let engine = Engine {
        plan,
        sources,
        toolchains,
        digests,
        cancel: &cancel,
        time_limit: options.time_limit,
        shortcuts: options.shortcuts,
        kept: store.dir(),
        work: work.path(),
        commands: Default::default(),
        environments: toolchains
            .iter()
            .map(|toolchain| Environments::of(toolchain, options.shortcuts))
            .collect(),
        headers: Default::default(),
        libraries: Default::default(),
    };
    let preparations = engine.preparations(&missing);
    let jobs = queue.iter().map(|(index, expected)| (*index, expected.time)).collect();
    on_event(Event::Queued { workers: pool.current_num_threads(), jobs });
    let earlier = Earlier::of(plan, &missing, store, digests);
    let twins = Twins::of(plan, sources, &missing, store, digests);
    let shop = Shop::new(engine, earlier, twins, &work, &missing);
    let crew = Crew {
        plan,
        store,
        cancel: &cancel,
        schedule: Schedule::new(plan, &queue, &preparations),
        preparations: &preparations,
        gate: Gate::new(&ThisMachine),
        shop: &shop,
    };
    let mut costs = Vec::new();
    // Costs are a help and no more: a build does without where they can't be kept.
    let keep = |costs: &mut Vec<Record>| {
        if let Err(error) = cost_file.add(costs) {
            tracing::debug!(%error, "the jobs' costs are not kept");
        }
        costs.clear();
    };
    let (sender, receiver) = mpsc::channel();
    let mut error = None;
    std::thread::scope(|scope| {
        let crew = &crew;
        let pool = &pool;
        scope.spawn(move || pool.broadcast(|worker| crew.work(worker.index(), &sender.clone())));
        for message in receiver {
            match message {
                Ok(Done { event, object, reused }) => {
                    match &event {
                        Event::Finished { job, built, .. } => {
                            summary.compiled += usize::from(!reused);
                            summary.reused += usize::from(reused);
                            summary.objects[*job] = object;
                            if !reused {
                                costs.push(Record::new(plan, &plan.jobs[*job], built));
                            }
                            if costs.len() >= COSTS_AT_ONCE {
                                keep(&mut costs);
                            }
                        }
                        Event::Failed { job, failure, .. } => {
                            summary.failures.push((*job, failure.kind.clone()));
                        }
                        Event::Looked { .. }
                        | Event::Queued { .. }
                        | Event::Prepared { .. }
                        | Event::Started { .. } => {}
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
    keep(&mut costs);
    summary.failures.sort_by_key(|(job, _)| *job);
    // An upgrade in the middle of a build: nobody knows which compiler made what.
    let used: BTreeSet<usize> = queue.iter().map(|(job, _)| plan.jobs[*job].toolchain).collect();
    for index in used {
        if let Err(changed) = toolchains[index].check_unchanged(digests) {
            let jobs = queue.iter().map(|(job, _)| &plan.jobs[*job]);
            jobs.filter(|job| job.toolchain == index).for_each(|job| store.remove(job.digest));
            error = Some(changed);
        }
    }
    error.map_or(Ok(summary), Err)
}
