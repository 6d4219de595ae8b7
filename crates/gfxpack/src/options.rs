//! Where compilers and the cache are, as the command line and the environment say together.

use gfxpack_pipeline::options::{CacheArgs, CacheDir, CacheOptions, CompilerArgs, ToolchainArgs};
use gfxpack_toolchain::Search;

use crate::environment::Environment;
use crate::fail::Result;

/// Where to look for toolchains, and the cache.
pub(crate) fn compiler_options(
    args: &CompilerArgs,
    environment: &Environment,
) -> Result<(Search, CacheOptions)> {
    Ok((search(&args.toolchain, environment), cache_options(&args.cache, environment)?))
}

/// Where to look for toolchains.
pub(crate) fn search(args: &ToolchainArgs, environment: &Environment) -> Search {
    Search {
        hipcc: args.hipcc.clone(),
        clang: args.clang.clone(),
        device_libs: args.device_libs.clone(),
        rocm_path: args.rocm_path.clone(),
        preferred_hipcc: environment.hipcc.clone(),
        environment: environment.compiler.clone(),
    }
}

/// The cache, with its limit.
pub(crate) fn cache_options(args: &CacheArgs, environment: &Environment) -> Result<CacheOptions> {
    let (size, verify_all) = (environment.cache_size()?, args.verify_all);
    Ok(CacheOptions { size, verify_all, ..cache_dir(&args.dir, environment) })
}

/// The cache's directory without other options.
pub(crate) fn cache_dir(args: &CacheDir, environment: &Environment) -> CacheOptions {
    let dir = args.cache_dir.clone().or_else(|| environment.cache_dir.clone());
    CacheOptions { dir, size: None, verify_all: false }
}
