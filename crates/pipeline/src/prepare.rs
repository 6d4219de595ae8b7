//! Makes a plan from options: reads inputs, loads sources, probes toolchains, and
//! checks everything before anything is built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gfxpack_compile::{Cancel, Declarer, Executor, ExecutorOptions, FileSystemCache, ObjectStore};
use gfxpack_model::{JobId, Language, TargetId, ToolchainId};
use gfxpack_plan::clock::Clock;
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::plan::{Plan, PlanToolchain, TargetRequest};
use gfxpack_plan::workers::Workers;
use gfxpack_toolchain::{Toolchain, Toolchains};
use rayon::prelude::*;

use crate::cache::Cache;
use crate::environment::ENVIRONMENT;
use crate::error::{self, Result};
use crate::inputs::{self, ExistingCount, Inputs};
use crate::options::{BuildOptions, CompilerArgs, InputOptions, Purpose};
use crate::progress::Progress;
use crate::stock_library::{self, LibraryAnswer};

/// All that a build needs.
pub struct Prepared {
    /// What will be done.
    pub plan: Plan,
    /// What was read: the plan's sources with their bytes, and facts to report.
    pub inputs: Inputs,
    /// The plan's toolchains, in its order; empty if nothing is compiled.
    pub(crate) toolchains: Vec<Toolchain>,
    pub(crate) cache: Cache,
}

impl Prepared {
    /// Finds what the plan's jobs may see, and their keys. Compilers may read the
    /// directories `admitted` besides the sources.
    pub(crate) fn declarer<'a>(
        &'a self,
        file_system: &'a FileSystemCache<'a>,
        cancel: &'a Cancel,
        admitted: &[PathBuf],
    ) -> Declarer<'a> {
        let (sources, store) = (&self.inputs.sources, &self.cache.store);
        Declarer::new(file_system, sources, &self.toolchains, store, cancel, admitted)
    }

    /// An executor for the plan's jobs, or `only` these. Objects are put into
    /// `store`.
    pub(crate) fn executor<'a>(
        &'a self,
        store: &'a ObjectStore,
        only: Option<&'a [JobId]>,
        options: &'a ExecutorOptions,
        cancel: &'a Cancel,
    ) -> Executor<'a> {
        Executor {
            plan: &self.plan,
            only,
            sources: &self.inputs.sources,
            toolchains: &self.toolchains,
            store,
            digests: &self.cache.digests,
            options,
            cancel,
        }
    }
}

/// The work that some inputs require.
pub enum Preparation<T> {
    /// Kernels must be built.
    ToDo(Box<T>),
    /// Nothing is to be built: existing kdbs have every kernel, or all key lists
    /// are empty and that is allowed.
    NothingToDo(Vec<ExistingCount>),
}

/// Chooses a toolchain for each target, and sets their indices in the requests.
fn choose(
    toolchains: &mut Toolchains<'_>,
    requests: &mut [TargetRequest],
) -> Result<Vec<Toolchain>> {
    let mut languages: BTreeMap<&TargetId, BTreeSet<Language>> = BTreeMap::new();
    for request in &*requests {
        let used = request.keys.iter().map(|(key, _)| key.language);
        languages.entry(request.target.id()).or_default().extend(used);
    }
    let mut chosen: Vec<Toolchain> = Vec::new();
    let mut indices: BTreeMap<TargetId, ToolchainId> = BTreeMap::new();
    for (id, languages) in &languages {
        let toolchain = toolchains.choose(id, languages)?;
        let known = chosen.iter().position(|known| known.is(&toolchain));
        let index = known.unwrap_or_else(|| {
            chosen.push(toolchain);
            chosen.len() - 1
        });
        indices.insert((*id).clone(), ToolchainId(index));
    }
    for request in requests {
        request.toolchain = indices[request.target.id()];
    }
    Ok(chosen)
}

