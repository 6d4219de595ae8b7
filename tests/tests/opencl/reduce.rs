//! Reductions along one dimension.

use anyhow::{Result, ensure};

use super::case::Case;
use super::numbers::{Dtype, Random, close, equal};

/// Both kernels take the same arguments.
const KERNELS: [&str; 2] = ["gfxpack_reduce_by_group", "gfxpack_reduce_by_item"];

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let op = case.number("OP")?;
    for shape in [[3, 701, 1], [2, 17, 5], [300, 1, 2]] {
        let count = shape.iter().product();
        let mut random = Random::new(18);
        let x = match op {
            // Products that neither vanish nor overflow.
            4 => random.values(dtype, count, 0.99, 1.01),
            // Few different values, so that there are equals.
            2 | 3 => (0..count).map(|_| random.within(-9.0, 9.0).floor()).collect(),
            _ => random.values(dtype, count, -1.0, 1.0),
        };
        for kernel in KERNELS {
            for (alpha, beta) in [(1.0, 0.0), (0.5, 2.0)] {
                check_one(case, kernel, shape, &x, alpha, beta)?;
            }
        }
    }
    if op == 2 || op == 3 {
        let mut x = vec![1.0; 300];
        x[250] = f64::NAN;
        x[270] = f64::NAN;
        for kernel in KERNELS {
            let (y, index) = run(case, kernel, [1, 300, 1], &x, &[0.0], 1.0, 0.0)?;
            ensure!(y[0].is_nan(), "{kernel}: a NaN was lost, result {y:?}");
            ensure!(index.is_none_or(|index| index == [250]), "{kernel}: it was element 250");
        }
    }
    Ok(())
}

fn check_one(
    case: &Case<'_>,
    kernel: &str,
    shape: [usize; 3],
    x: &[f64],
    alpha: f32,
    beta: f32,
) -> Result<()> {
    let dtype = case.dtype()?;
    let [outer, length, inner] = shape;
    let before = match beta {
        0.0 => vec![f64::NAN; outer * inner],
        _ => Random::new(19).values(dtype, outer * inner, -1.0, 1.0),
    };
    let (mut want, mut want_index) = (Vec::new(), Vec::new());
    for at in 0..outer * inner {
        let vector: Vec<f64> =
            (0..length).map(|i| x[(at / inner * length + i) * inner + at % inner]).collect();
        let sum: f64 = vector.iter().sum();
        let reduced = match case.number("OP")? {
            0 => sum,
            1 => sum / length as f64,
            2 => vector.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            3 => vector.iter().copied().fold(f64::INFINITY, f64::min),
            4 => vector.iter().product(),
            _ => vector.iter().map(|x| x * x).sum::<f64>().sqrt(),
        };
        let kept = if beta == 0.0 { 0.0 } else { f64::from(beta) * before[at] };
        want.push(f64::from(alpha) * reduced + kept);
        want_index.push(vector.iter().position(|x| *x == reduced).unwrap_or(0) as u32);
    }
    let (got, index) = run(case, kernel, shape, x, &before, alpha, beta)?;
    close(kernel, dtype, &got, &want, 1e-4)?;
    match index {
        Some(index) => equal(kernel, &index, &want_index),
        None => Ok(()),
    }
}

/// What the kernel gives, and the indices if it has any.
fn run(
    case: &Case<'_>,
    kernel: &str,
    shape: [usize; 3],
    x: &[f64],
    before: &[f64],
    alpha: f32,
    beta: f32,
) -> Result<(Vec<f64>, Option<Vec<u32>>)> {
    let dtype: Dtype = case.dtype()?;
    let [outer, length, inner] = shape.map(|length| length as u32);
    let x = case.input(dtype, x)?;
    let y = case.memory(dtype, before)?;
    let index = case.output(Dtype::Int32, before.len())?;
    let mut launch = case.kernel(kernel)?.memory(&x)?.memory(&y)?;
    if case.flag("INDICES") {
        launch = launch.memory(&index)?;
    }
    // Fewer work-groups than results, and fewer work-items than the last
    // shape has.
    launch.value(outer)?.value(length)?.value(inner)?.value(alpha)?.value(beta)?.run([2, 1, 1])?;
    let indices = case.flag("INDICES").then(|| case.read(Dtype::Int32, &index)).transpose()?;
    let indices = indices.map(|indices| indices.iter().map(|index| *index as u32).collect());
    Ok((case.read(dtype, &y)?, indices))
}
