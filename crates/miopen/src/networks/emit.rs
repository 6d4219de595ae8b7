//! The lines of a network's steps.

use std::collections::BTreeSet;

use super::walk::{Activation, Call, Filter, Pool, Shape, Step};
use super::{NetworkError, Selection};
use crate::problem::{Convolution, DataType, Directions, Layout, Problem};

/// One way of running a network.
#[derive(Clone, Copy)]
struct Run {
    batch: u64,
    data_type: DataType,
    layout: Layout,
    directions: Directions,
}

/// The problems of all steps, in every way that was selected.
pub(super) fn problems(
    network: &str,
    steps: &[Step],
    selection: &Selection,
) -> Result<BTreeSet<Problem>, NetworkError> {
    let directions = selection.directions;
    let wanted = |name: &str| {
        selection.operations.is_empty() || selection.operations.iter().any(|one| one == name)
    };
    let mut problems = BTreeSet::new();
    for &batch in &selection.batches {
        for &data_type in &selection.data_types {
            for &layout in &selection.layouts {
                let run = Run { batch, data_type, layout, directions };
                for Step { call, training } in steps {
                    if (*training && directions == Directions::FORWARD) || !wanted(call.operation())
                    {
                        continue;
                    }
                    let found = run.problems(call).map_err(|error| NetworkError::Layer {
                        network: network.to_owned(),
                        layer: format!("{call:?}"),
                        what: error.to_string(),
                    })?;
                    problems.extend(found);
                }
            }
        }
    }
    Ok(problems)
}

impl Call {
    /// MIOpenDriver's name of it, without type.
    fn operation(&self) -> &'static str {
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
    fn problems(self, call: &Call) -> Result<Vec<Problem>, crate::problem::ProblemError> {
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

    /// Lines of anything but convolutions, as far as MIOpen computes it: for
    /// tensors of fp32 and fp16 that are NCHW.
    fn lines(self, call: &Call) -> Vec<String> {
        let suffix = match (self.data_type, self.layout) {
            (DataType::Fp32, Layout::ChannelsFirst) => "",
            (DataType::Fp16, Layout::ChannelsFirst) => "fp16",
            _ => return Vec::new(),
        };
        let sizes = |Shape { channels, size: [height, width] }: Shape| {
            format!("-n {} -c {channels} -H {height} -W {width}", self.batch)
        };
        // Of most operations 0 is both directions, 1 forward and 2 backward.
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
                    (true, false) => vec![line("--forw 2 -b 0")],
                    (true, true) => {
                        vec![line("--forw 1 -b 0 -s 1 -r 1"), line("--forw 0 -b 1 -s 1")]
                    }
                    _ => vec![line("--forw 0 -b 1 -s 1")],
                }
            }
            Call::Pool(pool) => vec![self.pool(pool, suffix, way)],
            Call::Activation(shape, activation) => {
                let mode = match activation {
                    Activation::Sigmoid => "-m 1",
                    Activation::Relu => "-m 3",
                    Activation::Relu6 => "-m 7 -A 6",
                    Activation::Leaky => "-m 8 -A 0.1",
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
        let mode = match (pool.average, pool.pad) {
            (false, _) => "max",
            (true, [0, 0]) => "avg",
            // The padding counts.
            (true, _) => "avg_in",
        };
        let ([y, x], [p, q], [v, u]) = (pool.size, pool.pad, pool.stride);
        format!(
            "pool{suffix} -W {}x{channels}x{height}x{width},NCHW -y {y} -x {x} -p {p} -q {q} \
             -v {v} -u {u} -m {mode} -F {way}",
            self.batch
        )
    }
}
