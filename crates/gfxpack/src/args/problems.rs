//! Arguments of `problems`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use gfxpack_miopen::{DataType, Directions, Layout, MAX_SIZE};

use super::parsers::{Choice, one_of};

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
    /// Only these operations, repeatable or with commas
    #[arg(long, value_parser = one_of(&OPERATIONS), value_delimiter = ',', requires = "names")]
    pub(crate) operation: Vec<&'static str>,
    /// Height and width of a network's input, in place of its own
    #[arg(long, value_name = "HxW", value_parser = parse_size, requires = "names")]
    pub(crate) size: Option<[u64; 2]>,
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

/// Operations, by MIOpenDriver's names.
const OPERATIONS: [Choice<&str>; 5] = [
    ("conv", "", "conv"),
    ("bnorm", "Batch normalization", "bnorm"),
    ("pool", "", "pool"),
    ("activ", "Activation functions", "activ"),
    ("softmax", "", "softmax"),
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

    /// The operations that were given.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.operation.iter().map(|&name| name.to_owned()).collect()
    }
}

fn parse_size(text: &str) -> Result<[u64; 2], String> {
    let number = |text: &str| text.parse().ok().filter(|size| (1..=MAX_SIZE).contains(size));
    let pair =
        text.split_once('x').and_then(|(height, width)| Some([number(height)?, number(width)?]));
    pair.ok_or_else(|| "a height and a width are expected, as 224x224".to_owned())
}
