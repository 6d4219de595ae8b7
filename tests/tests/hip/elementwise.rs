//! References for kernels whose results depend on few elements each: tensor
//! operations, gated linear units, optimizer steps.

use anyhow::{Result, bail};

use super::launch::Launch;
use super::numbers::{Element, Random};
use super::options::Options;

pub(crate) fn tensor_op(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let group = options.group()?;
    let op = options.number("OP")?;
    let combine = |a: f64, b: f64| {
        Ok(match op {
            0 => a + b,
            1 => a * b,
            2 => a.min(b),
            3 => a.max(b),
            _ => bail!("failed to find operation {op}"),
        })
    };
    // B broadcast along two dimensions and A turned round; a bias per channel
    // into a padded C; one element.
    let cases: [[[usize; 5]; 4]; 3] = [
        [[2, 3, 4, 5, 3], [1, 2, 6, 24, 120], [12, 0, 3, 0, 1], [180, 60, 15, 3, 1]],
        [[1, 1, 2, 5, 33], [330, 330, 165, 33, 1], [0, 0, 0, 1, 0], [350, 350, 175, 35, 1]],
        [[1; 5], [1; 5], [1; 5], [1; 5]],
    ];
    let mut random = Random::new(12);
    let mut launches = Vec::new();
    for ([lengths, a_strides, b_strides, c_strides], beta) in cases.into_iter().zip([0.5, 0.0, 1.0])
    {
        const ALPHAS: [f64; 2] = [0.5, 1.5];
        let reach = |strides: [usize; 5]| {
            1 + lengths
                .iter()
                .zip(strides)
                .map(|(length, stride)| (length - 1) * stride)
                .sum::<usize>()
        };
        let a = random.values(element, reach(a_strides), -1.0, 1.0);
        let b = random.values(element, reach(b_strides), -1.0, 1.0);
        let before = random.values(element, reach(c_strides), -1.0, 1.0);
        let mut after = before.clone();
        for flat in 0..lengths.iter().product() {
            let mut left: usize = flat;
            let (mut at_a, mut at_b, mut at_c) = (0, 0, 0);
            for d in (0..5).rev() {
                let index = left % lengths[d];
                left /= lengths[d];
                at_a += index * a_strides[d];
                at_b += index * b_strides[d];
                at_c += index * c_strides[d];
            }
            let result = combine(ALPHAS[0] * a[at_a], ALPHAS[1] * b[at_b])?;
            after[at_c] = result + beta * before[at_c];
        }
        let fields = [lengths, a_strides, b_strides, c_strides].into_iter().flatten();
        launches.push(
            Launch::blocks("tensor_op", 1, group)
                .input(element, &a)
                .input(element, &b)
                .update(element, &before, after, 1e-6)
                .structure(fields.map(|field| (field as i32).to_le_bytes()))
                .f32(ALPHAS[0])
                .f32(ALPHAS[1])
                .f32(beta),
        );
    }
    Ok(launches)
}

/// The error function by its power series, exact to 1e-12 for |x| < 4.
///
/// Source: Abramowitz and Stegun, 7.1.5.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

