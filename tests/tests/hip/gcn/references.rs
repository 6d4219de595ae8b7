//! The expected results of the assembly kernels.

use anyhow::Result;
use half::f16;

use super::super::numbers::{Element, Random};
use super::super::options::Options;
use super::launch::{Launch, Piece};

/// A number of elements, some groups of the grid that it needs, and the
/// elements that those groups handle. No others exist.
struct Part {
    count: u32,
    groups: Vec<u32>,
    pieces: Vec<Piece>,
}

impl Part {
    fn length(&self) -> usize {
        self.pieces.iter().map(|(start, end)| (end - start) as usize).sum()
    }
}

/// Whole vectors, rests of every length, less than a vector, nothing, with a
/// group more than needed. Then counts whose bytes 32 bits can't number: of
/// them the first group, which takes the rest at the far end too, and the
/// last, alone.
fn parts(options: &Options) -> Result<Vec<Part>> {
    let vector = options.number_or("VEC", 1)? as u32;
    let group = options.group()?;
    let mut parts = Vec::new();
    for count in
        [0, 1, 3, 64 * vector, group * vector, 2 * group * vector + 7, 3 * group * vector - 1]
    {
        let groups = (0..count.div_ceil(group * vector) + 1).collect();
        parts.push(Part { count, groups, pieces: vec![(0, count.into())] });
    }
    for count in [0xffff_fffd_u32, 0xc000_0002, 0x4000_0000] {
        let vectors = count / vector;
        let rest = (u64::from(vectors * vector), u64::from(count));
        let first = (0, u64::from(group * vector));
        parts.push(Part { count, groups: vec![0], pieces: vec![first, rest] });
        let last = (vectors - 1) / group;
        let start = u64::from(last) * u64::from(group * vector);
        parts.push(Part { count, groups: vec![last], pieces: vec![(start, rest.0)] });
    }
    Ok(parts)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn finite(random: &mut Random, count: usize) -> Vec<f32> {
    random.values(Element::F32, count, -2.0, 2.0).into_iter().map(|value| value as f32).collect()
}

/// Values with zeros of both signs, infinities, subnormals and NaNs among them.
fn values(random: &mut Random, count: usize) -> Vec<f32> {
    const SPECIAL: [f32; 6] = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-40, f32::NAN];
    let mut values = finite(random, count);
    for (value, special) in values.iter_mut().skip(2).step_by(5).zip(SPECIAL.iter().cycle()) {
        *value = *special;
    }
    values
}

pub(crate) fn fill(options: &Options, _: usize) -> Result<Vec<Launch>> {
    const VALUE: f32 = -7.25;
    let launch = |part: Part| {
        let before = bytes(&vec![0.0; part.length()]);
        let after = bytes(&vec![VALUE; part.length()]);
        Launch::new(part.groups).output(&part.pieces, 4, &before, after).u32(part.count).f32(VALUE)
    };
    Ok(parts(options)?.into_iter().map(launch).collect())
}

pub(crate) fn copy(options: &Options, _: usize) -> Result<Vec<Launch>> {
    let mut random = Random::new(22);
    let launch = |part: Part| {
        let x = bytes(&values(&mut random, part.length()));
        let before = vec![0x5a; x.len()];
        Launch::new(part.groups)
            .input(&part.pieces, 4, &x)
            .output(&part.pieces, 4, &before, x)
            .u32(part.count)
    };
    Ok(parts(options)?.into_iter().map(launch).collect())
}

pub(crate) fn axpby(options: &Options, _: usize) -> Result<Vec<Launch>> {
    const ALPHA: f32 = 1.7;
    const BETA: f32 = -0.3;
    let with_beta = options.number("BETA")? == 1;
    let mut random = Random::new(23);
    let launch = |part: Part| {
        let x = finite(&mut random, part.length());
        // Without beta, what y held must not reach the result.
        let y = if with_beta { finite(&mut random, x.len()) } else { vec![f32::NAN; x.len()] };
        let sum =
            |(x, y): (&f32, &f32)| if with_beta { x.mul_add(ALPHA, BETA * y) } else { x * ALPHA };
        let after: Vec<f32> = x.iter().zip(&y).map(sum).collect();
        Launch::new(part.groups)
            .input(&part.pieces, 4, &bytes(&x))
            .output(&part.pieces, 4, &bytes(&y), bytes(&after))
            .u32(part.count)
            .f32(ALPHA)
            .f32(BETA)
    };
    Ok(parts(options)?.into_iter().map(launch).collect())
}

