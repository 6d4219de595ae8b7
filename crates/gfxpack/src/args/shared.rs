//! Groups of options that several commands take.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// The compilers, and the cache of what they make.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct CompilerArgs {
    #[command(flatten)]
    pub(crate) toolchain: ToolchainArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Toolchain")]
pub(crate) struct ToolchainArgs {
    /// A hipcc to use; gfxpack then searches for no other toolchain.
    /// Repeatable: each target is built by the first that can [default: what is
    /// found in HIPCC, /opt/rocm*, and PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) hipcc: Vec<PathBuf>,
    /// A clang to use without hipcc; gfxpack then searches for no other
    /// toolchain; repeatable
    #[arg(long, value_name = "PATH")]
    pub(crate) clang: Vec<PathBuf>,
    /// The directory of the device libraries' bitcode; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) device_libs: Vec<PathBuf>,
    /// The prefix of a ROCm installation to use, and no other; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) rocm_path: Vec<PathBuf>,
}

#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Cache")]
pub(crate) struct CacheArgs {
    #[command(flatten)]
    pub(crate) dir: CacheDir,
    /// Read every file again, even if its inode, size and times have not changed,
    /// and verify kdbs again even if they were verified before
    #[arg(long)]
    pub(crate) verify_all: bool,
}

#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct CacheDir {
    /// Where compiled objects are kept [default: the user's cache directory]
    #[arg(long, value_name = "DIR", help_heading = "Cache")]
    pub(crate) cache_dir: Option<PathBuf>,
}
