//! Problems, and the library that is asked which kernels they want.

use std::path::PathBuf;

use clap::Args;
use gfxpack_miopen::{LibrarySource, Uses};

use super::parsers::{parse_miopen, parsed};

/// Which kernels a build wants, said by what programs compute.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub struct ProblemOptions {
    /// Problems: MIOpen is asked which kernels they need
    ///
    /// A list or log with MIOpenDriver's commands, or a performance or find
    /// database; - reads stdin; repeatable.
    #[arg(long, value_name = "FILE")]
    pub problems: Vec<PathBuf>,
    /// Fail if a line of a list or log can't be read, in place of a warning
    #[arg(long, hide_short_help = true)]
    pub strict: bool,
    /// The libMIOpen to ask.
    #[command(flatten)]
    pub library: LibraryOptions,
    /// The rocFFT to ask in its place.
    #[command(flatten)]
    pub rocfft: RocfftOptions,
}

/// The rocFFT to ask in place of MIOpen, and for what.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "rocFFT")]
pub struct RocfftOptions {
    /// Plans of rocFFT, one a line, as `c2c sp ip 1024x1024 batch 8` or as
    /// rocfft-bench's options; rocFFT is asked which kernels they need. - reads
    /// stdin; repeatable
    #[arg(long, value_name = "FILE", conflicts_with_all = ["problems", "miopen", "miopen_db", "uses"])]
    pub plans: Vec<PathBuf>,
    /// The librocfft to ask: a file, a directory with one, debian:sid, or
    /// lock:FILE [default: the installed one]
    #[arg(long, value_name = "LIBRARY", requires = "plans")]
    pub rocfft: Option<LibrarySource>,
}

/// The libMIOpen to ask, and how.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "MIOpen")]
pub struct LibraryOptions {
    /// The libMIOpen to ask [default: the installed one]
    ///
    /// A file, a directory with one, `torch` for the one that PyTorch brings
    /// in the Python environment that is active, debian:sid or
    /// debian:experimental, or lock:FILE.
    #[arg(long, value_name = "LIBRARY", value_parser = parse_miopen)]
    pub miopen: Option<LibrarySource>,
    /// A directory of performance and find databases; repeatable: MIOpen is
    /// asked once without databases, and once with each of these directories
    /// [default: those of the library's packages]
    #[arg(long, value_name = "DIR")]
    pub miopen_db: Vec<PathBuf>,
    /// Debian's archive [default: GFXPACK_DEBIAN_MIRROR, or the one that apt uses]
    #[arg(long, value_name = "URL")]
    pub debian_mirror: Option<String>,
    /// Which kernels: `search`, of all solvers that apply; `hit`, of the solver
    /// that the find database names; `immediate`, of the one that immediate
    /// mode takes. With commas: search,hit,immediate [default: all]
    #[arg(long, value_name = "USES", value_parser = parsed::<Uses>)]
    pub uses: Option<Uses>,
}
