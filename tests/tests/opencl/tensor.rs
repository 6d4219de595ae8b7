//! Element-wise operations with strides: combining, filling, scaling, casting.

use anyhow::{Result, ensure};

use super::case::Case;
use super::numbers::{Dtype, Random, close, equal};

/// Lengths or strides as the kernels take them; those past DIMS are junk.
type Dims = [u32; 5];

/// Where in memory the elements lie, in the order of their indices.
fn offsets(dims: usize, lengths: Dims, strides: Dims) -> Vec<usize> {
    let mut offsets = vec![0];
    for (length, stride) in lengths.iter().zip(strides).take(dims) {
        offsets = offsets
            .into_iter()
            .flat_map(|base| (0..*length).map(move |i| base + (i * stride) as usize))
            .collect();
    }
    offsets
}

/// Elements that memory needs for those offsets, and a few after.
fn room(offsets: &[usize]) -> usize {
    offsets.iter().max().map_or(1, |last| last + 4)
}

struct Elementwise {
    dims: usize,
    lengths: Dims,
    a: Dims,
    b: Dims,
    c: Dims,
}

fn elementwise_shapes(dims: usize) -> Vec<Elementwise> {
    match dims {
        1 => vec![
            // Packed; a scalar against a spread vector.
            Elementwise { dims, lengths: [1009, 9, 9, 9, 9], a: [1; 5], b: [1; 5], c: [1; 5] },
            Elementwise { dims, lengths: [517, 9, 9, 9, 9], a: [3; 5], b: [0; 5], c: [2; 5] },
        ],
        2 => vec![Elementwise {
            dims,
            lengths: [37, 29, 9, 9, 9],
            a: [29, 1, 9, 9, 9],
            b: [0, 1, 9, 9, 9],
            c: [31, 1, 9, 9, 9],
        }],
        _ => vec![
            // A value per channel; rows of c with room between them.
            Elementwise {
                dims,
                lengths: [2, 3, 4, 5, 3],
                a: [180, 60, 15, 3, 1],
                b: [0, 1, 0, 0, 0],
                c: [240, 80, 20, 4, 1],
            },
            // Both broadcast, and c with its dimensions in another order.
            Elementwise {
                dims,
                lengths: [2, 3, 4, 5, 7],
                a: [0, 28, 7, 0, 1],
                b: [15, 0, 0, 3, 0],
                c: [1, 2, 6, 24, 120],
            },
        ],
    }
}

pub(crate) fn check_elementwise(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let op: fn(f64, f64) -> f64 = match case.number("OP")? {
        0 => |a, b| a + b,
        1 => |a, b| a * b,
        2 => f64::min,
        _ => f64::max,
    };
    let (alpha_a, alpha_b) = (0.75f32, -1.5f32);
    let mut random = Random::new(2);
    for shape in elementwise_shapes(case.number("DIMS")?) {
        let a_at = offsets(shape.dims, shape.lengths, shape.a);
        let b_at = offsets(shape.dims, shape.lengths, shape.b);
        let c_at = offsets(shape.dims, shape.lengths, shape.c);
        let a = random.values(dtype, room(&a_at), -2.0, 2.0);
        let b = random.values(dtype, room(&b_at), -2.0, 2.0);
        for beta in [0.0f32, 0.5] {
            // With beta zero NaN must not come through.
            let before = match beta {
                0.0 => vec![f64::NAN; room(&c_at)],
                _ => random.values(dtype, room(&c_at), -2.0, 2.0),
            };
            let mut want = before.clone();
            for ((a_at, b_at), c_at) in a_at.iter().zip(&b_at).zip(&c_at) {
                let kept = if beta == 0.0 { 0.0 } else { f64::from(beta) * before[*c_at] };
                want[*c_at] =
                    kept + op(f64::from(alpha_a) * a[*a_at], f64::from(alpha_b) * b[*b_at]);
            }
            let (a, b) = (case.input(dtype, &a)?, case.input(dtype, &b)?);
            let c = case.memory(dtype, &before)?;
            case.kernel("gfxpack_tensor_elementwise")?
                .memory(&a)?
                .memory(&b)?
                .memory(&c)?
                .value(c_at.len() as u32)?
                .value(shape.lengths)?
                .value(shape.a)?
                .value(shape.b)?
                .value(shape.c)?
                .value(alpha_a)?
                .value(alpha_b)?
                .value(beta)?
                .run([3, 1, 1])?;
            close("c", dtype, &case.read(dtype, &c)?, &want, 1e-6)?;
        }
    }
    Ok(())
}

