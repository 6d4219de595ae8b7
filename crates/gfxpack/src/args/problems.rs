//! Arguments of `problems`, `ask` and `miopen`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use gfxpack_miopen::{DataType, Directions, Layout, MAX_SIZE};
use gfxpack_pipeline::options::{
    CacheDir, Choice, LibraryOptions, ProblemOptions, TargetList, one_of, parse_targets,
};

#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct ProblemsCommand {
    /// Networks by name
    #[arg(value_name = "NETWORK", group = "what")]
    pub(crate) names: Vec<String>,
    /// List the networks that are known, and where their layers are taken from
    #[arg(long, group = "what", conflicts_with_all = ["names", "problems"])]
    pub(crate) list: bool,
    /// Problems as MIOpen logs them and people list them: any text with
    /// MIOpenDriver's commands, and performance and find databases; packed by
    /// gzip, zstd or xz too; `-` is the standard input; repeatable
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) problems: Vec<PathBuf>,
    /// Fail if a line of these can't be read, in place of a warning
    #[arg(long, requires = "problems")]
    pub(crate) strict: bool,
    /// Batch size: images at a time; repeatable or with commas
    #[arg(
        long, value_name = "N", value_delimiter = ',', default_value = "1", requires = "names",
        value_parser = clap::value_parser!(u64).range(1..=MAX_SIZE)
    )]
    pub(crate) batch: Vec<u64>,
    /// Data types of the tensors, repeatable or with commas
    #[arg(long, value_parser = one_of(&TYPES), value_name = "TYPE", value_delimiter = ',', default_value = "fp32", requires = "names")]
    pub(crate) r#type: Vec<DataType>,
    /// Layouts of the tensors, repeatable or with commas
    #[arg(long, value_parser = one_of(&LAYOUTS), value_delimiter = ',', default_value = "nchw", requires = "names")]
    pub(crate) layout: Vec<Layout>,
    /// Directions, repeatable or with commas
    #[arg(long, value_parser = one_of(&DIRECTIONS), value_delimiter = ',', default_value = "forward", requires = "names")]
    pub(crate) direction: Vec<Directions>,
    /// A program that uses PyTorch, and its arguments, after `--`: what it would
    /// hand to MIOpen is recorded. It needs no GPU, and computes nothing. Its
    /// output is passed on, and its exit code is this command's
    #[arg(
        last = true, value_name = "PROGRAM", group = "what",
        conflicts_with_all = ["names", "list", "problems"]
    )]
    pub(crate) command: Vec<OsString>,
    /// Have the program compute, on the CPU if there is no GPU; for programs
    /// that look at values
    #[arg(long, requires = "command")]
    pub(crate) compute: bool,
    /// Where to write the lines [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

const TYPES: [Choice<DataType>; 3] =
    [("fp32", "", DataType::Fp32), ("fp16", "", DataType::Fp16), ("bf16", "", DataType::Bf16)];

const LAYOUTS: [Choice<Layout>; 2] =
    [("nchw", "", Layout::ChannelsFirst), ("nhwc", "", Layout::ChannelsLast)];

const NO_DIRECTION: Directions =
    Directions { forward: false, backward_data: false, backward_weights: false };

const DIRECTIONS: [Choice<Directions>; 4] = [
    ("forward", "The output alone: inference", Directions { forward: true, ..NO_DIRECTION }),
    (
        "training",
        "Output and gradients",
        Directions { forward: true, backward_data: true, backward_weights: true },
    ),
    (
        "b",
        "The gradient of the input (backward data)",
        Directions { backward_data: true, ..NO_DIRECTION },
    ),
    (
        "w",
        "The gradient of the weights (backward weights)",
        Directions { backward_weights: true, ..NO_DIRECTION },
    ),
];

impl ProblemsCommand {
    /// All directions that were given, as one value.
    pub(crate) fn directions(&self) -> Directions {
        self.direction.iter().fold(NO_DIRECTION, |all, one| Directions {
            forward: all.forward || one.forward,
            backward_data: all.backward_data || one.backward_data,
            backward_weights: all.backward_weights || one.backward_weights,
        })
    }
}

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
