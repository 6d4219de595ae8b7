//! From the command line to a plan: toolchain probed, inputs read, sources
//! loaded, everything checked before anything is built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gfxpack_compile::{FileDigests, ObjectStore, Search, SourceSet, Toolchain};
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::plan::Plan;
use gfxpack_plan::{KernelKey, Language, Target, TargetId};

use crate::args::{CacheArgs, Inputs, ToolchainArgs};
use crate::environment::Environment;
use crate::fail;
use crate::inputs;

/// All that a build needs.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) sources: SourceSet,
    pub(crate) toolchain: Toolchain,
    pub(crate) store: ObjectStore,
    pub(crate) digests: FileDigests,
    pub(crate) cache_dir: PathBuf,
    /// What the inputs say of themselves.
    pub(crate) library: Library,
    /// By target: keys whose source was not found, where that is allowed.
    pub(crate) without_source: BTreeMap<Target, Vec<KernelKey>>,
    /// What the user should hear before anything runs.
    pub(crate) warnings: Vec<String>,
}

/// What the packages say of the kernels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Library {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) maintainer: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) homepage: Option<String>,
    /// By source file name; `None` where no manifest says.
    pub(crate) licenses: BTreeMap<String, Option<SourceLicense>>,
}

/// The cache directory, made if need be.
pub(crate) fn cache_dir(args: &CacheArgs, environment: &Environment) -> anyhow::Result<PathBuf> {
    let dir =
        args.cache_dir.clone().or_else(|| environment.cache_dir.clone()).ok_or_else(|| {
            fail::usage(
                "failed to find a cache directory: neither HOME nor XDG_CACHE_HOME is set",
                "give one with --cache-dir",
            )
        })?;
    std::fs::create_dir_all(&dir).map_err(fail::io("create", &dir))?;
    std::path::absolute(&dir).map_err(fail::io("find", &dir))
}

/// Finds and probes the toolchain.
pub(crate) fn toolchain(
    args: &ToolchainArgs,
    environment: &Environment,
    digests: &FileDigests,
    scratch: &Path,
) -> anyhow::Result<Toolchain> {
    let search = Search {
        hipcc: args.hipcc.clone(),
        clang: args.clang.clone(),
        device_libs: args.device_libs.clone(),
        rocm_path: args.rocm_path.clone(),
        environment: environment.for_compilers(args.rocm_path.as_deref()),
    };
    Ok(Toolchain::probe(&search, digests, scratch)?)
}

/// Reads everything and makes the plan.
pub(crate) fn prepare(
    inputs: &Inputs,
    toolchain_args: &ToolchainArgs,
    cache: &CacheArgs,
    environment: &Environment,
    allow_partial: bool,
) -> anyhow::Result<Prepared> {
    if inputs.target.is_empty() {
        return Err(fail::usage(
            "failed to start: no target is given",
            "say which GPU to build for, as --target gfx90a@104; `gfxpack targets` lists them",
        ));
    }
    let read = inputs::read(inputs, allow_partial)?;
    let cache_dir = cache_dir(cache, environment)?;
    let digests = FileDigests::open(&cache_dir.join("file-digests.json"));
    let toolchain = toolchain(toolchain_args, environment, &digests, &cache_dir)?;
    digests.save();
    let mut languages: BTreeMap<&TargetId, BTreeSet<Language>> = BTreeMap::new();
    for request in &read.requests {
        let used = request.keys.iter().map(|(key, _)| key.language);
        languages.entry(request.target.id()).or_default().extend(used);
    }
    for (id, languages) in &languages {
        toolchain.check_buildable(id, languages)?;
    }
    let sources = read.sources.sources().to_vec();
    let plan = gfxpack_plan::plan::plan(toolchain.for_plan(), sources, &read.requests)?;
    Ok(Prepared {
        plan,
        sources: read.sources,
        toolchain,
        store: ObjectStore::open(&cache_dir)?,
        digests,
        cache_dir,
        library: read.library,
        without_source: read.without_source,
        warnings: read.warnings,
    })
}