/// The inputs with a toolchain for each target, from which a plan is made.
pub struct PlanInputs {
    pub(crate) requests: Vec<TargetRequest>,
    /// What else was read.
    pub inputs: Inputs,
    /// The answer of a library, if problems or plans were given.
    pub(crate) answer: Option<Box<dyn LibraryAnswer>>,
    pub(crate) toolchains: Vec<Toolchain>,
    /// The cache of objects.
    pub cache: Cache,
    /// The time for kernels that ask for it (`__DATE__`).
    pub(crate) clock: Clock,
}

/// Reads everything and chooses the toolchains. Without a `build`, no missing kernels are allowed.
/// `stated_license` is that of sources whose inputs name none.
///
/// # Errors
/// If the options or the inputs are wrong, no toolchain builds a target, or the
/// cache can't be opened.
pub fn gather(
    inputs: &InputOptions,
    compilers: &CompilerArgs,
    purpose: Purpose,
    build: Option<&BuildOptions>,
    stated_license: Option<&SourceLicense>,
    progress: &dyn Progress,
) -> Result<Preparation<PlanInputs>> {
    let clock = Clock::at(ENVIRONMENT.epoch()?);
    if inputs.target.is_empty() {
        return Err(error::usage(
            "failed to start: no target is given",
            "say which GPU to build for, as --target gfx90a@104; `gfxpack targets` lists them",
        ));
    }
    // What is wrong with these should be said before a library is asked.
    let targets = inputs.targets()?;
    if purpose == Purpose::Build {
        compilers.cache.dir.limit()?;
    }
    let cache = &compilers.cache;
    let answer = stock_library::ask(inputs, &cache.dir, build, &targets, progress)?;
    let allow_partial = build.is_some_and(|build| build.allow_partial);
    let (mut requests, mut inputs) =
        inputs::read(inputs, targets, answer.as_deref(), stated_license, allow_partial)?;
    if requests.is_empty() {
        return Ok(Preparation::NothingToDo(inputs.coverage));
    }
    let cache = Cache::open_for(cache, purpose)?;
    let toolchains = {
        let search = compilers.toolchain.search();
        let mut found = cache.toolchains(&search, progress.cancel())?;
        let chosen = choose(&mut found, &mut requests)?;
        inputs.warnings.extend(found.unusable());
        chosen
    };
    if purpose == Purpose::Build {
        cache.digests.save();
    }
    inputs.warnings.extend(cache.warning.clone());
    Ok(Preparation::ToDo(Box::new(PlanInputs {
        requests,
        inputs,
        answer,
        toolchains,
        cache,
        clock,
    })))
}

impl PlanInputs {
    /// Makes the plan, and returns the library's answer with it.
    ///
    /// # Errors
    /// If the requests contradict each other.
    pub fn plan(self) -> Result<(Prepared, Option<Box<dyn LibraryAnswer>>)> {
        let Self { requests, inputs, answer, toolchains, cache, clock } = self;
        let sources = inputs.sources.sources().to_vec();
        let plan = gfxpack_plan::plan::plan(
            toolchains.iter().map(for_plan).collect(),
            sources,
            &requests,
            &clock,
            &RayonWorkers,
        )?;
        Ok((Prepared { plan, inputs, toolchains, cache }, answer))
    }
}

/// The facts about a toolchain that a plan needs.
pub(crate) fn for_plan(toolchain: &Toolchain) -> PlanToolchain {
    PlanToolchain {
        identity: toolchain.identity(),
        digest: toolchain.digest,
        opencl_c: toolchain.opencl_c,
        assembly: toolchain.assembly,
        supplied: toolchain.supplied.clone(),
        facts: toolchain.facts(),
    }
}

/// Lets planning use the threads of rayon's current pool.
pub(crate) struct RayonWorkers;

impl Workers for RayonWorkers {
    fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
        // Passing items to a thread costs as much as a few items.
        items.par_iter().with_min_len(256).map(work).collect()
    }
}
