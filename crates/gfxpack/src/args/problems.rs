//! The arguments of `problems`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use gfxpack_miopen::{DataType, Directions, Layout, MAX_SIZE};

#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct ProblemsCommand {
    /// Networks by name, and models in ONNX by file (MODEL.onnx)
    #[arg(value_name = "NETWORK|MODEL.onnx", group = "what")]
    pub(crate) names: Vec<String>,
    /// List the networks that are known, and where their layers are taken from
    #[arg(long, group = "what", conflicts_with_all = ["names", "problems"])]
    pub(crate) list: bool,
    /// Problems as MIOpen logs them and people list them: any text with
    /// MIOpenDriver's commands, and performance and find databases; packed by
    /// gzip, zstd or xz too; `-` is the standard input; repeatable
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) problems: Vec<PathBuf>,
    /// Batch size: images at a time; for a model, the value of the symbols in
    /// its inputs' first axis; repeatable or with commas [default: 1]
    #[arg(
        long, value_name = "N", value_delimiter = ',', requires = "names",
        value_parser = clap::value_parser!(u64).range(1..=MAX_SIZE)
    )]
    pub(crate) batch: Vec<u64>,
    /// Data types of the tensors, repeatable or with commas [default: fp32 for
    /// networks, a model's own for models]
    #[arg(long, value_name = "TYPE", value_delimiter = ',', requires = "names")]
    pub(crate) r#type: Vec<TypeArg>,
    /// Layouts of the tensors, repeatable or with commas
    #[arg(long, value_delimiter = ',', default_value = "nchw", requires = "names")]
    pub(crate) layout: Vec<TensorLayout>,
    /// Directions, repeatable or with commas
    #[arg(long, value_delimiter = ',', default_value = "forward", requires = "names")]
    pub(crate) direction: Vec<DirectionArg>,
    /// Only these operations, repeatable or with commas
    #[arg(long, value_delimiter = ',', requires = "names")]
    pub(crate) operation: Vec<OperationArg>,
    /// Height and width of a network's input, in place of its own
    #[arg(long, value_name = "HxW", value_parser = parse_size, requires = "names")]
    pub(crate) size: Option<[u64; 2]>,
    /// What a symbol in the shapes of a model's inputs stands for; `input[2]` is
    /// a size without name; repeatable
    #[arg(long, value_name = "NAME=N", value_parser = parse_symbol, requires = "names")]
    pub(crate) symbol: Vec<(String, u64)>,
    /// Where to write the lines [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypeArg {
    Fp32,
    Fp16,
    Bf16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TensorLayout {
    Nchw,
    Nhwc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionArg {
    /// The output alone: inference; also written f
    #[value(alias = "f")]
    Forward,
    /// Output and gradients
    Training,
    /// The gradient of the input (backward data)
    #[value(name = "b")]
    BackwardData,
    /// The gradient of the weights (backward weights)
    #[value(name = "w")]
    BackwardWeights,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OperationArg {
    Conv,
    /// Batch normalization
    Bnorm,
    Pool,
    /// Activation functions
    Activ,
    Softmax,
}

impl From<TypeArg> for DataType {
    fn from(arg: TypeArg) -> Self {
        match arg {
            TypeArg::Fp32 => Self::Fp32,
            TypeArg::Fp16 => Self::Fp16,
            TypeArg::Bf16 => Self::Bf16,
        }
    }
}

impl From<TensorLayout> for Layout {
    fn from(arg: TensorLayout) -> Self {
        match arg {
            TensorLayout::Nchw => Self::ChannelsFirst,
            TensorLayout::Nhwc => Self::ChannelsLast,
        }
    }
}

impl ProblemsCommand {
    /// The types of the numbers that were given.
    pub(crate) fn data_types(&self) -> Vec<DataType> {
        self.r#type.iter().map(|one| DataType::from(*one)).collect()
    }

    /// The layouts of tensors that were given.
    pub(crate) fn layouts(&self) -> Vec<Layout> {
        self.layout.iter().map(|one| Layout::from(*one)).collect()
    }

    /// All directions that were given.
    pub(crate) fn directions(&self) -> Directions {
        let has =
            |one| self.direction.contains(&one) || self.direction.contains(&DirectionArg::Training);
        Directions {
            forward: has(DirectionArg::Forward),
            backward_data: has(DirectionArg::BackwardData),
            backward_weights: has(DirectionArg::BackwardWeights),
        }
    }

    /// MIOpenDriver's names of the operations.
    pub(crate) fn operations(&self) -> Vec<String> {
        let name = |one: &OperationArg| match one {
            OperationArg::Conv => "conv",
            OperationArg::Bnorm => "bnorm",
            OperationArg::Pool => "pool",
            OperationArg::Activ => "activ",
            OperationArg::Softmax => "softmax",
        };
        self.operation.iter().map(|one| name(one).to_owned()).collect()
    }
}

fn parse_size(text: &str) -> Result<[u64; 2], String> {
    let number = |text: &str| text.parse().ok().filter(|size| (1..=MAX_SIZE).contains(size));
    let pair =
        text.split_once('x').and_then(|(height, width)| Some([number(height)?, number(width)?]));
    pair.ok_or_else(|| "a height and a width are expected, as 224x224".to_owned())
}

fn parse_symbol(text: &str) -> Result<(String, u64), String> {
    let pair = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let pair = pair.and_then(|(name, value)| {
        let value = value.parse().ok().filter(|size| (1..=MAX_SIZE).contains(size))?;
        Some((name.to_owned(), value))
    });
    pair.ok_or_else(|| "a name and a number are expected, as height=224".to_owned())
}
