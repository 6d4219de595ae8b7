//! Batch normalisation: inference, training and gradients.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Dtype, Random, close};

const EPSILON: f32 = 1e-3;

/// A packed NCHW tensor and which of its elements share statistics.
struct Shape {
    batch: usize,
    channels: usize,
    places: usize,
    spatial: bool,
}

impl Shape {
    fn new(case: &Case<'_>, [batch, channels, places]: [usize; 3]) -> Result<Self> {
        Ok(Self { batch, channels, places, spatial: case.number("MODE")? == 1 })
    }

    fn count(&self) -> usize {
        self.batch * self.channels * self.places
    }

    fn parameters(&self) -> usize {
        if self.spatial { self.channels } else { self.channels * self.places }
    }

    /// Which parameter an element has.
    fn parameter(&self, at: usize) -> usize {
        let place = at % (self.channels * self.places);
        if self.spatial { place / self.places } else { place }
    }

    /// The elements that share a parameter.
    fn members(&self, parameter: usize) -> Vec<usize> {
        (0..self.count()).filter(|at| self.parameter(*at) == parameter).collect()
    }

    /// A work-group per channel, or enough for a work-item per place.
    fn groups(&self, case: &Case<'_>) -> Result<[usize; 3]> {
        let items = self.channels * self.places;
        Ok([if self.spatial { self.channels } else { items.div_ceil(case.number("WG")?) }, 1, 1])
    }
}

pub(crate) fn check_inference(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    for lengths in [[2, 3, 35], [3, 2, 300]] {
        let shape = Shape::new(case, lengths)?;
        let mut random = Random::new(7);
        let mut parameters = |low, high| random.values(Dtype::Fp32, shape.parameters(), low, high);
        let mean = parameters(-1.0, 1.0);
        let variance = parameters(0.1, 2.0);
        let weight = parameters(0.5, 2.0);
        let bias = parameters(-1.0, 1.0);
        let x = random.values(dtype, shape.count(), -3.0, 3.0);
        let want: Vec<f64> = x
            .iter()
            .enumerate()
            .map(|(at, x)| {
                let p = shape.parameter(at);
                (x - mean[p]) / (variance[p] + f64::from(EPSILON)).sqrt() * weight[p] + bias[p]
            })
            .collect();

        let x = case.input(dtype, &x)?;
        let y = case.output(dtype, shape.count())?;
        let [mean, variance, weight, bias] =
            [mean, variance, weight, bias].map(|values| case.input(Dtype::Fp32, &values));
        case.kernel("gfxpack_batch_norm_inference")?
            .memory(&x)?
            .memory(&y)?
            .memory(&mean?)?
            .memory(&variance?)?
            .memory(&weight?)?
            .memory(&bias?)?
            .value(shape.places as u32)?
            .value(EPSILON)?
            .run([1, shape.channels, shape.batch])?;
        close("y", dtype, &case.read(dtype, &y)?, &want, 5e-6)?;
    }
    Ok(())
}

/// What a batch says of itself, per parameter.
struct Statistics {
    mean: Vec<f64>,
    variance: Vec<f64>,
    inverse: Vec<f64>,
}

fn statistics(shape: &Shape, x: &[f64]) -> Statistics {
    let mut statistics = Statistics { mean: Vec::new(), variance: Vec::new(), inverse: Vec::new() };
    for parameter in 0..shape.parameters() {
        let members = shape.members(parameter);
        let count = members.len() as f64;
        let mean = members.iter().map(|at| x[*at]).sum::<f64>() / count;
        let variance = members.iter().map(|at| (x[*at] - mean).powi(2)).sum::<f64>() / count;
        statistics.mean.push(mean);
        statistics.variance.push(variance);
        statistics.inverse.push((variance + f64::from(EPSILON)).sqrt().recip());
    }
    statistics
}

