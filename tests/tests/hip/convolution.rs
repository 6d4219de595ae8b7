//! References for the convolution kernels.

use anyhow::Result;

use super::launch::Launch;
use super::numbers::{Element, Random};
use super::options::Options;

/// The fields of the kernels' structure, in its order.
#[derive(Debug, Clone, Copy)]
struct Shape {
    batch: usize,
    /// Of the input: channels, height, width.
    input: [usize; 3],
    /// Output channels over all groups.
    outputs: usize,
    filter: [usize; 2],
    stride: [usize; 2],
    pad: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
}

/// Uneven in everything; a filter of one tap; depthwise, with padding wider
/// than some rows of taps reach; an output of a single pixel.
const SHAPES: &[Shape] = &[
    Shape {
        batch: 2,
        input: [4, 7, 5],
        outputs: 6,
        filter: [3, 2],
        stride: [2, 1],
        pad: [1, 2],
        dilation: [1, 2],
        groups: 2,
    },
    Shape {
        batch: 1,
        input: [3, 9, 8],
        outputs: 5,
        filter: [1, 1],
        stride: [1, 1],
        pad: [0, 0],
        dilation: [1, 1],
        groups: 1,
    },
    Shape {
        batch: 3,
        input: [3, 6, 7],
        outputs: 3,
        filter: [3, 3],
        stride: [1, 3],
        pad: [3, 1],
        dilation: [2, 1],
        groups: 3,
    },
    Shape {
        batch: 1,
        input: [2, 3, 4],
        outputs: 1,
        filter: [3, 4],
        stride: [1, 1],
        pad: [0, 0],
        dilation: [1, 1],
        groups: 1,
    },
];

/// A point where an input element, a tap of the filter and an output element meet.
struct Meeting {
    input: usize,
    filter: usize,
    output: usize,
}

impl Shape {
    fn output(&self) -> [usize; 3] {
        let size = |axis: usize| {
            let reach = self.dilation[axis] * (self.filter[axis] - 1) + 1;
            (self.input[axis + 1] + 2 * self.pad[axis] - reach) / self.stride[axis] + 1
        };
        [self.outputs, size(0), size(1)]
    }

    fn group_inputs(&self) -> usize {
        self.input[0] / self.groups
    }

    fn input_count(&self) -> usize {
        self.batch * self.input.iter().product::<usize>()
    }

    fn filter_count(&self) -> usize {
        self.outputs * self.group_inputs() * self.filter[0] * self.filter[1]
    }

    fn output_count(&self) -> usize {
        self.batch * self.output().iter().product::<usize>()
    }

    fn fields(&self) -> impl Iterator<Item = [u8; 4]> {
        let out = self.output();
        let fields = [
            self.batch,
            self.input[0],
            self.input[1],
            self.input[2],
            out[0],
            out[1],
            out[2],
            self.filter[0],
            self.filter[1],
            self.stride[0],
            self.stride[1],
            self.pad[0],
            self.pad[1],
            self.dilation[0],
            self.dilation[1],
            self.groups,
        ];
        fields.into_iter().map(|field| (field as i32).to_le_bytes())
    }

    /// Every product that the convolution is a sum of, with the elements'
    /// places in the layout.
    fn meetings(&self, nhwc: bool) -> Vec<Meeting> {
        let out = self.output();
        let mut meetings = Vec::new();
        let taps = [self.group_inputs(), self.filter[0], self.filter[1]];
        for n in 0..self.batch {
            for k in 0..self.outputs {
                for [row, column] in pairs([out[1], out[2]]) {
                    for c in 0..self.group_inputs() {
                        for [r, q] in pairs(self.filter) {
                            let channel = k / (self.outputs / self.groups) * taps[0] + c;
                            let place = |axis: usize, out: usize, tap: usize| {
                                let at = out * self.stride[axis] + tap * self.dilation[axis];
                                at.checked_sub(self.pad[axis])
                                    .filter(|&at| at < self.input[axis + 1])
                            };
                            let (Some(h), Some(w)) = (place(0, row, r), place(1, column, q)) else {
                                continue;
                            };
                            meetings.push(Meeting {
                                input: offset(nhwc, self.input, [n, channel, h, w]),
                                filter: offset(nhwc, taps, [k, c, r, q]),
                                output: offset(nhwc, out, [n, k, row, column]),
                            });
                        }
                    }
                }
            }
        }
        meetings
    }
}

/// All pairs below the limits, in row-major order.
fn pairs(limits: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    (0..limits[0]).flat_map(move |a| (0..limits[1]).map(move |b| [a, b]))
}

