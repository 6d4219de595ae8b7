//! Arguments of `ask` and `miopen`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use gfxpack_pipeline::options::{
    CacheDir, LibraryOptions, ProblemOptions, TargetList, parse_targets,
};

/// `miopen`: the libMIOpen that would be asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct MiopenCommand {
    #[command(flatten)]
    pub(crate) library: LibraryOptions,
    /// Write the kernel sources that it carries into DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) sources: Option<PathBuf>,
    /// Write the versions and digests of its Debian packages to FILE, for
    /// --miopen lock:FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

/// `ask`: the keys that problems want.
#[derive(Debug, ClapArgs)]
pub(crate) struct Ask {
    #[command(flatten)]
    pub(crate) asking: ProblemOptions,
    /// GPU to ask for: a processor and its compute units, as gfx90a@104 or
    /// gfx906_60; or a processor alone, as gfx1030 or a product's name (MI210), for
    /// every number of them that is known; repeatable, or with commas
    #[arg(long, short, value_name = "TARGET", value_parser = parse_targets)]
    pub(crate) target: Vec<TargetList>,
    /// Where to write the keys, one JSON object a line [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write what rocFFT compiles for --plans into DIR, one source a kernel
    #[arg(long, value_name = "DIR", requires = "plans")]
    pub(crate) sources: Option<PathBuf>,
    /// Processes that ask at once [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) cache: CacheDir,
}
