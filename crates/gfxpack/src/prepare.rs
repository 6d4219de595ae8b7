//! From the command line to a plan: toolchain probed, inputs read, sources
//! loaded, everything checked before anything is built.

use std::collections::{BTreeMap, BTreeSet};

use gfxpack_compile::{Cancel, SourceSet, for_plan};
use gfxpack_model::{Language, TargetId, ToolchainId};
use gfxpack_plan::InputError;
use gfxpack_plan::clock::Clock;
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::manifest::Reader;
use gfxpack_plan::plan::Plan;
use gfxpack_toolchain::{Search, Toolchain, Toolchains};
use serde::{Deserialize, Serialize};

use crate::args::{CacheArgs, Inputs, ToolchainArgs};
use crate::asking::{self, Asked, AskedFacts};
use crate::cache::{self, Cache};
use crate::environment::Environment;
use crate::fail;
use crate::inputs::{self, LeftOut, Read};
use crate::missing_from::Share;
use crate::output::Output;
use crate::rayon_workers::RayonWorkers;
use crate::unbuildable::Unbuildable;

/// All that a build needs.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) sources: SourceSet,
    /// Those of the plan, in its order; none where nothing is compiled.
    pub(crate) toolchains: Vec<Toolchain>,
    pub(crate) cache: Cache,
    /// What the inputs say of themselves.
    pub(crate) library: Library,
    /// Sources that may not be compiled, with the reason.
    pub(crate) left_out: LeftOut,
    /// Of each target, what kdbs had already; empty where none were named.
    pub(crate) shares: Vec<Share>,
    /// By target: keys that can't be compiled, with the reason.
    pub(crate) unbuildable: Unbuildable,
    /// What is wrong with those keys, where it stands.
    pub(crate) problems: Vec<InputError>,
    /// What the user should hear before anything runs.
    pub(crate) warnings: Vec<String>,
    /// What libMIOpen asked for, where problems were given.
    pub(crate) asked: Option<Asked>,
}

/// What the packages say of the kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Library {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) maintainer: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) homepage: Option<String>,
    #[serde(default, skip_serializing_if = "Reader::is_miopen")]
    pub(crate) reader: Reader,
    #[serde(default, skip_serializing_if = "Licenses::is_empty")]
    pub(crate) licenses: Licenses,
    /// Which libMIOpen asked for the kernels, and for what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<AskedFacts>,
}

/// Licences by source file name; none where no manifest says.
pub(crate) type Licenses = BTreeMap<String, BTreeSet<SourceLicense>>;

/// Whether anything will be built, or only looked at: looking makes and
/// changes nothing outside the temporary directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Build,
    Look,
}

/// Where to look for toolchains.
pub(crate) fn search(args: &ToolchainArgs, environment: &Environment) -> Search {
    Search {
        hipcc: args.hipcc.clone(),
        clang: args.clang.clone(),
        device_libs: args.device_libs.clone(),
        rocm_path: args.rocm_path.clone(),
        preferred_hipcc: environment.hipcc.clone(),
        environment: environment.for_compilers(),
    }
}

/// Chooses a toolchain for each target, and sets the requests' indices.
fn choose(toolchains: &mut Toolchains<'_>, read: &mut Read) -> anyhow::Result<Vec<Toolchain>> {
    let mut languages: BTreeMap<&TargetId, BTreeSet<Language>> = BTreeMap::new();
    for request in &read.requests {
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
    for request in &mut read.requests {
        request.toolchain = indices[request.target.id()];
    }
    read.warnings.extend(toolchains.unusable());
    Ok(chosen)
}

/// The inputs with a toolchain for each target: what a plan is made of.
pub(crate) struct Gathered {
    pub(crate) read: Read,
    pub(crate) asked: Option<Asked>,
    pub(crate) toolchains: Vec<Toolchain>,
    pub(crate) cache: Cache,
    /// What kernels are told that ask for the time.
    pub(crate) clock: Clock,
}

/// What a plan is made from.
pub(crate) struct From<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) toolchain: &'a ToolchainArgs,
    pub(crate) cache: &'a CacheArgs,
    pub(crate) stated_license: Option<SourceLicense>,
    pub(crate) allow_partial: bool,
    pub(crate) purpose: Purpose,
    /// Processes that ask libMIOpen at once.
    pub(crate) jobs: usize,
}

