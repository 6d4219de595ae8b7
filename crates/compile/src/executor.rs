//! Runs a plan's jobs on this machine: what the store has is not made again,
//! the rest goes longest first to a pool of workers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use gfxpack_model::Language;
use gfxpack_plan::plan::Plan;
use gfxpack_process::watch::Looks;
use gfxpack_process::{Cancel, FileDigests, Usage, WorkDir};
use gfxpack_toolchain::{Toolchain, ToolchainError};
use rayon::prelude::*;

use crate::costs::{CostFile, Expected, Record};
use crate::crew::{Crew, Done, Seats};
use crate::current::Current;
use crate::engine::{Compilers, Engine, Shortcuts, compiler_environment};
use crate::error::CompileError;
use crate::gate::{Gate, ThisMachine};
use crate::job::{Built, Failure, FailureKind};
use crate::judge::ToolchainPlaces;
use crate::local::Shop;
use crate::remote::{RemoteShop, RemoteWorkers, Site};
use crate::schedule::Schedule;
use crate::shared::SharedCache;
use crate::source::SourceSet;
use crate::store::{HEADERS, ObjectInfo, ObjectStore};

/// How many jobs' costs may be lost if the build is killed.
const COSTS_AT_ONCE: usize = 500;
/// After how many jobs the toolchains are looked at, before others get their
/// objects.
const UPLOADS_AT_ONCE: usize = 64;

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
    /// Who runs jobs elsewhere.
    pub remote: Option<Remote>,
    /// Where objects are shared with other machines.
    pub shared: Option<Arc<SharedCache>>,
    /// Whether kernels that the store knows to be refused are tried again.
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

