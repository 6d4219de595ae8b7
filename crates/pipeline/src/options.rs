//! The options of a run, as the command line has them.

mod ask;
mod build;
mod package;
mod parsers;
mod remote;

use std::path::{Path, PathBuf};

use clap::Args;
use gfxpack_compile::FileDigests;
use gfxpack_toolchain::Search;

pub use ask::{LibraryOptions, ProblemOptions, RocfftOptions};
pub use build::{BLOBS, BuildOptions, InputOptions, MergeOptions, Via};
pub use package::{LAYOUTS, PackageKdbs, PackageOptions};
pub use parsers::{
    Choice, TargetList, checked, one_of, parse_age, parse_miopen, parse_size, parse_target,
    parse_targets, parse_template, parsed, whole_file,
};
pub use remote::{RemoteOptions, SharedCacheOptions};

use crate::environment::ENVIRONMENT;
use crate::error::{self, Result};

/// Whether objects will be built. If not, nothing outside the temporary directory
/// is made or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Objects will be built.
    Build,
    /// Nothing is built or kept.
    Look,
}

/// The compilers, and the cache of what they make.
#[derive(Debug, Clone, Args)]
pub struct CompilerArgs {
    /// The compilers.
    #[command(flatten)]
    pub toolchain: ToolchainArgs,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Which compilers are used.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Toolchain")]
pub struct ToolchainArgs {
    /// A hipcc to use; gfxpack then searches for no other toolchain.
    /// Repeatable: each target is built by the first that can [default: what is
    /// found in HIPCC, /opt/rocm*, and PATH]
    #[arg(long, value_name = "PATH")]
    pub hipcc: Vec<PathBuf>,
    /// A clang to use without hipcc; gfxpack then searches for no other
    /// toolchain; repeatable
    #[arg(long, value_name = "PATH")]
    pub clang: Vec<PathBuf>,
    /// The directory of the device libraries' bitcode; repeatable
    #[arg(long, value_name = "DIR")]
    pub device_libs: Vec<PathBuf>,
    /// The prefix of a ROCm installation to use, and no other; repeatable
    #[arg(long, value_name = "DIR")]
    pub rocm_path: Vec<PathBuf>,
}

impl ToolchainArgs {
    /// Where to look for toolchains.
    pub fn search(&self) -> Search {
        Search {
            hipcc: self.hipcc.clone(),
            clang: self.clang.clone(),
            device_libs: self.device_libs.clone(),
            rocm_path: self.rocm_path.clone(),
            preferred_hipcc: ENVIRONMENT.hipcc.clone(),
            environment: ENVIRONMENT.compiler.clone(),
        }
    }
}

/// The cache, and what of it is believed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cache")]
pub struct CacheArgs {
    /// Where it is.
    #[command(flatten)]
    pub dir: CacheDir,
    /// Read every file again, even if its inode, size and times have not changed,
    /// and verify kdbs again even if they were verified before
    #[arg(long)]
    pub verify_all: bool,
}

impl CacheArgs {
    /// The digests of files that are recorded in the cache's directory.
    pub fn file_digests(&self, dir: &Path) -> FileDigests {
        let file = dir.join("file-digests.json");
        if self.verify_all { FileDigests::open_anew(&file) } else { FileDigests::open(&file) }
    }
}

/// Where the cache is.
#[derive(Debug, Clone, Default, Args)]
pub struct CacheDir {
    /// Where compiled objects are kept [default: the user's cache directory]
    #[arg(long, value_name = "DIR", help_heading = "Cache")]
    pub cache_dir: Option<PathBuf>,
}

impl CacheDir {
    /// The directory, which need not exist, as an absolute path.
    ///
    /// # Errors
    /// If there is no directory.
    pub fn directory(&self) -> Result<PathBuf> {
        let dir = self.cache_dir.as_ref().or(ENVIRONMENT.cache_dir.as_ref());
        let dir = dir.ok_or_else(|| {
            error::usage(
                "failed to find a cache directory: neither HOME nor XDG_CACHE_HOME is set",
                "give one with --cache-dir",
            )
        })?;
        std::path::absolute(dir).map_err(error::io("find", dir))
    }

    /// Size to which the cache is reduced after a build, in bytes; no limit if `None`.
    ///
    /// # Errors
    /// If the environment says no size.
    pub fn limit(&self) -> Result<Option<u64>> {
        let Some(text) = &ENVIRONMENT.cache_size else { return Ok(None) };
        parse_size(text).map(Some).map_err(|_| {
            error::usage(
                format!("failed to read GFXPACK_CACHE_SIZE `{text}`"),
                "write a number with its unit, B, kB, MB, GB or TB: 20GB",
            )
        })
    }
}

/// The number of processes that is wanted, or else one for each processor.
pub fn processes(wanted: Option<u16>) -> usize {
    // As its affinity and the quota of its control group allow.
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    wanted.map_or_else(available, usize::from)
}
