//! A problem and its parts.

use std::fmt;

/// One call of a primitive, with the sizes that decide its kernels.
///
/// Its text is the canonical form of MIOpenDriver's arguments: `conv -n 32 -c 64 …`, with every
/// size written out. [`str::parse`] accepts all of MIOpenDriver's spellings, with the program's
/// name or without, and refuses problems that MIOpen could not compute.
///
/// ```
/// use gfxpack_miopen::Problem;
///
/// let problem: Problem = "./bin/MIOpenDriver conv -n 2 --in_channels 3 -F 1".parse()?;
/// assert_eq!(
///     problem.to_string(),
///     "conv -n 2 -c 3 -H 32 -W 32 -k 32 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1"
/// );
/// assert_eq!(problem.to_string().parse(), Ok(problem));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Channels of the input.
    pub in_channels: u64,
    /// Depth, height, width of the input, in elements.
    pub input: [u64; 3],
    /// Channels of the output.
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
    /// Elements added to the end of each axis of a transposed convolution's
    /// output; 0 for others.
    pub output_pad: [u64; 3],
    /// The memory layout of the input.
    pub in_layout: Layout,
    /// The memory layout of the filter.
    pub filter_layout: Layout,
    /// The memory layout of the output.
    pub out_layout: Layout,
    /// Whether a bias is added (`-b 1`).
    pub bias: bool,
    /// The directions to compute.
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
    /// 8-bit floating point (`convfp8`).
    Fp8,
}

/// The memory layout of a tensor.
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

impl Convolution {
    /// Lengths of the input: batch, channels, and its axes.
    pub fn input_lengths(&self) -> Vec<u64> {
        self.with_axes(self.batch, self.in_channels, self.input)
    }

    /// Lengths of the filter: K, C/groups and the axes; transposed C,
    /// K/groups and the axes.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetWeightTensorLengthsFromCmdLine` in
    /// driver/conv_driver.hpp.
    pub fn filter_lengths(&self) -> Vec<u64> {
        let (first, second) = if self.transposed {
            (self.in_channels, self.out_channels)
        } else {
            (self.out_channels, self.in_channels)
        };
        self.with_axes(first, second / self.groups.max(1), self.filter)
    }

    /// Lengths of the output: batch, channels, and its axes; `None` if a size is out of range.
    pub fn output_lengths(&self) -> Option<Vec<u64>> {
        Some(self.with_axes(self.batch, self.out_channels, self.output()?))
    }

    fn with_axes(&self, first: u64, second: u64, axes: [u64; 3]) -> Vec<u64> {
        let axes = if self.spatial_dims == 3 { &axes[..] } else { &axes[1..] };
        [&[first, second][..], axes].concat()
    }
}

impl DataType {
    /// All types.
    pub const ALL: [Self; 5] = [Self::Fp32, Self::Fp16, Self::Bf16, Self::Int8, Self::Fp8];

    /// The suffix of an operation's name in MIOpenDriver: nothing, `fp16`, `bfp16`, `int8`, `fp8`.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, driver/dm_conv*.cpp.
    pub fn driver_suffix(self) -> &'static str {
        match self {
            Self::Fp32 => "",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bfp16",
            Self::Int8 => "int8",
            Self::Fp8 => "fp8",
        }
    }

    /// Bytes of an element of input and filter.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Fp32 => 4,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Int8 | Self::Fp8 => 1,
        }
    }

    /// Bytes of an element of the output.
    pub fn output_bytes(self) -> u64 {
        match self {
            Self::Int8 => 4,
            other => other.bytes(),
        }
    }
}

impl Layout {
    /// Its name for this number of axes: `NCHW`, `NDHWC`.
    pub fn name(self, spatial_dims: u8) -> &'static str {
        match (self, spatial_dims) {
            (Self::ChannelsFirst, 3) => "NCDHW",
            (Self::ChannelsFirst, _) => "NCHW",
            (Self::ChannelsLast, 3) => "NDHWC",
            (Self::ChannelsLast, _) => "NHWC",
        }
    }
}

impl Directions {
    /// All three: what training needs.
    pub const ALL: Self = Self { forward: true, backward_data: true, backward_weights: true };
    /// Inference.
    pub const FORWARD: Self = Self { forward: true, backward_data: false, backward_weights: false };
    /// The gradient of the input alone.
    pub const BACKWARD_DATA: Self =
        Self { forward: false, backward_data: true, backward_weights: false };
    /// The gradient of the weights alone.
    pub const BACKWARD_WEIGHTS: Self =
        Self { forward: false, backward_data: false, backward_weights: true };

    /// The value of MIOpenDriver's `-F`: 0 for all.
    pub fn bits(self) -> u8 {
        match self {
            Self::ALL => 0,
            Self { forward, backward_data, backward_weights } => {
                u8::from(forward) | u8::from(backward_data) << 1 | u8::from(backward_weights) << 2
            }
        }
    }

    /// The directions for a value of `-F`; `None` for values above 7.
    pub fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            0 => Some(Self::ALL),
            1..=7 => Some(Self {
                forward: bits & 1 != 0,
                backward_data: bits & 2 != 0,
                backward_weights: bits & 4 != 0,
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Convolution(convolution) => convolution.fmt(f),
            Self::Driver(line) => f.write_str(line),
        }
    }
}

/// Options in the order in which MIOpen logs them.
///
/// Source: ROCm/MIOpen 2d1fd997a, `ConvArgsForMIOpenDriver` in
/// driver_arguments.cpp.
impl fmt::Display for Convolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let three = self.spatial_dims == 3;
        let axes = |f: &mut fmt::Formatter<'_>, names: [&str; 3], values: [u64; 3]| {
            let pairs = names.into_iter().zip(values).skip(usize::from(!three));
            pairs.into_iter().try_for_each(|(name, value)| write!(f, " {name} {value}"))
        };
        write!(f, "conv{}", self.data_type.driver_suffix())?;
        write!(f, " -n {} -c {}", self.batch, self.in_channels)?;
        axes(f, ["--in_d", "-H", "-W"], self.input)?;
        write!(f, " -k {}", self.out_channels)?;
        axes(f, ["--fil_d", "-y", "-x"], self.filter)?;
        axes(f, ["--pad_d", "-p", "-q"], self.pad)?;
        axes(f, ["--conv_stride_d", "-u", "-v"], self.stride)?;
        axes(f, ["--dilation_d", "-l", "-j"], self.dilation)?;
        if self.output_pad != [0; 3] {
            axes(f, ["--trans_output_pad_d", "-Y", "-X"], self.output_pad)?;
        }
        if three {
            f.write_str(" --spatial_dim 3")?;
        }
        for (option, layout) in [
            ("--in_layout", self.in_layout),
            ("--fil_layout", self.filter_layout),
            ("--out_layout", self.out_layout),
        ] {
            if layout != Layout::ChannelsFirst {
                write!(f, " {option} {}", layout.name(self.spatial_dims))?;
            }
        }
        let mode = if self.transposed { "trans" } else { "conv" };
        write!(f, " -m {mode} -g {}", self.groups)?;
        if self.bias {
            f.write_str(" -b 1")?;
        }
        write!(f, " -F {}", self.directions.bits())
    }
}
