//! Convolutions, all computed from one list of products.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Random, close, equal};

/// A 2D convolution; pairs are height, then width.
#[derive(Debug, Clone, Copy)]
struct Shape {
    batch: i32,
    channels: i32,
    filters: i32,
    groups: i32,
    input: [i32; 2],
    filter: [i32; 2],
    stride: [i32; 2],
    padding: [i32; 2],
    dilation: [i32; 2],
}

impl Shape {
    fn output(&self) -> [i32; 2] {
        std::array::from_fn(|d| {
            let reach = (self.filter[d] - 1) * self.dilation[d] + 1;
            (self.input[d] + 2 * self.padding[d] - reach) / self.stride[d] + 1
        })
    }

    /// Elements of the input, the weights and the output.
    fn counts(&self) -> [usize; 3] {
        let [h, w] = self.input;
        let [r, s] = self.filter;
        let [oh, ow] = self.output();
        [
            (self.batch * self.channels * h * w) as usize,
            (self.filters * self.channels / self.groups * r * s) as usize,
            (self.batch * self.filters * oh * ow) as usize,
        ]
    }

    /// Calls `each` with the indices of input, weight and output of every
    /// product that the convolution is made of.
    fn products(&self, nhwc: bool, mut each: impl FnMut(usize, usize, usize)) {
        let at = |n: i32, c: i32, y: i32, x: i32, channels: i32, size: [i32; 2]| {
            let index = if nhwc {
                ((n * size[0] + y) * size[1] + x) * channels + c
            } else {
                ((n * channels + c) * size[0] + y) * size[1] + x
            };
            index as usize
        };
        let c_group = self.channels / self.groups;
        let k_group = self.filters / self.groups;
        let output = self.output();
        for i in 0..self.batch * self.filters * output[0] * output[1] {
            let (ox, oy) = (i % output[1], i / output[1] % output[0]);
            let (k, n) = (
                i / output[1] / output[0] % self.filters,
                i / output[1] / output[0] / self.filters,
            );
            for j in 0..c_group * self.filter[0] * self.filter[1] {
                let (s, r) = (j % self.filter[1], j / self.filter[1] % self.filter[0]);
                let c = j / self.filter[1] / self.filter[0];
                let y = oy * self.stride[0] - self.padding[0] + r * self.dilation[0];
                let x = ox * self.stride[1] - self.padding[1] + s * self.dilation[1];
                if (0..self.input[0]).contains(&y) && (0..self.input[1]).contains(&x) {
                    let channel = k / k_group * c_group + c;
                    each(
                        at(n, channel, y, x, self.channels, self.input),
                        at(k, c, r, s, c_group, self.filter),
                        at(n, k, oy, ox, self.filters, output),
                    );
                }
            }
        }
    }
}

const PLAIN: Shape = Shape {
    batch: 2,
    channels: 3,
    filters: 5,
    groups: 1,
    input: [9, 11],
    filter: [3, 3],
    stride: [1, 1],
    padding: [1, 1],
    dilation: [1, 1],
};

pub(crate) fn check_naive(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let nhwc = case.number("LAYOUT")? == 1;
    let direction = case.number("DIRECTION")?;
    let shapes = [
        PLAIN,
        // Everything uneven.
        Shape {
            channels: 4,
            filters: 6,
            groups: 2,
            filter: [3, 2],
            stride: [2, 1],
            padding: [2, 0],
            dilation: [2, 3],
            ..PLAIN
        },
        // A filter for every channel.
        Shape { channels: 4, filters: 4, groups: 4, stride: [2, 3], ..PLAIN },
        // 1 by 1 with a stride that passes over inputs.
        Shape { filter: [1, 1], stride: [2, 2], padding: [0, 0], ..PLAIN },
    ];
    for shape in shapes {
        let [inputs, weights, outputs] = shape.counts();
        let mut random = Random::new(13);
        let x = random.values(dtype, inputs, -1.0, 1.0);
        let w = random.values(dtype, weights, -1.0, 1.0);
        let dy = random.values(dtype, outputs, -1.0, 1.0);
        let (kernel, first, second, mut want) = match direction {
            0 => ("gfxpack_conv_naive_forward", &x, &w, vec![0.0; outputs]),
            1 => ("gfxpack_conv_naive_backward_data", &dy, &w, vec![0.0; inputs]),
            _ => ("gfxpack_conv_naive_backward_weights", &x, &dy, vec![0.0; weights]),
        };
        shape.products(nhwc, |input, weight, output| match direction {
            0 => want[output] += x[input] * w[weight],
            1 => want[input] += dy[output] * w[weight],
            _ => want[weight] += x[input] * dy[output],
        });

        let first = case.input(dtype, first)?;
        let second = case.input(dtype, second)?;
        let result = case.output(dtype, want.len())?;
        // Weights take a work-group each; else there are too few work-items.
        let groups = if direction == 2 { weights } else { 2 };
        let scalars = [shape.batch, shape.channels, shape.filters, shape.groups];
        let pairs = [
            shape.input,
            shape.output(),
            shape.filter,
            shape.stride,
            shape.padding,
            shape.dilation,
        ];
        let argument: Vec<i32> = scalars.into_iter().chain(pairs.into_iter().flatten()).collect();
        let argument: [i32; 16] = std::array::from_fn(|i| argument[i]);
        case.kernel(kernel)?
            .memory(&first)?
            .memory(&second)?
            .memory(&result)?
            .value(argument)?
            .run([groups, 1, 1])?;
        close(kernel, dtype, &case.read(dtype, &result)?, &want, 1e-5)?;
    }
    Ok(())
}