pub(crate) fn check_training(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let running = case.flag("RUNNING");
    let factor = 0.1f32;
    // Less and more than a work-group per channel; a batch of one image.
    for lengths in [[3, 4, 35], [4, 2, 150], [1, 2, 7]] {
        let shape = Shape::new(case, lengths)?;
        let mut random = Random::new(8);
        let mut parameters = |low, high| random.values(Dtype::Fp32, shape.parameters(), low, high);
        let weight = parameters(0.5, 2.0);
        let bias = parameters(-1.0, 1.0);
        let old_mean = parameters(-1.0, 1.0);
        let old_variance = parameters(0.5, 2.0);
        let x = random.values(dtype, shape.count(), 1.0, 4.0);
        let statistics = statistics(&shape, &x);
        let want: Vec<f64> = x
            .iter()
            .enumerate()
            .map(|(at, x)| {
                let p = shape.parameter(at);
                (x - statistics.mean[p]) * statistics.inverse[p] * weight[p] + bias[p]
            })
            .collect();
        let each = (shape.count() / shape.parameters()) as f64;
        let freed = if each > 1.0 { each / (each - 1.0) } else { 1.0 };
        let blend = |old: &[f64], new: &[f64], scale: f64| -> Vec<f64> {
            let factor = f64::from(factor);
            let pairs = old.iter().zip(new);
            pairs.map(|(old, new)| (1.0 - factor) * old + factor * new * scale).collect()
        };

        let x = case.input(dtype, &x)?;
        let y = case.output(dtype, shape.count())?;
        let weight = case.input(Dtype::Fp32, &weight)?;
        let bias = case.input(Dtype::Fp32, &bias)?;
        let mean = case.output(Dtype::Fp32, shape.parameters())?;
        let inverse = case.output(Dtype::Fp32, shape.parameters())?;
        let running_mean = case.memory(Dtype::Fp32, &old_mean)?;
        let running_variance = case.memory(Dtype::Fp32, &old_variance)?;
        let mut launch = case
            .kernel("gfxpack_batch_norm_training")?
            .memory(&x)?
            .memory(&y)?
            .memory(&weight)?
            .memory(&bias)?
            .memory(&mean)?
            .memory(&inverse)?
            .value(shape.batch as u32)?
            .value(shape.channels as u32)?
            .value(shape.places as u32)?
            .value(EPSILON)?;
        if running {
            launch = launch.memory(&running_mean)?.memory(&running_variance)?.value(factor)?;
        }
        launch.run(shape.groups(case)?)?;

        let float = |memory| case.read(Dtype::Fp32, memory);
        close("y", dtype, &case.read(dtype, &y)?, &want, 1e-5)?;
        close("mean", Dtype::Fp32, &float(&mean)?, &statistics.mean, 0.0)?;
        close("inverse", Dtype::Fp32, &float(&inverse)?, &statistics.inverse, 1e-5)?;
        if running {
            let want = blend(&old_mean, &statistics.mean, 1.0);
            close("running mean", Dtype::Fp32, &float(&running_mean)?, &want, 1e-6)?;
            let want = blend(&old_variance, &statistics.variance, freed);
            close("running variance", Dtype::Fp32, &float(&running_variance)?, &want, 1e-6)?;
        }
    }
    Ok(())
}

pub(crate) fn check_backward(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    for lengths in [[3, 4, 35], [4, 2, 150]] {
        let shape = Shape::new(case, lengths)?;
        let mut random = Random::new(9);
        let weight = random.values(Dtype::Fp32, shape.parameters(), 0.5, 2.0);
        let x = random.values(dtype, shape.count(), 1.0, 4.0);
        let dy = random.values(dtype, shape.count(), -1.0, 1.0);
        let statistics = statistics(&shape, &x);

        let mut dx = vec![0.0; shape.count()];
        let mut dweight = vec![0.0; shape.parameters()];
        let mut dbias = vec![0.0; shape.parameters()];
        for p in 0..shape.parameters() {
            let members = shape.members(p);
            let n = members.len() as f64;
            let normal = |at: usize| (x[at] - statistics.mean[p]) * statistics.inverse[p];
            for i in &members {
                dweight[p] += dy[*i] * normal(*i);
                dbias[p] += dy[*i];
                // The Jacobian of the normalisation.
                for j in &members {
                    let same = if i == j { 1.0 } else { 0.0 };
                    let slope = same - (1.0 + normal(*i) * normal(*j)) / n;
                    dx[*i] += dy[*j] * weight[p] * statistics.inverse[p] * slope;
                }
            }
        }

        let x = case.input(dtype, &x)?;
        let dy = case.input(dtype, &dy)?;
        let dx_memory = case.output(dtype, shape.count())?;
        let weight = case.input(Dtype::Fp32, &weight)?;
        let dweight_memory = case.output(Dtype::Fp32, shape.parameters())?;
        let dbias_memory = case.output(Dtype::Fp32, shape.parameters())?;
        let mean = case.input(Dtype::Fp32, &statistics.mean)?;
        let inverse = case.input(Dtype::Fp32, &statistics.inverse)?;
        let launch = case
            .kernel("gfxpack_batch_norm_backward")?
            .memory(&x)?
            .memory(&dy)?
            .memory(&dx_memory)?
            .memory(&weight)?
            .memory(&dweight_memory)?
            .memory(&dbias_memory)?
            .value(shape.batch as u32)?
            .value(shape.channels as u32)?
            .value(shape.places as u32)?;
        let launch = if case.flag("USE_SAVED") {
            launch.memory(&mean)?.memory(&inverse)?
        } else {
            launch.value(EPSILON)?
        };
        launch.run(shape.groups(case)?)?;

        let float = |memory| case.read(Dtype::Fp32, memory);
        // A variance near zero makes the slopes large.
        let largest = dx.iter().fold(1.0, |largest: f64, dx| largest.max(dx.abs()));
        close("dx", dtype, &case.read(dtype, &dx_memory)?, &dx, 1e-5 * largest)?;
        close("dweight", Dtype::Fp32, &float(&dweight_memory)?, &dweight, 2e-5)?;
        close("dbias", Dtype::Fp32, &float(&dbias_memory)?, &dbias, 2e-5)?;
    }
    Ok(())
}
