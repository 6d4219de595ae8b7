//! References for kernels that work along one dimension of
//! `[outer][length][inner]`: softmax and reductions.

use anyhow::{Result, bail};

use super::launch::Launch;
use super::numbers::{Element, Random};
use super::options::Options;

/// Longer than a block, shorter than a wave, a single element.
const SHAPES: &[[usize; 3]] = &[[3, 300, 1], [2, 9, 5], [1, 1, 1], [1, 257, 2]];

/// The places of the elements of every line.
fn lines([outer, length, inner]: [usize; 3]) -> Vec<Vec<usize>> {
    (0..outer * inner)
        .map(|line| {
            let start = line / inner * length * inner + line % inner;
            (0..length).map(|i| start + i * inner).collect()
        })
        .collect()
}

pub(crate) fn softmax(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let log = options.flag("LOG");
    let group = options.group()?;
    let mut random = Random::new(4);
    let mut launches = Vec::new();
    for &shape in SHAPES {
        let [_, length, inner] = shape;
        let count = shape.iter().product();
        // Far from 0, where exponentials overflow unless the maximum is taken off.
        let x = random.values(element, count, 80.0, 120.0);
        let dy = random.values(element, count, -1.0, 1.0);
        let (mut forward, mut backward) = (vec![0.0; count], vec![0.0; count]);
        let mut y = vec![0.0; count];
        for line in lines(shape) {
            let largest = line.iter().map(|&at| x[at]).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = line.iter().map(|&at| (x[at] - largest).exp()).sum();
            for &at in &line {
                let off = x[at] - largest;
                forward[at] = if log { off - sum.ln() } else { off.exp() / sum };
            }
        }
        y.copy_from_slice(&element.rounded(&forward));
        for line in lines(shape) {
            let weight = |at: usize| if log { dy[at] } else { dy[at] * y[at] };
            let sum: f64 = line.iter().map(|&at| weight(at)).sum();
            for &at in &line {
                backward[at] =
                    if log { dy[at] - y[at].exp() * sum } else { (dy[at] - sum) * y[at] };
            }
        }
        let blocks = lines(shape).len();
        let slack = 2f64.powi(-17);
        launches.push(
            Launch::blocks("softmax_forward", blocks, group)
                .input(element, &x)
                .output(element, forward, slack)
                .i32(length)
                .i32(inner),
        );
        launches.push(
            Launch::blocks("softmax_backward", blocks, group)
                .input(element, &y)
                .input(element, &dy)
                .output(element, backward, slack)
                .i32(length)
                .i32(inner),
        );
    }
    Ok(launches)
}

pub(crate) fn reduce(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let group = options.group()?;
    let op = options.number("OP")?;
    let reduced = |values: &[f64]| -> Result<f64> {
        let sum: f64 = values.iter().sum();
        Ok(match op {
            0 => sum,
            1 => sum / values.len() as f64,
            2 => values.iter().product(),
            3 => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            4 => values.iter().copied().fold(f64::INFINITY, f64::min),
            5 => values.iter().map(|value| value * value).sum::<f64>().sqrt(),
            _ => bail!("failed to find reduction {op}"),
        })
    };
    // A product of many factors stays in range only if they are near 1.
    let (low, high) = if op == 2 { (0.9, 1.1) } else { (-1.0, 1.0) };
    let mut random = Random::new(5);
    let mut launches = Vec::new();
    for (&shape, (alpha, beta)) in SHAPES.iter().zip([(2.0, 0.5), (1.0, 0.0)].into_iter().cycle()) {
        let [outer, length, inner] = shape;
        let x = random.values(element, shape.iter().product(), low, high);
        let lines = lines(shape);
        let before = match beta {
            0.0 => vec![f64::NAN; lines.len()],
            _ => random.values(element, lines.len(), -1.0, 1.0),
        };
        let mut after = Vec::new();
        for (line, before) in lines.iter().zip(&before) {
            let values: Vec<f64> = line.iter().map(|&at| x[at]).collect();
            let kept = if beta == 0.0 { 0.0 } else { beta * before };
            after.push(alpha * reduced(&values)? + kept);
        }
        let slack = slack(element, length);
        let finish = |launch: Launch| launch.i32(length).i32(inner).f32(alpha).f32(beta);
        launches.push(finish(
            Launch::blocks("reduce_line", lines.len(), group).input(element, &x).update(
                element,
                &before,
                after.clone(),
                slack,
            ),
        ));
        launches.push(finish(
            Launch::blocks("reduce_many", 1, group)
                .input(element, &x)
                .update(element, &before, after, slack)
                .i32(outer),
        ));
    }
    Ok(launches)
}

/// What a sum of `length` values below 1 may be off in fp32.
fn slack(element: Element, length: usize) -> f64 {
    let steps = length as f64 * 2f64.powi(-22);
    if element == Element::F32 { steps } else { steps + 2f64.powi(-20) }
}
