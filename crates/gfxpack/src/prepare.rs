//! From the command line to a plan: toolchain probed, inputs read, sources
//! loaded, everything checked before anything is built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, FileDigests, ObjectStore, Search, SourceSet, Toolchain};
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::plan::Plan;
use gfxpack_plan::{InputError, KernelKey, Language, Target, TargetId};

use crate::args::{CacheArgs, Inputs, ToolchainArgs};
use crate::environment::Environment;
use crate::fail;
use crate::inputs;

/// All that a build needs.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) sources: SourceSet,
    /// Those of the plan, in its order.
    pub(crate) toolchains: Vec<Toolchain>,
    pub(crate) store: ObjectStore,
    pub(crate) digests: FileDigests,
    pub(crate) cache_dir: PathBuf,
    /// What the inputs say of themselves.
    pub(crate) library: Library,
    /// By target: keys that can't be compiled, with the reason.
    pub(crate) unbuildable: Unbuildable,
    /// What is wrong with those keys, where it stands.
    pub(crate) problems: Vec<InputError>,
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
    pub(crate) licenses: Licenses,
}

/// Licences by source file name; none where no manifest says.
pub(crate) type Licenses = BTreeMap<String, BTreeSet<SourceLicense>>;
/// Keys that can't be compiled, with the reason, by target.
pub(crate) type Unbuildable = BTreeMap<Target, Vec<(KernelKey, String)>>;

/// Whether anything will be built, or only looked at: looking makes and
/// changes nothing outside the temporary directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Build,
    Look,
}

/// The cache directory, which need not exist.
pub(crate) fn cache_dir(args: &CacheArgs, environment: &Environment) -> anyhow::Result<PathBuf> {
    let dir =
        args.cache_dir.clone().or_else(|| environment.cache_dir.clone()).ok_or_else(|| {
            fail::usage(
                "failed to find a cache directory: neither HOME nor XDG_CACHE_HOME is set",
                "give one with --cache-dir",
            )
        })?;
    std::path::absolute(&dir).map_err(fail::io("find", &dir))
}

/// Where a toolchain is looked for.
pub(crate) fn search(args: &ToolchainArgs, environment: &Environment) -> Search {
    Search {
        hipcc: args.hipcc.clone().or_else(|| environment.hipcc.clone()),
        clang: args.clang.clone(),
        device_libs: args.device_libs.clone(),
        rocm_path: args.rocm_path.clone(),
        environment: environment.for_compilers(),
    }
}

/// Finds and probes the toolchain.
pub(crate) fn toolchain(
    args: &ToolchainArgs,
    environment: &Environment,
    digests: &FileDigests,
    scratch: &Path,
    cancel: &Cancel,
) -> anyhow::Result<Toolchain> {
    let search = search(args, environment);
    Ok(Toolchain::probe(&search, digests, scratch, cancel)?)
}

/// Reads everything and makes the plan.
pub(crate) fn prepare(
    inputs: &Inputs,
    toolchain_args: &ToolchainArgs,
    cache: &CacheArgs,
    environment: &Environment,
    allow_partial: bool,
    purpose: Purpose,
    cancel: &Cancel,
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
    let toolchain = match purpose {
        Purpose::Build => {
            std::fs::create_dir_all(&cache_dir).map_err(fail::io("create", &cache_dir))?;
            let found = toolchain(toolchain_args, environment, &digests, &cache_dir, cancel)?;
            digests.save();
            found
        }
        Purpose::Look => {
            let scratch = tempfile::tempdir()?;
            toolchain(toolchain_args, environment, &digests, scratch.path(), cancel)?
        }
    };
    let mut languages: BTreeMap<&TargetId, BTreeSet<Language>> = BTreeMap::new();
    for request in &read.requests {
        let used = request.keys.iter().map(|(key, _)| key.language);
        languages.entry(request.target.id()).or_default().extend(used);
    }
    for (id, languages) in &languages {
        toolchain.check_buildable(id, languages)?;
    }
    let sources = read.sources.sources().to_vec();
    let plan = gfxpack_plan::plan::plan(vec![toolchain.for_plan()], sources, &read.requests)?;
    Ok(Prepared {
        plan,
        sources: read.sources,
        toolchains: vec![toolchain],
        store: match purpose {
            Purpose::Build => ObjectStore::open(&cache_dir)?,
            Purpose::Look => ObjectStore::open_to_look(&cache_dir),
        },
        digests,
        cache_dir,
        library: read.library,
        unbuildable: read.unbuildable,
        problems: read.problems,
        warnings: read.warnings,
    })
}