pub(crate) fn glu(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let group = options.group()?;
    let kind = options.number("ACTIVATION")?;
    let activation = |x: f64| -> f64 {
        match kind {
            0 => 1.0 / (1.0 + (-x).exp()),
            1 => x / (1.0 + (-x).exp()),
            _ => 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)),
        }
    };
    // By a difference of the function itself: independent of the kernel's formula.
    let slope = |x: f64| (activation(x + 1e-5) - activation(x - 1e-5)) / 2e-5;
    let mut random = Random::new(13);
    let mut launches = Vec::new();
    for [outer, length, inner] in [[2, 5, 7], [1, 300, 1], [3, 1, 1]] {
        let half = length * inner;
        let x = random.values(element, 2 * outer * half, -4.0, 4.0);
        let dy = random.values(element, outer * half, -1.0, 1.0);
        let (mut y, mut dx) = (Vec::new(), Vec::new());
        for (x, dy) in x.chunks(2 * half).zip(dy.chunks(half)) {
            let (values, gates) = x.split_at(half);
            y.extend(values.iter().zip(gates).map(|(value, &gate)| value * activation(gate)));
            dx.extend(dy.iter().zip(gates).map(|(dy, &gate)| dy * activation(gate)));
            dx.extend((0..half).map(|i| dy[i] * values[i] * slope(gates[i])));
        }
        let sizes = |launch: Launch| launch.i32(outer).i32(length).i32(inner);
        launches.push(sizes(
            Launch::blocks("glu_forward", 1, group).input(element, &x).output(element, y, 2e-6),
        ));
        launches.push(sizes(
            Launch::blocks("glu_backward", 1, group)
                .input(element, &x)
                .input(element, &dy)
                .output(element, dx, 2e-6),
        ));
    }
    Ok(launches)
}

pub(crate) fn adam(options: &Options) -> Result<Vec<Launch>> {
    const COUNT: usize = 1000;
    const RATE: f64 = 0.01;
    const BETAS: [f64; 2] = [0.9, 0.99];
    const EPSILON: f64 = 0.01;
    const DECAY: f64 = 0.1;
    const GRADIENT_SCALE: f64 = 0.25;
    const STEP: i32 = 3;
    let element = options.element()?;
    let group = options.group()?;
    let (decoupled, amsgrad) = (options.flag("DECOUPLED"), options.flag("AMSGRAD"));
    let has_master = options.flag("MASTER");
    let corrections = BETAS.map(|beta| 1.0 - beta.powi(STEP));
    let mut random = Random::new(14);
    let parameter = random.values(element, COUNT, -1.0, 1.0);
    let gradient = random.values(element, COUNT, -4.0, 4.0);
    let mut state = |low| random.values(Element::F32, COUNT, low, 1.0);
    let (first, second, largest, master) = (state(-1.0), state(0.01), state(0.01), state(-1.0));
    let (mut parameter_after, mut master_after) = (Vec::new(), master.clone());
    let (mut first_after, mut second_after) = (Vec::new(), Vec::new());
    let mut largest_after = largest.clone();
    for i in 0..COUNT {
        let mut value = if has_master { master[i] } else { parameter[i] };
        let mut slope = gradient[i] * GRADIENT_SCALE;
        if decoupled {
            value *= 1.0 - RATE * DECAY;
        } else {
            slope += DECAY * value;
        }
        let moment1 = BETAS[0] * first[i] + (1.0 - BETAS[0]) * slope;
        let moment2 = BETAS[1] * second[i] + (1.0 - BETAS[1]) * slope * slope;
        let mut divisor2 = moment2;
        if amsgrad {
            divisor2 = moment2.max(largest[i]);
            largest_after[i] = divisor2;
        }
        let root = (divisor2 / corrections[1]).sqrt();
        value -= RATE * (moment1 / corrections[0]) / (root + EPSILON);
        if has_master {
            master_after[i] = value;
        }
        parameter_after.push(value);
        first_after.push(moment1);
        second_after.push(moment2);
    }
    let settings =
        [RATE, BETAS[0], BETAS[1], EPSILON, DECAY, corrections[0], corrections[1], GRADIENT_SCALE];
    let slack = 1e-6;
    Ok(vec![
        Launch::blocks("adam_step", 3, group)
            .update(element, &parameter, parameter_after, slack)
            .input(element, &gradient)
            .update(Element::F32, &first, first_after, slack)
            .update(Element::F32, &second, second_after, slack)
            .update(Element::F32, &largest, largest_after, slack)
            .update(Element::F32, &master, master_after, slack)
            .structure(settings.map(|value| (value as f32).to_le_bytes()))
            .i64(COUNT as i64),
    ])
}
