//! What a program asks MIOpen to compute: one convolution, or a call of
//! another primitive.

/// One call of a primitive, with the sizes that decide its kernels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Problem {
    /// A convolution.
    Convolution(Convolution),
    /// Any other primitive, as MIOpenDriver's arguments: `bnorm -n 32 …`,
    /// words separated by one blank.
    Driver(String),
}

/// A convolution. Sizes of three axes are depth, height, width; a
/// two-dimensional one has depth 1, padding 0, stride 1, dilation 1 there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Convolution {
    /// Element type of input and weights (int8 has int32 outputs).
    pub data_type: DataType,
    /// 2 or 3.
    pub spatial_dims: u8,
    /// Images.
    pub batch: u64,
    /// Channels of the input (of the output, where `transposed`).
    pub in_channels: u64,
    /// Depth, height, width of the input, in elements.
    pub input: [u64; 3],
    /// Channels of the output (of the input, where `transposed`).
    pub out_channels: u64,
    /// Depth, height, width of the filter.
    pub filter: [u64; 3],
    /// Zeros added on each side of each axis.
    pub pad: [u64; 3],
    /// Stride of each axis.
    pub stride: [u64; 3],
    /// Dilation of each axis.
    pub dilation: [u64; 3],
    /// Groups.
    pub groups: u64,
    /// Whether it is a transposed convolution (`-m trans`).
    pub transposed: bool,
    /// How the input lies in memory.
    pub in_layout: Layout,
    /// How the filter lies in memory.
    pub filter_layout: Layout,
    /// How the output lies in memory.
    pub out_layout: Layout,
    /// Whether a bias is added (`-b 1`).
    pub bias: bool,
    /// Which directions are computed.
    pub directions: Directions,
}

/// An element type that MIOpen convolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataType {
    /// 32-bit floating point (`conv`).
    Fp32,
    /// 16-bit floating point (`convfp16`).
    Fp16,
    /// bfloat16 (`convbfp16`).
    Bf16,
    /// 8-bit integers (`convint8`).
    Int8,
}

/// How a tensor lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Channels before the axes: NCHW, NCDHW.
    ChannelsFirst,
    /// Channels last: NHWC, NDHWC.
    ChannelsLast,
}

/// Directions of a convolution: MIOpenDriver's `-F`, bits 1, 2 and 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Directions {
    /// The output of an input (`F`).
    pub forward: bool,
    /// The gradient of the input (`B`).
    pub backward_data: bool,
    /// The gradient of the weights (`W`).
    pub backward_weights: bool,
}

impl Directions {
    /// All three: what training needs.
    pub const ALL: Self = Self { forward: true, backward_data: true, backward_weights: true };
    /// Inference.
    pub const FORWARD: Self = Self { forward: true, backward_data: false, backward_weights: false };
}
