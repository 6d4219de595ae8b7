//! Layer normalisation and its gradients.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Dtype, Random, close};

const EPSILON: f32 = 1e-3;

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    // Rows shorter and longer than a work-group; columns that fill no block.
    for (rows, length) in [(37, 21), (3, 601)] {
        check_shape(case, rows, length)?;
    }
    Ok(())
}

/// What the kernels must give, with 64 bits.
struct Reference {
    mean: Vec<f64>,
    inverse: Vec<f64>,
    y: Vec<f64>,
    dx: Vec<f64>,
    dweight: Vec<f64>,
    dbias: Vec<f64>,
}

impl Reference {
    fn new(rows: usize, x: &[f64], dy: &[f64], weight: &[f64], bias: &[f64]) -> Self {
        let length = weight.len();
        let n = length as f64;
        let mut mean = vec![0.0; rows];
        let mut inverse = vec![0.0; rows];
        let mut y = vec![0.0; rows * length];
        let mut dx = vec![0.0; rows * length];
        let mut dweight = vec![0.0; length];
        let mut dbias = vec![0.0; length];
        for row in 0..rows {
            let at = |i: usize| row * length + i;
            let sum: f64 = (0..length).map(|i| x[at(i)]).sum();
            mean[row] = sum / n;
            let variance = (0..length).map(|i| (x[at(i)] - mean[row]).powi(2)).sum::<f64>() / n;
            inverse[row] = (variance + f64::from(EPSILON)).sqrt().recip();
            let normal: Vec<f64> =
                (0..length).map(|i| (x[at(i)] - mean[row]) * inverse[row]).collect();
            let slope: Vec<f64> = (0..length).map(|i| dy[at(i)] * weight[i]).collect();
            for i in 0..length {
                y[at(i)] = normal[i] * weight[i] + bias[i];
                dweight[i] += dy[at(i)] * normal[i];
                dbias[i] += dy[at(i)];
                // The Jacobian of the normalisation, row by row.
                for j in 0..length {
                    let same = if i == j { 1.0 } else { 0.0 };
                    dx[at(i)] +=
                        slope[j] * inverse[row] * (same - (1.0 + normal[i] * normal[j]) / n);
                }
            }
        }
        Self { mean, inverse, y, dx, dweight, dbias }
    }
}

fn check_shape(case: &Case<'_>, rows: usize, length: usize) -> Result<()> {
    let dtype = case.dtype()?;
    let affine = case.flag("AFFINE");
    let mut random = Random::new(6);
    let x = random.values(dtype, rows * length, 1.0, 5.0);
    let dy = random.values(dtype, rows * length, -1.0, 1.0);
    let weight = if affine { random.values(dtype, length, 0.5, 2.0) } else { vec![1.0; length] };
    let bias = if affine { random.values(dtype, length, -1.0, 1.0) } else { vec![0.0; length] };

    let Reference { mean, inverse, y, dx, dweight, dbias } =
        Reference::new(rows, &x, &dy, &weight, &bias);

    let (rows_value, length_value) = (rows as u32, length as u32);
    let x_memory = case.input(dtype, &x)?;
    let weight_memory = case.input(dtype, &weight)?;
    let bias_memory = case.input(dtype, &bias)?;
    let y_memory = case.output(dtype, rows * length)?;
    let mean_memory = case.output(Dtype::Fp32, rows)?;
    let inverse_memory = case.output(Dtype::Fp32, rows)?;
    let mut launch = case.kernel("gfxpack_layer_norm_forward")?.memory(&x_memory)?;
    if affine {
        launch = launch.memory(&weight_memory)?.memory(&bias_memory)?;
    }
    launch
        .memory(&y_memory)?
        .memory(&mean_memory)?
        .memory(&inverse_memory)?
        .value(rows_value)?
        .value(length_value)?
        .value(EPSILON)?
        .run([2, 1, 1])?;
    close("y", dtype, &case.read(dtype, &y_memory)?, &y, 5e-6)?;
    close("mean", Dtype::Fp32, &case.read(Dtype::Fp32, &mean_memory)?, &mean, 0.0)?;
    close("inverse", Dtype::Fp32, &case.read(Dtype::Fp32, &inverse_memory)?, &inverse, 0.0)?;

    let dy_memory = case.input(dtype, &dy)?;
    let mean_memory = case.input(Dtype::Fp32, &mean)?;
    let inverse_memory = case.input(Dtype::Fp32, &inverse)?;
    let dx_memory = case.output(dtype, rows * length)?;
    let mut launch =
        case.kernel("gfxpack_layer_norm_backward")?.memory(&x_memory)?.memory(&dy_memory)?;
    if affine {
        launch = launch.memory(&weight_memory)?;
    }
    launch
        .memory(&mean_memory)?
        .memory(&inverse_memory)?
        .memory(&dx_memory)?
        .value(rows_value)?
        .value(length_value)?
        .run([2, 1, 1])?;
    close("dx", dtype, &case.read(dtype, &dx_memory)?, &dx, 5e-6)?;

    if !affine {
        return Ok(());
    }
    let dweight_memory = case.output(dtype, length)?;
    let dbias_memory = case.output(dtype, length)?;
    case.kernel("gfxpack_layer_norm_backward_weight")?
        .memory(&x_memory)?
        .memory(&dy_memory)?
        .memory(&mean_memory)?
        .memory(&inverse_memory)?
        .memory(&dweight_memory)?
        .memory(&dbias_memory)?
        .value(rows_value)?
        .value(length_value)?
        .run([length.div_ceil(16), 1, 1])?;
    close("dweight", dtype, &case.read(dtype, &dweight_memory)?, &dweight, 2e-5)?;
    close("dbias", dtype, &case.read(dtype, &dbias_memory)?, &dbias, 2e-5)
}
