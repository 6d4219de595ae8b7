//! Local response normalisation and its gradient.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Dtype, Random, close};

const BATCH: usize = 2;
const CHANNELS: usize = 7;
const HEIGHT: usize = 17;
const WIDTH: usize = 18;
const ALPHA: f32 = 0.9;
const BETA: f32 = 0.75;
const K: f32 = 1.5;

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    // Odd, even, one element, and wider than the tensor has channels.
    for size in [5, 4, 1, 9] {
        check_size(case, size)?;
    }
    Ok(())
}

/// The elements of the window around an element, itself among them.
fn window(across: bool, size: usize, at: usize) -> Vec<usize> {
    let (before, after) = ((size - 1) / 2, size / 2);
    let near = |middle: usize, length: usize| {
        (0..length).filter(move |i| i + before >= middle && *i <= middle + after)
    };
    let (w, h) = (at % WIDTH, at / WIDTH % HEIGHT);
    let (c, n) = (at / WIDTH / HEIGHT % CHANNELS, at / WIDTH / HEIGHT / CHANNELS);
    let index = |c, h, w| ((n * CHANNELS + c) * HEIGHT + h) * WIDTH + w;
    if across {
        near(c, CHANNELS).map(|c| index(c, h, w)).collect()
    } else {
        near(h, HEIGHT)
            .flat_map(|h| near(w, WIDTH).map(move |w| (h, w)))
            .map(|(h, w)| index(c, h, w))
            .collect()
    }
}

fn check_size(case: &Case<'_>, size: usize) -> Result<()> {
    let dtype = case.dtype()?;
    let across = case.number("LRN")? == 0;
    let keep = case.flag("KEEP_SCALE");
    let count = BATCH * CHANNELS * HEIGHT * WIDTH;
    let (alpha, beta) = (f64::from(ALPHA), f64::from(BETA));
    let elements = if across { size as f64 } else { (size * size) as f64 };
    let mut random = Random::new(12);
    let x = random.values(dtype, count, -2.0, 2.0);
    let dy = random.values(dtype, count, -1.0, 1.0);

    let scale: Vec<f64> = (0..count)
        .map(|at| {
            let squares: f64 = window(across, size, at).iter().map(|i| x[*i] * x[*i]).sum();
            f64::from(K) + alpha / elements * squares
        })
        .collect();
    let y: Vec<f64> = x.iter().zip(&scale).map(|(x, scale)| x * scale.powf(-beta)).collect();
    // Every result passes its gradient on to all that it was made of.
    let mut dx = vec![0.0; count];
    for at in 0..count {
        dx[at] += dy[at] * scale[at].powf(-beta);
        let slope = -beta * x[at] * scale[at].powf(-beta - 1.0);
        for i in window(across, size, at) {
            dx[i] += dy[at] * slope * 2.0 * alpha / elements * x[i];
        }
    }

    let groups = [(HEIGHT * WIDTH).div_ceil(case.number("WG")?), CHANNELS, BATCH];
    let x = case.input(dtype, &x)?;
    let y_memory = case.output(dtype, count)?;
    let scale_memory = case.output(Dtype::Fp32, count)?;
    let mut launch = case.kernel("gfxpack_lrn_forward")?.memory(&x)?.memory(&y_memory)?;
    if keep {
        launch = launch.memory(&scale_memory)?;
    }
    launch
        .value(HEIGHT as u32)?
        .value(WIDTH as u32)?
        .value(size as u32)?
        .value(ALPHA)?
        .value(BETA)?
        .value(K)?
        .run(groups)?;
    close("y", dtype, &case.read(dtype, &y_memory)?, &y, 1e-6)?;
    if !keep {
        return Ok(());
    }
    close("scale", Dtype::Fp32, &case.read(Dtype::Fp32, &scale_memory)?, &scale, 0.0)?;

    let dy = case.input(dtype, &dy)?;
    let scale = case.input(Dtype::Fp32, &scale)?;
    let dx_memory = case.output(dtype, count)?;
    case.kernel("gfxpack_lrn_backward")?
        .memory(&x)?
        .memory(&dy)?
        .memory(&scale)?
        .memory(&dx_memory)?
        .value(HEIGHT as u32)?
        .value(WIDTH as u32)?
        .value(size as u32)?
        .value(ALPHA)?
        .value(BETA)?
        .run(groups)?;
    close("dx", dtype, &case.read(dtype, &dx_memory)?, &dx, 5e-6)
}