/// Reads everything and chooses the toolchains; gives what kdbs had already
/// where nothing is left to build.
pub(crate) fn gather(
    from: &From<'_>,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<Result<Gathered, Vec<Share>>> {
    if from.inputs.target.is_empty() {
        return Err(fail::usage(
            "failed to start: no target is given",
            "say which GPU to build for, as --target gfx90a@104; `gfxpack targets` lists them",
        ));
    }
    let clock = Clock::at(environment.epoch()?);
    let asked = asked(from, environment, cancel, output)?;
    let stated = from.stated_license.as_ref();
    let mut read = inputs::read(from.inputs, asked.as_ref(), stated, from.allow_partial)?;
    if read.requests.is_empty() {
        return Ok(Err(read.shares));
    }
    let cache = open_cache(from.cache, environment, from.purpose)?;
    let search = search(from.toolchain, environment);
    let toolchains = {
        let mut found = cache.toolchains(&search, cancel)?;
        choose(&mut found, &mut read)?
    };
    if from.purpose == Purpose::Build {
        cache.digests.save();
    }
    read.warnings.extend(cache.warning.clone());
    Ok(Ok(Gathered { read, asked, toolchains, cache, clock }))
}

/// What libMIOpen asks for, where problems are given. That it fails on some is
/// said before hours of work, and ends the run unless that is allowed.
fn asked(
    from: &From<'_>,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<Option<Asked>> {
    let asking = &from.inputs.asking;
    if asking.problems.is_empty() {
        return Ok(None);
    }
    let targets = inputs::distinct(&from.inputs.target)?;
    let cache = cache::dir(&from.cache.dir, environment)?;
    let asked = asking::run(asking, &targets, from.jobs, &cache, environment, cancel, output)?;
    asking::report_failures(&asked, output);
    let hint = "each is named above; take them out of the list, or go on without their kernels by \
                --allow-partial";
    match asking::failed(&asked, hint) {
        Some(outcome) if !from.allow_partial => Err(outcome.into()),
        _ => Ok(Some(asked)),
    }
}

impl Gathered {
    /// Makes the plan.
    pub(crate) fn plan(self) -> anyhow::Result<Prepared> {
        let Self { read, asked, toolchains, cache, clock } = self;
        let sources = read.sources.sources().to_vec();
        let plan = gfxpack_plan::plan::plan(
            toolchains.iter().map(for_plan).collect(),
            sources,
            &read.requests,
            &clock,
            &RayonWorkers,
        )?;
        Ok(Prepared {
            plan,
            sources: read.sources,
            toolchains,
            cache,
            library: read.library,
            left_out: read.left_out,
            shares: read.shares,
            unbuildable: read.unbuildable,
            problems: read.problems,
            warnings: read.warnings,
            asked,
        })
    }
}

/// The cache, for a purpose.
pub(crate) fn open_cache(
    args: &CacheArgs,
    environment: &Environment,
    purpose: Purpose,
) -> anyhow::Result<Cache> {
    match purpose {
        Purpose::Build => Cache::open(args, environment),
        Purpose::Look => Cache::open_to_look(args, environment),
    }
}

/// Reads everything and makes the plan; gives what kdbs had already where
/// nothing is left to build.
pub(crate) fn prepare(
    from: &From<'_>,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<Result<Prepared, Vec<Share>>> {
    gather(from, environment, cancel, output)?
        .map(Gathered::plan)
        .map_or_else(|shares| Ok(Err(shares)), |prepared| prepared.map(Ok))
}
