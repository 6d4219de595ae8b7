//! Softmax and its gradient.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Random, close};

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    // Shorter and longer than a work-group; more vectors than work-groups.
    for (outer, length, inner) in [(2, 37, 5), (3, 601, 1), (1, 1, 9)] {
        for (alpha, beta) in [(1.0, 0.0), (0.5, 2.0)] {
            check_shape(case, [outer, length, inner], alpha, beta)?;
        }
    }
    Ok(())
}

/// Where the elements of each vector lie.
fn vectors([outer, length, inner]: [usize; 3]) -> impl Iterator<Item = Vec<usize>> {
    let start = move |vector: usize| vector / inner * length * inner + vector % inner;
    (0..outer * inner).map(move |vector| (0..length).map(|i| start(vector) + i * inner).collect())
}

fn check_shape(case: &Case<'_>, shape: [usize; 3], alpha: f32, beta: f32) -> Result<()> {
    let dtype = case.dtype()?;
    let algorithm = case.number("ALGORITHM")?;
    let count = shape.iter().product();
    let [outer, length, inner] = shape.map(|length| length as u32);
    let mut random = Random::new(5);
    // e^x of these overflows a float, unless the algorithm sees to it.
    let shift = if algorithm == 0 { 0.0 } else { 120.0 };
    let x = random.values(dtype, count, shift - 8.0, shift + 8.0);
    let dy = random.values(dtype, count, -1.0, 1.0);
    let before = match beta {
        0.0 => vec![f64::NAN; count],
        _ => random.values(dtype, count, -1.0, 1.0),
    };
    let kept = |at: usize| if beta == 0.0 { 0.0 } else { f64::from(beta) * before[at] };

    let mut softmax = vec![0.0; count];
    for vector in vectors(shape) {
        let largest = vector.iter().map(|at| x[*at]).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = vector.iter().map(|at| (x[*at] - largest).exp()).sum();
        for at in vector {
            let logarithm = x[at] - largest - sum.ln();
            softmax[at] = if algorithm == 2 { logarithm } else { logarithm.exp() };
        }
    }
    let want: Vec<f64> = (0..count).map(|at| f64::from(alpha) * softmax[at] + kept(at)).collect();
    let x = case.input(dtype, &x)?;
    let y = case.memory(dtype, &before)?;
    case.kernel("gfxpack_softmax_forward")?
        .memory(&x)?
        .memory(&y)?
        .value(outer)?
        .value(length)?
        .value(inner)?
        .value(alpha)?
        .value(beta)?
        .run([2, 1, 1])?;
    // The logarithm is the difference of numbers of the size of `shift`.
    let absolute = if algorithm == 2 { 2e-5 } else { 1e-7 };
    close("y", dtype, &case.read(dtype, &y)?, &want, absolute)?;

    // The gradient as the Jacobian has it, from a result that the type holds.
    let y = dtype.rounded(&softmax);
    let mut want = vec![0.0; count];
    for vector in vectors(shape) {
        for i in &vector {
            let mut sum = 0.0;
            for j in &vector {
                let same = if i == j { 1.0 } else { 0.0 };
                sum += match algorithm {
                    2 => dy[*j] * (same - y[*i].exp()),
                    _ => dy[*j] * y[*j] * (same - y[*i]),
                };
            }
            want[*i] = f64::from(alpha) * sum + kept(*i);
        }
    }
    let (y, dy) = (case.input(dtype, &y)?, case.input(dtype, &dy)?);
    let dx = case.memory(dtype, &before)?;
    case.kernel("gfxpack_softmax_backward")?
        .memory(&y)?
        .memory(&dy)?
        .memory(&dx)?
        .value(outer)?
        .value(length)?
        .value(inner)?
        .value(alpha)?
        .value(beta)?
        .run([2, 1, 1])?;
    close("dx", dtype, &case.read(dtype, &dx)?, &want, 2e-6)
}
