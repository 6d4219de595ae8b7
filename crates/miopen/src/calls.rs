//! The calls of MIOpen that networks consist of, and their command lines.

use crate::problem::{Convolution, DataType, Directions, Layout, Problem, ProblemError};

/// A call. Sizes are of one image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Convolution(Filter),
    BatchNorm(Shape),
    Pool(Pool),
    Activation(Shape, Activation),
    /// Over this many values.
    Softmax(u64),
}

/// A convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) input: Shape,
    pub(crate) out_channels: u64,
    /// Height and width, here and below.
    pub(crate) size: [u64; 2],
    pub(crate) pad: [u64; 2],
    pub(crate) stride: [u64; 2],
    pub(crate) dilation: u64,
    pub(crate) groups: u64,
    pub(crate) transposed: bool,
}

/// A pooling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) input: Shape,
    pub(crate) kind: PoolKind,
    pub(crate) size: [u64; 2],
    pub(crate) pad: [u64; 2],
    pub(crate) stride: [u64; 2],
}

/// What a pooling computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolKind {
    Max,
    /// The average including the padding.
    AverageWithPadding,
}

/// A function of each element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Activation {
    Relu,
    /// Cut off at 6.
    Relu6,
    /// Negative values are multiplied by this.
    Leaky(f32),
    Sigmoid,
}

/// Sizes of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) channels: u64,
    /// Height and width.
    pub(crate) size: [u64; 2],
}

/// One way of running calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) batch: u64,
    pub(crate) data_type: DataType,
    pub(crate) layout: Layout,
    pub(crate) directions: Directions,
}

impl Call {
    /// MIOpenDriver's name of the call, without type.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Self::Convolution(_) => "conv",
            Self::BatchNorm(_) => "bnorm",
            Self::Pool(_) => "pool",
            Self::Activation(..) => "activ",
            Self::Softmax(_) => "softmax",
        }
    }
}

impl Run {
    /// The problems of a call.
    ///
    /// # Errors
    /// [`ProblemError`] if a convolution has sizes that MIOpen does not support.
    pub(crate) fn problems(self, call: &Call) -> Result<Vec<Problem>, ProblemError> {
        match call {
            Call::Convolution(filter) => {
                let convolution = self.convolution(filter);
                convolution.check()?;
                Ok(vec![Problem::Convolution(convolution)])
            }
            other => self.lines(other).iter().map(|line| line.parse()).collect(),
        }
    }

    fn convolution(self, filter: &Filter) -> Convolution {
        let axes = |[height, width]: [u64; 2], depth| [depth, height, width];
        Convolution {
            data_type: self.data_type,
            spatial_dims: 2,
            batch: self.batch,
            in_channels: filter.input.channels,
            input: axes(filter.input.size, 1),
            out_channels: filter.out_channels,
            filter: axes(filter.size, 1),
            pad: axes(filter.pad, 0),
            stride: axes(filter.stride, 1),
            dilation: [1, filter.dilation, filter.dilation],
            groups: filter.groups,
            transposed: filter.transposed,
            output_pad: [0; 3],
            in_layout: self.layout,
            filter_layout: self.layout,
            out_layout: self.layout,
            // Frameworks add biases themselves.
            bias: false,
            directions: self.directions,
        }
    }

    /// The lines of calls other than convolutions, if MIOpen computes them: for fp32 and fp16
    /// tensors in NCHW.
    fn lines(self, call: &Call) -> Vec<String> {
        let suffix = match (self.data_type, self.layout) {
            (DataType::Fp32, Layout::ChannelsFirst) => "",
            (DataType::Fp16, Layout::ChannelsFirst) => "fp16",
            _ => return Vec::new(),
        };
        let sizes = |Shape { channels, size: [height, width] }: Shape| {
            format!("-n {} -c {channels} -H {height} -W {width}", self.batch)
        };
        // For most operations 0 is both directions, 1 forward and 2 backward.
        let Directions { forward, backward_data, backward_weights } = self.directions;
        let backward = backward_data || backward_weights;
        let way = match (forward, backward) {
            (true, true) => 0,
            (true, false) => 1,
            _ => 2,
        };
        match call {
            Call::Convolution(_) => Vec::new(),
            Call::BatchNorm(shape) => {
                // Scales and statistics of fp16 tensors are fp32.
                let suffix = if suffix == "fp16" { "fp16fp32" } else { "" };
                let line = |way: &str| format!("bnorm{suffix} {} -m 1 {way}", sizes(*shape));
                match (forward, backward) {
                    (true, false) => vec![line("--forw 2 -b 0 -r 1")],
                    (true, true) => {
                        vec![line("--forw 1 -b 0 -s 1 -r 1"), line("--forw 0 -b 1 -s 1")]
                    }
                    _ => vec![line("--forw 0 -b 1 -s 1")],
                }
            }
            Call::Pool(pool) => vec![self.pool(pool, suffix, way)],
            Call::Activation(shape, activation) => {
                let mode = match activation {
                    Activation::Sigmoid => "-m 1".to_owned(),
                    Activation::Relu => "-m 3".to_owned(),
                    Activation::Relu6 => "-m 7 -A 6".to_owned(),
                    Activation::Leaky(slope) => format!("-m 8 -A {slope}"),
                };
                vec![format!("activ{suffix} {} {mode} -F {way}", sizes(*shape))]
            }
            Call::Softmax(values) => {
                let shape = Shape { channels: *values, size: [1, 1] };
                vec![format!("softmax{suffix} {} -F {way}", sizes(shape))]
            }
        }
    }

    fn pool(self, pool: &Pool, suffix: &str, way: u8) -> String {
        let Pool { input: Shape { channels, size: [height, width] }, .. } = pool;
        let mode = match pool.kind {
            PoolKind::Max => "max",
            // Without padding, both are the same.
            PoolKind::AverageWithPadding if pool.pad != [0, 0] => "avg_in",
            PoolKind::AverageWithPadding => "avg",
        };
        let ([y, x], [p, q], [v, u]) = (pool.size, pool.pad, pool.stride);
        format!(
            "pool{suffix} -W {}x{channels}x{height}x{width},NCHW -y {y} -x {x} -p {p} -q {q} \
             -v {v} -u {u} -m {mode} -F {way}",
            self.batch
        )
    }
}

impl Filter {
    /// Height and width of the output; `None` if the filter does not fit.
    pub(crate) fn output(&self) -> Option<[u64; 2]> {
        let mut output = [0; 2];
        for (axis, output) in output.iter_mut().enumerate() {
            let covered = self.dilation * (self.size[axis] - 1) + 1;
            let (input, pad, stride) =
                (self.input.size[axis], 2 * self.pad[axis], self.stride[axis]);
            *output = if self.transposed {
                (stride * (input - 1) + covered).checked_sub(pad)?
            } else {
                (input + pad).checked_sub(covered)? / stride + 1
            };
        }
        Some(output)
    }
}

impl Pool {
    /// Height and width of the output, rounded up or down.
    pub(crate) fn output(&self, up: bool) -> Option<[u64; 2]> {
        let mut output = [0; 2];
        for (axis, output) in output.iter_mut().enumerate() {
            let room = (self.input.size[axis] + 2 * self.pad[axis]).checked_sub(self.size[axis])?;
            let stride = self.stride[axis];
            *output = if up { room.div_ceil(stride) } else { room / stride } + 1;
        }
        Some(output)
    }
}