pub(crate) fn relu(options: &Options, _: usize) -> Result<Vec<Launch>> {
    const PARAMETER: f32 = 0.75;
    let mode = options.number("MODE")?;
    let activated = |&x: &f32| match mode {
        0 => x.max(0.0),
        1 if x < 0.0 => PARAMETER * x,
        1 => x.max(0.0),
        _ => x.clamp(0.0, PARAMETER),
    };
    let mut random = Random::new(24);
    let launch = |part: Part| {
        let mut x = values(&mut random, part.length());
        // Which zero becomes which is left open, but comparing is by bits.
        x.iter_mut().for_each(|x| *x = if *x == 0.0 { 0.5 } else { *x });
        let before = vec![0x5a; 4 * x.len()];
        // A NaN counts as less than 0 here.
        let after: Vec<f32> =
            x.iter().map(|x| if x.is_nan() { 0.0 } else { activated(x) }).collect();
        Launch::new(part.groups)
            .input(&part.pieces, 4, &bytes(&x))
            .output(&part.pieces, 4, &before, bytes(&after))
            .u32(part.count)
            .f32(PARAMETER)
    };
    Ok(parts(options)?.into_iter().map(launch).collect())
}

pub(crate) fn cast(options: &Options, _: usize) -> Result<Vec<Launch>> {
    let widen = options.number("WIDEN")? == 1;
    let mut random = Random::new(25);
    let launch = |part: Part| {
        let wide: Vec<f32> = values(&mut random, part.length())
            .into_iter()
            .enumerate()
            // Ties, overflow and fp16's own subnormals among them.
            .map(|(at, value)| match at % 7 {
                0 => 1.0 + ((at % 999) as f32 + 0.5) * 2f32.powi(-10),
                1 => 65520.0,
                3 => value * 2f32.powi(-16),
                _ => value,
            })
            .collect();
        let narrow: Vec<f16> = wide.iter().map(|&value| f16::from_f32(value)).collect();
        let half_bytes: Vec<u8> = narrow.iter().flat_map(|half| half.to_le_bytes()).collect();
        let launch = Launch::new(part.groups);
        let launch = if widen {
            let exact: Vec<f32> = narrow.iter().map(|half| half.to_f32()).collect();
            let before = vec![0x5a; 4 * exact.len()];
            launch.input(&part.pieces, 2, &half_bytes).output(
                &part.pieces,
                4,
                &before,
                bytes(&exact),
            )
        } else {
            let before = vec![0x5a; half_bytes.len()];
            launch.input(&part.pieces, 4, &bytes(&wide)).output(
                &part.pieces,
                2,
                &before,
                half_bytes,
            )
        };
        launch.u32(part.count)
    };
    Ok(parts(options)?.into_iter().map(launch).collect())
}

pub(crate) fn row_reduce(options: &Options, lanes: usize) -> Result<Vec<Launch>> {
    const SCALE: f32 = 0.5;
    let op = options.number("OP")?;
    let reduced = |row: &[f32]| {
        let row = row.iter().map(|&x| f64::from(x));
        match op {
            0 => row.sum(),
            1 => row.fold(f64::NEG_INFINITY, f64::max),
            2 => row.fold(f64::INFINITY, f64::min),
            _ => row.map(|x| x * x).sum::<f64>(),
        }
    };
    let group_rows = options.group()? / lanes as u32;
    let mut random = Random::new(26);
    let mut launch = |count: u32, row_range: std::ops::Range<u32>, columns: u32, groups| {
        let x = finite(&mut random, (row_range.len() as u32 * columns) as usize);
        let y: Vec<f32> = (0..row_range.len())
            .map(|row| &x[row * columns as usize..(row + 1) * columns as usize])
            .map(|row| (f64::from(SCALE) * reduced(row)) as f32)
            .collect();
        let (start, end) = (u64::from(row_range.start), u64::from(row_range.end));
        Launch::new(groups)
            .input(&[(start * u64::from(columns), end * u64::from(columns))], 4, &bytes(&x))
            .about(&[(start, end)], &y, 1e-4)
            .u32(count)
            .u32(columns)
            .f32(SCALE)
    };
    let mut launches = Vec::new();
    for (rows, columns) in [(1_u32, 1), (5, 64), (3, 31), (11, 203), (2, 0), (0, 9)] {
        let groups: Vec<u32> = (0..rows.div_ceil(group_rows) + 1).collect();
        launches.push(launch(rows, 0..rows, columns, groups));
    }
    // The last row alone, whose first element's number has more than 32 bits.
    let last = 0x0100_0000;
    launches.push(launch(last + 1, last..last + 1, 300, vec![last / group_rows]));
    Ok(launches)
}
