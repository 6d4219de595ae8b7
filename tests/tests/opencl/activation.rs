//! Activation functions, as in textbooks.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Dtype, Random, close};

struct Function {
    value: fn(f64, [f64; 3]) -> f64,
    slope: fn(f64, [f64; 3]) -> f64,
    /// alpha, beta, gamma
    parameters: [f32; 3],
}

fn function(number: usize) -> Function {
    match number {
        0 => Function {
            value: |x, _| x.max(0.0),
            slope: |x, _| if x > 0.0 { 1.0 } else { 0.0 },
            parameters: [0.0; 3],
        },
        1 => Function {
            value: |x, [a, ..]| if x > 0.0 { x } else { a * x },
            slope: |x, [a, ..]| if x > 0.0 { 1.0 } else { a },
            parameters: [0.1, 0.0, 0.0],
        },
        2 => Function {
            value: |x, [a, b, _]| b * (a * x).tanh(),
            slope: |x, [a, b, _]| a * b / (a * x).cosh().powi(2),
            parameters: [0.8, 1.3, 0.0],
        },
        3 => Function {
            value: |x, _| 1.0 / (1.0 + (-x).exp()),
            slope: |x, _| (-x).exp() / (1.0 + (-x).exp()).powi(2),
            parameters: [0.0; 3],
        },
        4 => Function {
            value: |x, _| x.exp().ln_1p(),
            slope: |x, _| 1.0 / (1.0 + (-x).exp()),
            parameters: [0.0; 3],
        },
        5 => Function {
            value: |x, [a, ..]| if x > 0.0 { x } else { a * x.exp_m1() },
            slope: |x, [a, ..]| if x > 0.0 { 1.0 } else { a * x.exp() },
            parameters: [0.7, 0.0, 0.0],
        },
        6 => Function {
            value: |x, _| x.abs(),
            slope: |x, _| if x == 0.0 { 0.0 } else { x.signum() },
            parameters: [0.0; 3],
        },
        7 => Function {
            value: |x, [a, b, c]| (a + b * x).powf(c),
            slope: |x, [a, b, c]| b * c * (a + b * x).powf(c - 1.0),
            parameters: [50.5, 0.5, 1.5],
        },
        _ => Function {
            value: |x, [a, ..]| if x < a { x.max(0.0) } else { a },
            slope: |x, [a, ..]| if x > 0.0 && x < a { 1.0 } else { 0.0 },
            parameters: [1.7, 0.0, 0.0],
        },
    }
}

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let Function { value, slope, parameters } = function(case.number("ACTIVATION")?);
    let [alpha, beta, gamma] = parameters;
    let exact = parameters.map(f64::from);

    // Fewer work-items than elements, and a last round that is not full.
    let groups = [2, 1, 1];
    let count = 5 * case.number("WG")? + 3;
    let mut random = Random::new(1);
    let mut x = random.values(dtype, count, -4.0, 4.0);
    x[..7].copy_from_slice(&dtype.rounded(&[0.0, -0.0, 30.0, -30.0, 90.0, -90.0, 1.0]));
    let dy = random.values(dtype, count, -2.0, 2.0);

    let x_memory = case.input(dtype, &x)?;
    let y_memory = case.output(dtype, count)?;
    case.kernel("gfxpack_activation_forward")?
        .memory(&x_memory)?
        .memory(&y_memory)?
        .value(count as u32)?
        .value(alpha)?
        .value(beta)?
        .value(gamma)?
        .run(groups)?;
    let want: Vec<f64> = x.iter().map(|x| value(*x, exact)).collect();
    close("y", dtype, &case.read(dtype, &y_memory)?, &want, 1e-6)?;

    let dy_memory = case.input(dtype, &dy)?;
    let dx_memory = case.output(dtype, count)?;
    case.kernel("gfxpack_activation_backward")?
        .memory(&x_memory)?
        .memory(&dy_memory)?
        .memory(&dx_memory)?
        .value(count as u32)?
        .value(alpha)?
        .value(beta)?
        .value(gamma)?
        .run(groups)?;
    let want: Vec<f64> = x.iter().zip(&dy).map(|(x, dy)| dy * slope(*x, exact)).collect();
    close("dx", dtype, &case.read(dtype, &dx_memory)?, &want, 1e-6)?;

    check_nan(case, dtype, parameters)
}

/// What is no number stays none.
fn check_nan(case: &Case<'_>, dtype: Dtype, [alpha, beta, gamma]: [f32; 3]) -> Result<()> {
    let x = case.input(dtype, &[f64::NAN, 1.0])?;
    let y = case.output(dtype, 2)?;
    case.kernel("gfxpack_activation_forward")?
        .memory(&x)?
        .memory(&y)?
        .value(2u32)?
        .value(alpha)?
        .value(beta)?
        .value(gamma)?
        .run([1, 1, 1])?;
    let y = case.read(dtype, &y)?;
    anyhow::ensure!(y[0].is_nan() && y[1].is_finite(), "of NaN and 1 came {y:?}");
    Ok(())
}
