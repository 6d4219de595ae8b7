//! References for layer, group and batch normalisation.

use anyhow::Result;

use super::launch::Launch;
use super::numbers::{Element, Random};
use super::options::Options;

const EPSILON: f64 = 1e-3;
/// Statistics and sums of a few hundred values of order 1 in fp32.
const SLACK: f64 = 1e-4;

/// A set of values' mean and reciprocal standard deviation.
fn statistics(values: impl Iterator<Item = f64> + Clone, centered: bool) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = if centered { values.clone().sum::<f64>() / count } else { 0.0 };
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

/// The gradient of the normalised values' input, from that of the normalised
/// values: both over one set.
fn input_gradient(normal: &[f64], gradient: &[f64], scale: f64, centered: bool) -> Vec<f64> {
    let count = normal.len() as f64;
    let along = normal.iter().zip(gradient).map(|(n, g)| n * g).sum::<f64>() / count;
    let total = if centered { gradient.iter().sum::<f64>() / count } else { 0.0 };
    normal.iter().zip(gradient).map(|(n, g)| scale * (g - total - n * along)).collect()
}

pub(crate) fn layernorm(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let group = options.group()?;
    let rms = options.flag("RMS");
    let mut launches = Vec::new();
    for [rows, columns] in [[3, 300], [19, 45], [1, 1]] {
        launches.extend(layernorm_case(element, group, rms, rows, columns));
    }
    Ok(launches)
}

fn layernorm_case(
    element: Element,
    group: u32,
    rms: bool,
    rows: usize,
    columns: usize,
) -> [Launch; 3] {
    let mut random = Random::new(6);
    // Off-centre, so that a mean that is not taken off shows.
    let x = random.values(element, rows * columns, 2.0, 4.0);
    let dy = random.values(element, rows * columns, -1.0, 1.0);
    let gamma = random.values(element, columns, 0.5, 1.5);
    let beta = random.values(element, columns, -1.0, 1.0);
    let (mut y, mut dx) = (Vec::new(), Vec::new());
    let (mut means, mut scales) = (Vec::new(), Vec::new());
    let (mut dgamma, mut dbeta) = (vec![0.0; columns], vec![0.0; columns]);
    for (row, dy) in x.chunks(columns).zip(dy.chunks(columns)) {
        let (mean, scale) = statistics(row.iter().copied(), !rms);
        let normal: Vec<f64> = row.iter().map(|value| (value - mean) * scale).collect();
        let gradient: Vec<f64> = dy.iter().zip(&gamma).map(|(dy, gamma)| dy * gamma).collect();
        dx.extend(input_gradient(&normal, &gradient, scale, !rms));
        for column in 0..columns {
            let bias = if rms { 0.0 } else { beta[column] };
            y.push(normal[column] * gamma[column] + bias);
            dgamma[column] += dy[column] * normal[column];
            dbeta[column] += dy[column];
        }
        means.push(mean);
        scales.push(scale);
    }
    [
        Launch::blocks("layernorm_forward", rows, group)
            .input(element, &x)
            .input(element, &gamma)
            .input(element, &beta)
            .output(element, y, SLACK)
            .output(Element::F32, means.clone(), SLACK)
            .output(Element::F32, scales.clone(), SLACK)
            .i32(columns)
            .f32(EPSILON),
        Launch::blocks("layernorm_backward", rows, group)
            .input(element, &x)
            .input(element, &dy)
            .input(element, &gamma)
            .input(Element::F32, &means)
            .input(Element::F32, &scales)
            .output(element, dx, SLACK)
            .i32(columns),
        Launch::new("layernorm_backward_weights", [columns.div_ceil(32) as u32, 1, 1], [32, 8, 1])
            .input(element, &x)
            .input(element, &dy)
            .input(Element::F32, &means)
            .input(Element::F32, &scales)
            .output(Element::F32, dgamma, SLACK)
            .output(Element::F32, dbeta, SLACK)
            .i32(rows)
            .i32(columns),
    ]
}

