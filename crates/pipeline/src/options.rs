//! The options of a run, as the command line has them.

mod ask;
mod build;
mod package;
mod parsers;
mod remote;

use std::path::{Path, PathBuf};

use clap::Args;
use gfxpack_compile::FileDigests;
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_toolchain::Search;

pub use ask::{LibraryOptions, ProblemOptions, RocfftOptions};
pub use build::{BLOBS, BuildOptions, InputOptions, MergeOptions, Via};
pub use package::{LAYOUTS, PackageKdbs, PackageOptions};
pub use parsers::{
    Choice, TargetList, checked, one_of, parse_miopen, parse_target, parse_targets, parse_template,
    whole_file,
};
pub use remote::{RemoteOptions, SharedCacheOptions};

use crate::error::{self, Result};

/// What a plan is made from.
#[derive(Debug, Clone)]
pub struct PrepareOptions<'a> {
    /// Kernels and targets.
    pub inputs: &'a InputOptions,
    /// Where toolchains are looked for.
    pub search: &'a Search,
    /// The cache of objects.
    pub cache: &'a CacheOptions,
    /// Whether the cache may be written.
    pub purpose: Purpose,
    /// Number of processes that ask a library at once; one for each processor if `None`.
    pub jobs: Option<u16>,
    /// Continue without kernels that cannot be built.
    pub allow_partial: bool,
    /// The licence of sources whose inputs name none.
    pub stated_license: Option<SourceLicense>,
}

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

/// The cache, and what of it is believed.
#[derive(Debug, Clone, Args)]
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

/// Where the cache is.
#[derive(Debug, Clone, Default, Args)]
pub struct CacheDir {
    /// Where compiled objects are kept [default: the user's cache directory]
    #[arg(long, value_name = "DIR", help_heading = "Cache")]
    pub cache_dir: Option<PathBuf>,
}

/// The cache of compiled objects.
#[derive(Debug, Clone, Default)]
pub struct CacheOptions {
    /// The directory, which need not exist; `None` if the environment names
    /// none.
    pub dir: Option<PathBuf>,
    /// Size to which it is reduced after a build, in bytes; no limit if `None`.
    pub size: Option<u64>,
    /// Hash every file again, whatever earlier runs recorded.
    pub verify_all: bool,
}

impl CacheOptions {
    /// The directory, as an absolute path.
    ///
    /// # Errors
    /// If there is no directory.
    pub fn directory(&self) -> Result<PathBuf> {
        let dir = self.dir.as_ref().ok_or_else(|| {
            error::usage(
                "failed to find a cache directory: neither HOME nor XDG_CACHE_HOME is set",
                "give one with --cache-dir",
            )
        })?;
        std::path::absolute(dir).map_err(error::io("find", dir))
    }

    /// The digests of files that are recorded in that directory.
    pub fn file_digests(&self, dir: &Path) -> FileDigests {
        let file = dir.join("file-digests.json");
        if self.verify_all { FileDigests::open_anew(&file) } else { FileDigests::open(&file) }
    }
}

/// The number of processes that is wanted, or else one for each processor.
pub fn processes(wanted: Option<u16>) -> usize {
    wanted.map_or_else(gfxpack_compile::default_jobs, usize::from)
}
