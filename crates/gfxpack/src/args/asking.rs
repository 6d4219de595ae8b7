//! Arguments: problems, and the libMIOpen that is asked which kernels they want.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use gfxpack_miopen::{LibrarySource, Uses};
use gfxpack_model::Error;

use super::parsers::parse_miopen;
use super::{CacheDir, TargetList, parse_targets};

/// Which kernels a build wants, said by what programs compute.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Input")]
pub(crate) struct ProblemArgs {
    /// Problems: MIOpen is asked which kernels they need
    ///
    /// A list or log with MIOpenDriver's commands, or a performance or find
    /// database; - reads stdin; repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) problems: Vec<PathBuf>,
    /// Fail if a line of a list or log can't be read, in place of a warning
    #[arg(long, hide_short_help = true)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
    #[command(flatten)]
    pub(crate) rocfft: RocfftArgs,
}

/// The rocFFT to ask in place of MIOpen, and for what.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "rocFFT")]
pub(crate) struct RocfftArgs {
    /// Plans of rocFFT, one a line, as `c2c sp ip 1024x1024 batch 8` or as
    /// rocfft-bench's options; rocFFT is asked which kernels they need. - reads
    /// stdin; repeatable
    #[arg(long, value_name = "FILE", conflicts_with_all = ["problems", "miopen", "miopen_db", "uses"])]
    pub(crate) plans: Vec<PathBuf>,
    /// The librocfft to ask: a file, a directory with one, debian:sid, or
    /// lock:FILE [default: the installed one]
    #[arg(long, value_name = "LIBRARY", requires = "plans")]
    pub(crate) rocfft: Option<LibrarySource>,
}

/// `miopen`: the libMIOpen that would be asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct MiopenCommand {
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
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

/// The libMIOpen to ask, and how.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "MIOpen")]
pub(crate) struct LibraryArgs {
    /// The libMIOpen to ask [default: the installed one]
    ///
    /// A file, a directory with one, `torch` for the one that PyTorch brings
    /// in the Python environment that is active, debian:sid or
    /// debian:experimental, or lock:FILE.
    #[arg(long, value_name = "LIBRARY", value_parser = parse_miopen)]
    pub(crate) miopen: Option<LibrarySource>,
    /// A directory of performance and find databases; repeatable: MIOpen is
    /// asked once without databases, and once with each of these directories
    /// [default: those of the library's packages]
    #[arg(long, value_name = "DIR")]
    pub(crate) miopen_db: Vec<PathBuf>,
    /// Debian's archive [default: GFXPACK_DEBIAN_MIRROR, or the one that apt uses]
    #[arg(long, value_name = "URL")]
    pub(crate) debian_mirror: Option<String>,
    /// Which kernels: `search`, of all solvers that apply; `hit`, of the solver
    /// that the find database names; `immediate`, of the one that immediate
    /// mode takes. With commas: search,hit,immediate [default: all]
    #[arg(long, value_name = "USES", value_parser = parse_uses)]
    pub(crate) uses: Option<Uses>,
}

fn parse_uses(text: &str) -> Result<Uses, String> {
    text.parse()
        .map_err(|error: Error| format!("{error}\nhint: {}", error.hint().unwrap_or_default()))
}

/// `ask`: the keys that problems want.
#[derive(Debug, ClapArgs)]
pub(crate) struct Ask {
    #[command(flatten)]
    pub(crate) asking: ProblemArgs,
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