fn offset(nhwc: bool, [channels, height, width]: [usize; 3], [n, c, h, w]: [usize; 4]) -> usize {
    if nhwc {
        ((n * height + h) * width + w) * channels + c
    } else {
        ((n * channels + c) * height + h) * width + w
    }
}

/// What sums of up to `terms` products of values below 1 may be off in fp32.
fn slack(terms: usize) -> f64 {
    terms as f64 * 2f64.powi(-22)
}

pub(crate) fn direct(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let nhwc = options.number("LAYOUT")? == 1;
    let direction = options.number("DIRECTION")?;
    let group = options.group()?;
    let mut random = Random::new(1);
    let mut launches = Vec::new();
    for shape in SHAPES {
        let input = random.values(element, shape.input_count(), -1.0, 1.0);
        let filter = random.values(element, shape.filter_count(), -1.0, 1.0);
        let output = random.values(element, shape.output_count(), -1.0, 1.0);
        let meetings = shape.meetings(nhwc);
        let slack = slack(meetings.len());
        // Fewer threads than elements where one thread makes one element.
        let launch = |kernel, blocks| Launch::blocks(kernel, blocks, group);
        launches.push(match direction {
            0 => {
                let mut sums = vec![0.0; output.len()];
                for at in &meetings {
                    sums[at.output] += input[at.input] * filter[at.filter];
                }
                launch("conv_direct_forward", 1)
                    .input(element, &input)
                    .input(element, &filter)
                    .output(element, sums, slack)
            }
            1 => {
                let mut sums = vec![0.0; input.len()];
                for at in &meetings {
                    sums[at.input] += output[at.output] * filter[at.filter];
                }
                launch("conv_direct_backward_data", 1)
                    .input(element, &output)
                    .input(element, &filter)
                    .output(element, sums, slack)
            }
            _ => {
                let mut sums = vec![0.0; filter.len()];
                for at in &meetings {
                    sums[at.filter] += input[at.input] * output[at.output];
                }
                launch("conv_direct_backward_weights", filter.len())
                    .input(element, &input)
                    .input(element, &output)
                    .output(element, sums, slack)
            }
        });
        let last = launches.pop().map(|launch| launch.structure(shape.fields()));
        launches.extend(last);
    }
    Ok(launches)
}

/// The image of the batch that is unfolded.
const IMAGE: usize = 1;

pub(crate) fn im2col(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let nhwc = options.number("LAYOUT")? == 1;
    let group = options.group()?;
    let mut launches = Vec::new();
    for shape in SHAPES.iter().map(|&shape| Shape { batch: 2, groups: 1, ..shape }) {
        launches.extend(unfold_and_fold(element, nhwc, group, &shape));
    }
    Ok(launches)
}

fn unfold_and_fold(element: Element, nhwc: bool, group: u32, shape: &Shape) -> [Launch; 2] {
    let mut random = Random::new(2);
    let out = shape.output();
    let pixels = out[1] * out[2];
    let images = random.values(element, shape.input_count(), -1.0, 1.0);
    let lines = shape.input[0] * shape.filter[0] * shape.filter[1];
    let matrix = random.values(element, lines * pixels, -1.0, 1.0);
    // A convolution with one output channel meets every element of the matrix once.
    let single = Shape { outputs: 1, ..*shape };
    let per_image = shape.input_count() / shape.batch;
    let taps = [shape.input[0], shape.filter[0], shape.filter[1]];
    let mut unfolded = vec![0.0; matrix.len()];
    let mut folded = images.clone();
    folded[IMAGE * per_image..(IMAGE + 1) * per_image].fill(0.0);
    for at in single.meetings(nhwc).iter().filter(|at| at.input / per_image == IMAGE) {
        // Places in a filter and an output of one channel, as NCHW writes them.
        let line = if nhwc {
            at.filter % taps[0] * taps[1] * taps[2] + at.filter / taps[0]
        } else {
            at.filter
        };
        let place = line * pixels + at.output % pixels;
        unfolded[place] = images[at.input];
        folded[at.input] += matrix[place];
    }
    let finish = |launch: Launch| launch.structure(shape.fields()).i32(IMAGE);
    [
        finish(
            Launch::blocks("im2col", 2, group)
                .input(element, &images)
                .output(element, unfolded, 0.0),
        ),
        finish(Launch::blocks("col2im", 1, group).input(element, &matrix).update(
            element,
            &images,
            folded,
            slack(lines),
        )),
    ]
}