/// What happens while a plan runs, in the order it happens. Jobs are indices
/// into the plan's.
#[derive(Debug, Clone)]
pub enum Event {
    /// What the store has already; the other jobs follow.
    Looked {
        /// Jobs whose objects it has, with their sizes.
        cached: Vec<(usize, u64)>,
        /// Jobs that an earlier run saw refused, with what was said then.
        refused: Vec<(usize, Failure)>,
    },
    /// Something that the user should hear, and that ends nothing.
    Warning {
        /// In words.
        message: String,
    },
    /// In this order the others will start; not sent if there are none.
    Queued {
        /// Workers, numbered from 0: so many jobs run at once at most.
        workers: usize,
        /// Jobs, with how long each is expected to run.
        jobs: Vec<(usize, Duration)>,
    },
    /// HIP's headers were precompiled for several of the jobs.
    Prepared {
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
    /// Jobs that the store had, or the shared cache.
    pub cached: usize,
    /// Of those, the ones that the shared cache had.
    pub shared: usize,
    /// Of the compiled ones, those made elsewhere.
    pub remote: usize,
    /// Jobs that were compiled.
    pub compiled: usize,
    /// Of the failures, those that an earlier run saw.
    pub refused_before: usize,
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
    let looks = Looks::new(digests);
    let current = Current::new(&looks, sources, toolchains, store, cancel);
    let lookup = |job: &usize| {
        let job = &plan.jobs[*job];
        store.lookup(job.digest, current.of(job))
    };
    let mut found: Vec<Option<ObjectInfo>> =
        pool.install(|| wanted.par_iter().map(lookup).collect());
    let shared = options.shared.as_deref();
    let fetched = shared.map_or(0, |shared| {
        let (had, lacked): (Vec<usize>, Vec<usize>) =
            (0..wanted.len()).partition(|&place| found[place].is_some());
        if shared.takes_all() {
            let had: Vec<usize> = had.iter().map(|&place| wanted[place]).collect();
            shared.top_up(plan, &had, store, cancel);
        }
        let jobs: Vec<usize> = lacked.iter().map(|&place| wanted[place]).collect();
        let fetched = shared.fetch(plan, &jobs, store, &current, cancel);
        let count = fetched.len();
        let mut fetched: HashMap<usize, ObjectInfo> = fetched.into_iter().collect();
        for place in lacked {
            found[place] = fetched.remove(&wanted[place]);
        }
        count
    });
    let warn = |on_event: &mut dyn FnMut(Event)| {
        let warnings = shared.map(SharedCache::warnings).unwrap_or_default();
        warnings.into_iter().for_each(|message| on_event(Event::Warning { message }));
    };
    warn(on_event);
    let mut objects = vec![None; plan.jobs.len()];
    let (mut cached, mut missing) = (Vec::new(), Vec::new());
    for (&index, object) in wanted.iter().zip(found) {
        match &object {
            Some(object) => cached.push((index, object.size)),
            None => missing.push(index),
        }
        objects[index] = object;
    }
    let mut refused: Vec<(usize, Failure)> = Vec::new();
    if !options.retry_refused {
        let refusal = |index: &usize| {
            let job = &plan.jobs[*index];
            Some((*index, store.refusal(job.digest, current.of(job))?))
        };
        refused = pool.install(|| missing.par_iter().filter_map(refusal).collect());
        let known: BTreeSet<usize> = refused.iter().map(|(job, _)| *job).collect();
        missing.retain(|job| !known.contains(job));
    }
    let mut summary = Summary {
        cached: cached.len(),
        shared: fetched,
        objects,
        failures: refused.iter().map(|(job, failure)| (*job, failure.kind.clone())).collect(),
        refused_before: refused.len(),
        ..Summary::default()
    };
    on_event(Event::Looked { cached, refused });
    if missing.is_empty() {
        return Ok(summary);
    }
    let cost_file = CostFile::of(&options.cache_dir);
    let expected = cost_file.read().expect(plan, &missing, |source| sources.closure_size(source));
    let mut queue: Vec<(usize, Expected)> = missing.iter().copied().zip(expected).collect();
    // Longest first, so that none is left to run alone at the end.
    queue.sort_by_key(|(index, expected)| (Reverse(expected.time), *index));
    let work = WorkDir::create(&options.cache_dir)
        .map_err(CompileError::io("create", options.cache_dir.join("work")))?;
    let cancel = cancel.child();
    let headers = store.dir().join(HEADERS);
    let places =
        toolchains.iter().map(|it| ToolchainPlaces::new(it, &options.admitted, &headers, &looks));
    let places = places.collect();
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
        drivers: current.drivers(),
        compilers: Compilers::default(),
        environments: toolchains.iter().map(compiler_environment).collect(),
        headers: Default::default(),
        looks: &looks,
        places,
        unwatched: Default::default(),
    };
    let remote = options.remote.as_ref();
    let here = if remote.is_some_and(|remote| remote.alone) { 0 } else { options.jobs.max(1) };
    let elsewhere = remote.map_or(0, |remote| remote.workers.count().max(1));
    // Nobody else has a use for them.
    let preparations = if here > 0 { engine.preparations(&missing) } else { Vec::new() };
    let jobs = queue.iter().map(|(index, expected)| (*index, expected.time)).collect();
    on_event(Event::Queued { workers: here + elsewhere, jobs });
    let shop = Shop::new(engine, &work, &missing);
    let crew = Crew {
        plan,
        store,
        cancel: &cancel,
        schedule: Schedule::new(plan, &queue, &preparations),
        preparations: &preparations,
        gate: Gate::new(&ThisMachine),
        shop: &shop,
        here,
        seats: Seats::new(options.jobs),
        remote: remote.map(|remote| RemoteShop::new(&*remote.workers, shop.engine())),
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
    let run = |upload: &dyn Fn(usize)| {
        // Others get nothing of which it is not known which compiler made it.
        let release = |made: &mut Vec<usize>| {
            if shared.is_none() {
                made.clear();
            } else if toolchains.iter().all(|toolchain| toolchain.check_unchanged(digests).is_ok())
            {
                made.drain(..).for_each(upload);
            }
        };
        let mut made = Vec::new();
        std::thread::scope(|scope| {
            let crew = &crew;
            let pool = &pool;
            for worker in here..here + elsewhere {
                let sender = sender.clone();
                scope.spawn(move || crew.work(worker, &sender));
            }
            if here > 0 {
                scope.spawn(move || {
                    pool.broadcast(|worker| crew.work(worker.index(), &sender.clone()));
                });
            } else {
                drop(sender);
            }
            for message in receiver {
                match message {
                    Ok(Done { event, object }) => {
                        match &event {
                            Event::Finished { job, built, .. } => {
                                made.push(*job);
                                if made.len() >= UPLOADS_AT_ONCE {
                                    release(&mut made);
                                }
                                let here = built.site == Site::Here;
                                summary.remote += usize::from(!here);
                                summary.compiled += 1;
                                summary.objects[*job] = object;
                                // What a job costs elsewhere, it does not cost here.
                                if here {
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
                            | Event::Warning { .. }
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
        release(&mut made);
    };
    SharedCache::uploading(shared, plan, store, executor.cancel, run);
    warn(on_event);
    if let Some(message) = shop.engine().unwatched_warning() {
        on_event(Event::Warning { message });
    }
    keep(&mut costs);
    summary.failures.sort_by_key(|(job, _)| *job);
    // An upgrade in the middle of a build: nobody knows which compiler made what.
    let used: BTreeSet<usize> = queue.iter().map(|(job, _)| plan.jobs[*job].toolchain).collect();
    // One that was put back shows by its identity.
    let noticed = matches!(error, Some(CompileError::Toolchain(ToolchainError::Changed { .. })));
    for index in used {
        let toolchain = &toolchains[index];
        let same = if noticed { toolchain.check_identity(Language::Hip) } else { Ok(()) };
        if let Err(changed) = same.and_then(|()| toolchain.check_unchanged(digests)) {
            let jobs = queue.iter().map(|(job, _)| &plan.jobs[*job]);
            jobs.filter(|job| job.toolchain == index).for_each(|job| store.remove(job.digest));
            if !matches!(error, Some(CompileError::Toolchain(ToolchainError::Changed { .. }))) {
                error = Some(changed.into());
            }
        }
    }
    error.map_or(Ok(summary), Err)
}