pub(crate) fn check_direct(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let filter = case.number("FILTER")? as i32;
    let stride = case.number("STRIDE")? as i32;
    let shape = Shape {
        filter: [filter; 2],
        stride: [stride; 2],
        padding: [filter / 2, 0],
        input: [35, 38],
        ..PLAIN
    };
    // Filters that don't fill a work-item's block, in groups and alone, and
    // an output smaller than a tile.
    for shape in [
        shape,
        Shape { channels: 4, filters: 10, groups: 2, padding: [0, filter / 2], ..shape },
        Shape { batch: 1, input: [8, 9], ..shape },
    ] {
        let [inputs, weights, outputs] = shape.counts();
        let mut random = Random::new(14);
        let x = random.values(dtype, inputs, -1.0, 1.0);
        let w = random.values(dtype, weights, -1.0, 1.0);
        let mut want = vec![0.0; outputs];
        shape.products(false, |input, weight, output| want[output] += x[input] * w[weight]);

        let x = case.input(dtype, &x)?;
        let w = case.input(dtype, &w)?;
        let y = case.output(dtype, outputs)?;
        let [oh, ow] = shape.output();
        let blocks =
            ((shape.filters / shape.groups) as usize).div_ceil(case.number("ITEM_FILTERS")?);
        let images = (shape.batch * shape.groups) as usize;
        case.kernel("gfxpack_conv_direct")?
            .memory(&x)?
            .memory(&w)?
            .memory(&y)?
            .value(shape.channels)?
            .value(shape.filters)?
            .value(shape.groups)?
            .value(shape.input[0])?
            .value(shape.input[1])?
            .value(oh)?
            .value(ow)?
            .value(shape.padding[0])?
            .value(shape.padding[1])?
            .run([(ow as usize).div_ceil(16), (oh as usize).div_ceil(16), images * blocks])?;
        close("y", dtype, &case.read(dtype, &y)?, &want, 1e-5)?;
    }
    Ok(())
}

pub(crate) fn check_im2col(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let uneven =
        Shape { filter: [3, 2], stride: [2, 1], padding: [2, 0], dilation: [2, 3], ..PLAIN };
    let strided = Shape { stride: [1, 3], ..PLAIN };
    for shape in [PLAIN, uneven, strided] {
        let [inputs, ..] = shape.counts();
        let [oh, ow] = shape.output();
        let places = (oh * ow) as usize;
        let rows = (shape.channels * shape.filter[0] * shape.filter[1]) as usize;
        let columns = shape.batch as usize * rows * places;
        // A convolution with one filter for each element of the window has
        // the matrix for its output: which input each element comes from.
        let unit = Shape { filters: 1, ..shape };
        let mut origins = vec![None; columns];
        unit.products(false, |input, weight, output| {
            let (n, place) = (output / places, output % places);
            origins[(n * rows + weight) * places + place] = Some(input);
        });

        let argument: [[i32; 2]; 6] =
            [shape.input, [oh, ow], shape.filter, shape.stride, shape.padding, shape.dilation];
        let argument: Vec<i32> =
            std::iter::once(shape.channels).chain(argument.into_iter().flatten()).collect();
        let argument: [i32; 13] = std::array::from_fn(|i| argument[i]);
        let groups = [2, shape.batch as usize, 1];

        let mut random = Random::new(15);
        let bytes: Vec<u8> = (0..inputs * dtype.size()).map(|_| random.bits() as u8).collect();
        let mut want = Vec::new();
        for origin in &origins {
            match origin {
                Some(at) => want.extend(&bytes[at * dtype.size()..(at + 1) * dtype.size()]),
                None => want.extend(std::iter::repeat_n(0, dtype.size())),
            }
        }
        let images = case.input_bytes(&bytes)?;
        let matrix = case.output(dtype, columns)?;
        case.kernel("gfxpack_im2col")?
            .memory(&images)?
            .memory(&matrix)?
            .value(argument)?
            .run(groups)?;
        equal("matrix", &case.read_bytes(&matrix)?, &want)?;

        if !dtype.is_float() {
            continue;
        }
        let values = random.values(dtype, columns, -1.0, 1.0);
        let mut want = vec![0.0; inputs];
        for (value, origin) in values.iter().zip(&origins) {
            if let Some(at) = origin {
                want[*at] += value;
            }
        }
        let matrix = case.input(dtype, &values)?;
        let images = case.output(dtype, inputs)?;
        case.kernel("gfxpack_col2im")?
            .memory(&matrix)?
            .memory(&images)?
            .value(argument)?
            .run(groups)?;
        close("images", dtype, &case.read(dtype, &images)?, &want, 1e-6)?;
    }
    Ok(())
}