pub(crate) fn groupnorm(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let group = options.group()?;
    let mut random = Random::new(7);
    let mut launches = Vec::new();
    for [batch, channels, pixels, groups] in [[2, 6, 131, 3], [1, 4, 1, 2], [2, 2, 7, 2]] {
        // Far from 0: a variance by the difference of sums would show here.
        let x = random.values(element, batch * channels * pixels, 30.0, 34.0);
        let gamma = random.values(element, channels, 0.5, 1.5);
        let beta = random.values(element, channels, -1.0, 1.0);
        let (mut y, mut means, mut scales) = (Vec::new(), Vec::new(), Vec::new());
        let length = channels / groups * pixels;
        for (set, values) in x.chunks(length).enumerate() {
            let (mean, scale) = statistics(values.iter().copied(), true);
            let first = set % groups * (channels / groups);
            y.extend(values.iter().enumerate().map(|(i, value)| {
                let channel = first + i / pixels;
                (value - mean) * scale * gamma[channel] + beta[channel]
            }));
            means.push(mean);
            scales.push(scale);
        }
        launches.push(
            Launch::blocks("groupnorm_forward", batch * groups, group)
                .input(element, &x)
                .input(element, &gamma)
                .input(element, &beta)
                .output(element, y, SLACK)
                .output(Element::F32, means, SLACK)
                .output(Element::F32, scales, SLACK)
                .i32(channels)
                .i32(pixels)
                .i32(groups)
                .f32(EPSILON),
        );
    }
    Ok(launches)
}

pub(crate) fn batchnorm(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let group = options.group()?;
    let nhwc = options.number("LAYOUT")? == 1;
    let mut launches = Vec::new();
    for [batch, channels, pixels] in [[3, 4, 101], [1, 3, 1], [2, 1, 5]] {
        launches.extend(batchnorm_case(element, group, nhwc, [batch, channels, pixels]));
    }
    Ok(launches)
}

fn batchnorm_case(
    element: Element,
    group: u32,
    nhwc: bool,
    [batch, channels, pixels]: [usize; 3],
) -> [Launch; 2] {
    const MOMENTUM: f64 = 0.25;
    let mut random = Random::new(8);
    let count = batch * channels * pixels;
    let x = random.values(element, count, 1.0, 5.0);
    let dy = random.values(element, count, -1.0, 1.0);
    let mut weights = || random.values(Element::F32, channels, 0.5, 1.5);
    let (gamma, beta) = (weights(), weights());
    let (mean_before, variance_before) = (weights(), weights());
    let (mut y, mut dx) = (vec![0.0; count], vec![0.0; count]);
    let (mut means, mut scales) = (Vec::new(), Vec::new());
    let (mut mean_after, mut variance_after) = (Vec::new(), Vec::new());
    let (mut dgamma, mut dbeta) = (Vec::new(), Vec::new());
    for channel in 0..channels {
        let places: Vec<usize> = (0..batch * pixels)
            .map(|i| {
                if nhwc {
                    i * channels + channel
                } else {
                    (i / pixels * channels + channel) * pixels + i % pixels
                }
            })
            .collect();
        let (mean, scale) = statistics(places.iter().map(|&at| x[at]), true);
        let normal: Vec<f64> = places.iter().map(|&at| (x[at] - mean) * scale).collect();
        let gradient: Vec<f64> = places.iter().map(|&at| dy[at]).collect();
        let slope = input_gradient(&normal, &gradient, scale * gamma[channel], true);
        for (i, &at) in places.iter().enumerate() {
            y[at] = normal[i] * gamma[channel] + beta[channel];
            dx[at] = slope[i];
        }
        let spread: f64 = places.iter().map(|&at| (x[at] - mean).powi(2)).sum();
        let unbiased = spread / (places.len().max(2) - 1) as f64;
        let moved = |from: f64, to: f64| from + MOMENTUM * (to - from);
        mean_after.push(moved(mean_before[channel], mean));
        variance_after.push(moved(variance_before[channel], unbiased));
        dgamma.push(normal.iter().zip(&gradient).map(|(n, g)| n * g).sum());
        dbeta.push(gradient.iter().sum());
        means.push(mean);
        scales.push(scale);
    }
    let sizes = |launch: Launch| launch.i32(batch).i32(channels).i32(pixels);
    [
        sizes(
            Launch::blocks("batchnorm_train_forward", channels, group)
                .input(element, &x)
                .input(Element::F32, &gamma)
                .input(Element::F32, &beta)
                .output(element, y, SLACK)
                .output(Element::F32, means.clone(), SLACK)
                .output(Element::F32, scales.clone(), SLACK)
                .update(Element::F32, &mean_before, mean_after, SLACK)
                .update(Element::F32, &variance_before, variance_after, SLACK),
        )
        .f32(EPSILON)
        .f32(MOMENTUM),
        sizes(
            Launch::blocks("batchnorm_train_backward", channels, group)
                .input(element, &x)
                .input(element, &dy)
                .input(Element::F32, &gamma)
                .input(Element::F32, &means)
                .input(Element::F32, &scales)
                .output(element, dx, SLACK)
                .output(Element::F32, dgamma, SLACK)
                .output(Element::F32, dbeta, SLACK),
        ),
    ]
}
