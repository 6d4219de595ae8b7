//! Pooling: the values in every window, and the elements that get its gradient.

use anyhow::{Result, bail};

use super::case::Case;
use super::numbers::{Dtype, Random, close, equal};

#[derive(Clone, Copy)]
struct Shape {
    volumes: usize,
    input: [i32; 3],
    output: [i32; 3],
    window: [i32; 3],
    stride: [i32; 3],
    padding: [i32; 3],
}

impl Shape {
    /// The output of a window that starts in the padding before the input and
    /// ends in that behind, `more` places along every dimension not counted.
    fn new(
        input: [i32; 3],
        window: [i32; 3],
        stride: [i32; 3],
        padding: [i32; 3],
        more: [i32; 3],
    ) -> Self {
        let output = std::array::from_fn(|d| {
            (input[d] + 2 * padding[d] - window[d]) / stride[d] + 1 + more[d]
        });
        Self { volumes: 6, input, output, window, stride, padding }
    }

    fn argument(&self) -> [[i32; 3]; 5] {
        [self.input, self.output, self.window, self.stride, self.padding]
    }

    /// The elements of a window: index in the volume, and in the window.
    fn elements(&self, output: [i32; 3]) -> Vec<(usize, usize)> {
        let mut elements = Vec::new();
        for (place, offset) in places(self.window).enumerate() {
            let at: [i32; 3] =
                std::array::from_fn(|d| output[d] * self.stride[d] - self.padding[d] + offset[d]);
            if (0..3).all(|d| at[d] >= 0 && at[d] < self.input[d]) {
                let [_, h, w] = self.input;
                elements.push((((at[0] * h + at[1]) * w + at[2]) as usize, place));
            }
        }
        elements
    }
}

fn places([d, h, w]: [i32; 3]) -> impl Iterator<Item = [i32; 3]> {
    (0..d * h * w).map(move |i| [i / w / h, i / w % h, i % w])
}

fn volume(lengths: [i32; 3]) -> usize {
    lengths.iter().product::<i32>() as usize
}

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    let one = [1, 1, 1];
    let none = [0, 0, 0];
    // Windows that overlap, that leave gaps, and in three dimensions; then
    // one more along W, cut by the edge as when output sizes are rounded up.
    let mut shapes = vec![
        Shape::new([1, 17, 19], [1, 3, 2], [1, 2, 1], [0, 1, 0], none),
        Shape::new([1, 9, 10], [1, 2, 2], [1, 3, 3], none, none),
        Shape::new([4, 5, 6], [2, 3, 3], [2, 1, 2], one, none),
        Shape::new([1, 8, 8], [1, 3, 3], [1, 2, 2], none, [0, 0, 1]),
    ];
    if case.number("POOLING")? != 0 {
        // Averages may even be taken of padding alone.
        shapes.push(Shape::new([1, 5, 6], [1, 2, 2], [1, 2, 2], [0, 1, 1], [0, 2, 3]));
    }
    for shape in shapes {
        match case.number("POOLING")? {
            0 => check_max(case, shape)?,
            _ => check_average(case, shape)?,
        }
    }
    Ok(())
}

/// Work-groups for that many elements of each volume.
fn groups(case: &Case<'_>, shape: Shape, elements: usize) -> Result<[usize; 3]> {
    Ok([elements.div_ceil(case.number("WG")?), shape.volumes, 1])
}

fn check_max(case: &Case<'_>, shape: Shape) -> Result<()> {
    let dtype = case.dtype()?;
    let (inputs, outputs) = (volume(shape.input), volume(shape.output));
    let bits = case.number("INDEX_BITS")?;
    let mut random = Random::new(10);
    // Few different values, so that windows hold equals.
    let x: Vec<f64> =
        (0..shape.volumes * inputs).map(|_| random.within(-2.0, 3.0).floor()).collect();
    let dy = random.values(dtype, shape.volumes * outputs, -1.0, 1.0);

    let (mut y, mut index) = (Vec::new(), Vec::new());
    let mut dx = vec![0.0; x.len()];
    for n in 0..shape.volumes {
        for (o, output) in places(shape.output).enumerate() {
            let mut best: Option<(f64, usize, usize)> = None;
            for (at, place) in shape.elements(output) {
                let value = x[n * inputs + at];
                if best.is_none_or(|(largest, ..)| value > largest) {
                    best = Some((value, at, place));
                }
            }
            let Some((value, at, place)) = best else { bail!("a window holds nothing") };
            y.push(value);
            index.push(if bits == 8 { place } else { at });
            dx[n * inputs + at] += dy[n * outputs + o];
        }
    }
    let index: Vec<u8> = match bits {
        8 => index.iter().map(|index| *index as u8).collect(),
        _ => index.iter().flat_map(|index| (*index as u32).to_le_bytes()).collect(),
    };

    let x_memory = case.input(dtype, &x)?;
    let y_memory = case.output(dtype, y.len())?;
    let index_memory = case.memory_bytes(&vec![0xff; index.len()])?;
    case.kernel("gfxpack_pooling_forward")?
        .memory(&x_memory)?
        .memory(&y_memory)?
        .memory(&index_memory)?
        .value(shape.argument())?
        .run(groups(case, shape, outputs)?)?;
    equal("y", &case.read(dtype, &y_memory)?, &y)?;
    equal("index", &case.read_bytes(&index_memory)?, &index)?;

    let dy = case.input(dtype, &dy)?;
    let dx_memory = case.output(dtype, dx.len())?;
    let index = case.input_bytes(&index)?;
    case.kernel("gfxpack_pooling_backward")?
        .memory(&dy)?
        .memory(&dx_memory)?
        .memory(&index)?
        .value(shape.argument())?
        .run(groups(case, shape, inputs)?)?;
    close("dx", dtype, &case.read(dtype, &dx_memory)?, &dx, 1e-6)
}

fn check_average(case: &Case<'_>, shape: Shape) -> Result<()> {
    let dtype: Dtype = case.dtype()?;
    let exclusive = case.number("POOLING")? == 2;
    let (inputs, outputs) = (volume(shape.input), volume(shape.output));
    let mut random = Random::new(11);
    let x = random.values(dtype, shape.volumes * inputs, -2.0, 2.0);
    let dy = random.values(dtype, shape.volumes * outputs, -1.0, 1.0);

    let mut y = Vec::new();
    let mut dx = vec![0.0; x.len()];
    for n in 0..shape.volumes {
        for (o, output) in places(shape.output).enumerate() {
            let elements = shape.elements(output);
            let count = if exclusive { elements.len() } else { volume(shape.window) };
            let mut average = 0.0;
            for (at, _) in elements {
                average += x[n * inputs + at] / count as f64;
                dx[n * inputs + at] += dy[n * outputs + o] / count as f64;
            }
            y.push(average);
        }
    }

    let x = case.input(dtype, &x)?;
    let y_memory = case.output(dtype, y.len())?;
    case.kernel("gfxpack_pooling_forward")?
        .memory(&x)?
        .memory(&y_memory)?
        .value(shape.argument())?
        .run(groups(case, shape, outputs)?)?;
    close("y", dtype, &case.read(dtype, &y_memory)?, &y, 1e-6)?;

    let dy = case.input(dtype, &dy)?;
    let dx_memory = case.output(dtype, dx.len())?;
    case.kernel("gfxpack_pooling_backward")?
        .memory(&dy)?
        .memory(&dx_memory)?
        .value(shape.argument())?
        .run(groups(case, shape, inputs)?)?;
    close("dx", dtype, &case.read(dtype, &dx_memory)?, &dx, 1e-6)
}