pub(crate) fn check_set_scale(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let lengths = [2, 3, 4, 5, 7];
    let mut random = Random::new(3);
    for strides in [[420, 140, 35, 7, 1], [1, 2, 6, 24, 130]] {
        let at = offsets(5, lengths, strides);
        let (low, high) = match dtype {
            Dtype::Int8 => (-128.0, 127.0),
            Dtype::Int32 => (-2e9, 2e9),
            _ => (-2.0, 2.0),
        };
        let before = random.values(dtype, room(&at), low, high);
        // One value and one factor for each type, and integers out of range.
        let scalars: &[f64] = match dtype {
            Dtype::Int8 => &[-7.0, 300.0],
            Dtype::Int32 => &[16_777_217.0, -3.0],
            _ => &[0.7, -1.25],
        };
        for scalar in scalars {
            let count = at.len() as u32;
            let factor = if dtype.is_float() { f64::from(*scalar as f32) } else { *scalar };
            let scale = |value: f64| {
                if dtype.is_float() { factor * value } else { dtype.rounded(&[factor * value])[0] }
            };

            let set = case.memory(dtype, &before)?;
            let launch = case.kernel("gfxpack_tensor_set")?.memory(&set)?.value(count)?;
            let launch = launch.value(lengths)?.value(strides)?;
            let launch = if dtype.is_float() {
                launch.value(*scalar as f32)?
            } else {
                launch.value(*scalar as i32)?
            };
            launch.run([2, 1, 1])?;
            let mut want = before.clone();
            at.iter().for_each(|at| want[*at] = dtype.rounded(&[factor])[0]);
            equal("set", &case.read(dtype, &set)?, &want)?;

            let scaled = case.memory(dtype, &before)?;
            let launch = case.kernel("gfxpack_tensor_scale")?.memory(&scaled)?.value(count)?;
            let launch = launch.value(lengths)?.value(strides)?;
            let launch = if dtype.is_float() {
                launch.value(*scalar as f32)?
            } else {
                launch.value(*scalar as i32)?
            };
            launch.run([2, 1, 1])?;
            let mut want = before.clone();
            at.iter().for_each(|at| want[*at] = scale(before[*at]));
            close("scaled", dtype, &case.read(dtype, &scaled)?, &want, 0.0)?;
        }
    }
    Ok(())
}

/// Elements with everything that is special about a type among them.
fn sources(dtype: Dtype, count: usize, same: bool) -> Vec<u8> {
    let mut random = Random::new(4);
    if same || !dtype.is_float() {
        let bytes = (0..count * dtype.size()).map(|_| random.bits() as u8);
        return bytes.collect();
    }
    let mut values: Vec<f64> = vec![
        0.0,
        -0.0,
        0.5,
        1.5,
        -2.5,
        126.5,
        127.5,
        -128.5,
        1e4,
        -1e4,
        65504.0,
        65519.9,
        65520.0,
        1e10,
        -1e10,
        3e38,
        6e-8,
        5.97e-8,
        1e-40,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        // Halfway between two bf16, and a hair above: to even, and up.
        1.003_906_25,
        1.011_718_75,
        1.003_906_5,
        2_147_483_520.0,
        -2_147_483_648.0,
    ];
    values.extend((values.len()..count).map(|at| {
        let magnitude = if at % 2 == 0 { 3.0 } else { 200.0 };
        random.within(-magnitude, magnitude)
    }));
    let mut bytes = dtype.encode(&values);
    if dtype == Dtype::Fp32 {
        // NaNs whose upper halves alone would be an infinity, and would be
        // carried into the sign.
        bytes[..4].copy_from_slice(&0x7f80_0001u32.to_le_bytes());
        bytes[4..8].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    }
    bytes
}

pub(crate) fn check_cast(case: &Case<'_>) -> Result<()> {
    let from = Dtype::from_number(case.number("SRC_TYPE")?)?;
    let to = Dtype::from_number(case.number("DST_TYPE")?)?;
    let dims = case.number("DIMS")?;
    let lengths = [2, 3, 4, 5, 7];
    let x_strides = [420, 140, 35, 7, 1];
    let y_strides = [1, 2, 6, 24, 125];
    let x_at = offsets(dims, lengths, x_strides);
    let y_at = offsets(dims, lengths, y_strides);

    let bytes = sources(from, room(&x_at), from == to);
    let x = case.input_bytes(&bytes)?;
    let y = case.output(to, room(&y_at))?;
    case.kernel("gfxpack_tensor_cast")?
        .memory(&x)?
        .memory(&y)?
        .value(x_at.len() as u32)?
        .value(lengths)?
        .value(x_strides)?
        .value(y_strides)?
        .run([3, 1, 1])?;
    let got = case.read_bytes(&y)?;

    let element = |bytes: &[u8], dtype: Dtype, at: usize| {
        bytes[at * dtype.size()..(at + 1) * dtype.size()].to_vec()
    };
    for (x_at, y_at) in x_at.iter().zip(&y_at) {
        let source = element(&bytes, from, *x_at);
        let got = element(&got, to, *y_at);
        if from == to {
            ensure!(got == source, "copied {source:x?} as {got:x?}");
            continue;
        }
        // Every source has a float of its own, so this rounds once.
        let want = to.encode(&from.decode(&source));
        // Which NaN it is, is the processor's business.
        let nan = to.is_float() && to.decode(&want)[0].is_nan() && to.decode(&got)[0].is_nan();
        ensure!(nan || got == want, "cast {source:x?} to {got:x?}, not {want:x?}");
    }
    // Nothing was written between the elements.
    let written: std::collections::BTreeSet<_> = y_at.into_iter().collect();
    for at in (0..got.len() / to.size()).filter(|at| !written.contains(at)) {
        ensure!(element(&got, to, at).iter().all(|byte| *byte == 0xff), "wrote element {at}");
    }
    Ok(())
}
