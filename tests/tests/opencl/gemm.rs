//! Matrix products.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Random, close};

const BATCH: usize = 2;

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    // No multiple of any tile; smaller than one; exactly one.
    for size in [[75, 70, 37], [5, 3, 9], [64, 64, 16]] {
        for (alpha, beta) in [(1.0, 0.0), (0.75, -0.5)] {
            check_size(case, size, alpha, beta)?;
        }
    }
    Ok(())
}

fn check_size(case: &Case<'_>, [m, n, k]: [usize; 3], alpha: f32, beta: f32) -> Result<()> {
    let dtype = case.dtype()?;
    let (transpose_a, transpose_b) = (case.flag("TRANSPOSE_A"), case.flag("TRANSPOSE_B"));
    // Rows and matrices with room between them.
    let (a_rows, a_columns) = if transpose_a { (k, m) } else { (m, k) };
    let (b_rows, b_columns) = if transpose_b { (n, k) } else { (k, n) };
    let (a_leading, b_leading, c_leading) = (a_columns + 3, b_columns + 1, n + 2);
    let (a_batch, b_batch, c_batch) =
        (a_rows * a_leading + 5, b_rows * b_leading + 1, m * c_leading + 7);
    let mut random = Random::new(16);
    let a = random.values(dtype, BATCH * a_batch, -1.0, 1.0);
    let b = random.values(dtype, BATCH * b_batch, -1.0, 1.0);
    let before = match beta {
        0.0 => vec![f64::NAN; BATCH * c_batch],
        _ => random.values(dtype, BATCH * c_batch, -1.0, 1.0),
    };

    let mut want = before.clone();
    for batch in 0..BATCH {
        for row in 0..m {
            for column in 0..n {
                let product = |i: usize| {
                    let a_at = if transpose_a { i * a_leading + row } else { row * a_leading + i };
                    let b_at =
                        if transpose_b { column * b_leading + i } else { i * b_leading + column };
                    a[batch * a_batch + a_at] * b[batch * b_batch + b_at]
                };
                let sum: f64 = (0..k).map(product).sum();
                let at = batch * c_batch + row * c_leading + column;
                let kept = if beta == 0.0 { 0.0 } else { f64::from(beta) * before[at] };
                want[at] = f64::from(alpha) * sum + kept;
            }
        }
    }

    let (a, b) = (case.input(dtype, &a)?, case.input(dtype, &b)?);
    let c = case.memory(dtype, &before)?;
    case.kernel("gfxpack_gemm")?
        .memory(&a)?
        .memory(&b)?
        .memory(&c)?
        .value(m as u32)?
        .value(n as u32)?
        .value(k as u32)?
        .value(a_leading as u32)?
        .value(b_leading as u32)?
        .value(c_leading as u32)?
        .value(a_batch as u64)?
        .value(b_batch as u64)?
        .value(c_batch as u64)?
        .value(alpha)?
        .value(beta)?
        .run([n.div_ceil(case.number("TILE_N")?), m.div_ceil(case.number("TILE_M")?), BATCH])?;
    close("c", dtype, &case.read(dtype, &c)?, &want, 5e-6)
}
