//! Steps of optimizers.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Dtype, Random, close};

/// Steps taken one after another, so that what is carried over counts.
const STEPS: i32 = 3;
const COUNT: usize = 1003;
const RATE: f32 = 0.05;
const DECAY: f32 = 0.01;

pub(crate) fn check_sgd(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let nesterov = case.flag("NESTEROV");
    let (momentum, dampening) = (0.9f32, 0.25f32);
    let exact = |value: f32| f64::from(value);
    let mut random = Random::new(20);
    let mut weights = random.values(dtype, COUNT, -1.0, 1.0);
    let mut velocity = vec![0.0; COUNT];
    for _ in 0..STEPS {
        let gradients = random.values(dtype, COUNT, -1.0, 1.0);
        let weights_memory = case.memory(dtype, &weights)?;
        let velocity_memory = case.memory(Dtype::Fp32, &velocity)?;
        let gradients_memory = case.input(dtype, &gradients)?;
        case.kernel("gfxpack_sgd")?
            .memory(&weights_memory)?
            .memory(&gradients_memory)?
            .memory(&velocity_memory)?
            .value(COUNT as u32)?
            .value(RATE)?
            .value(momentum)?
            .value(dampening)?
            .value(DECAY)?
            .run([2, 1, 1])?;

        for i in 0..COUNT {
            let gradient = gradients[i] + exact(DECAY) * weights[i];
            velocity[i] = exact(momentum) * velocity[i] + (1.0 - exact(dampening)) * gradient;
            let step =
                if nesterov { gradient + exact(momentum) * velocity[i] } else { velocity[i] };
            weights[i] -= exact(RATE) * step;
        }
        let got = case.read(dtype, &weights_memory)?;
        close("weights", dtype, &got, &weights, 1e-6)?;
        let got_velocity = case.read(Dtype::Fp32, &velocity_memory)?;
        close("velocity", Dtype::Fp32, &got_velocity, &velocity, 1e-6)?;
        weights = got;
        velocity = got_velocity;
    }
    Ok(())
}

pub(crate) fn check_adam(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let (decoupled, amsgrad) = (case.flag("DECOUPLED"), case.flag("AMSGRAD"));
    let (beta1, beta2, epsilon) = (0.9f32, 0.99f32, 1e-6f32);
    let exact = |value: f32| f64::from(value);
    let mut random = Random::new(21);
    let mut weights = random.values(dtype, COUNT, -1.0, 1.0);
    let [mut first, mut second, mut largest] =
        [vec![0.0; COUNT], vec![0.0; COUNT], vec![0.0; COUNT]];
    for step in 1..=STEPS {
        // Smaller every time, so that the largest second moment is an old one.
        let reach = 0.1f64.powi(step);
        let gradients = random.values(dtype, COUNT, -reach, reach);
        let correction1 = 1.0 - exact(beta1).powi(step);
        let correction2 = 1.0 - exact(beta2).powi(step);
        let weights_memory = case.memory(dtype, &weights)?;
        let gradients_memory = case.input(dtype, &gradients)?;
        let first_memory = case.memory(Dtype::Fp32, &first)?;
        let second_memory = case.memory(Dtype::Fp32, &second)?;
        let largest_memory = case.memory(Dtype::Fp32, &largest)?;
        let mut launch = case
            .kernel("gfxpack_adam")?
            .memory(&weights_memory)?
            .memory(&gradients_memory)?
            .memory(&first_memory)?
            .memory(&second_memory)?;
        if amsgrad {
            launch = launch.memory(&largest_memory)?;
        }
        launch
            .value(COUNT as u32)?
            .value(RATE)?
            .value(beta1)?
            .value(beta2)?
            .value(epsilon)?
            .value(DECAY)?
            .value(correction1 as f32)?
            .value(correction2 as f32)?
            .run([2, 1, 1])?;

        for i in 0..COUNT {
            let mut gradient = gradients[i];
            if decoupled {
                weights[i] *= 1.0 - exact(RATE) * exact(DECAY);
            } else {
                gradient += exact(DECAY) * weights[i];
            }
            first[i] = exact(beta1) * first[i] + (1.0 - exact(beta1)) * gradient;
            second[i] = exact(beta2) * second[i] + (1.0 - exact(beta2)) * gradient.powi(2);
            largest[i] = second[i].max(largest[i]);
            let scale = if amsgrad { largest[i] } else { second[i] };
            weights[i] -= exact(RATE) * (first[i] / correction1)
                / ((scale / correction2).sqrt() + exact(epsilon));
        }
        let float = |memory| case.read(Dtype::Fp32, memory);
        let got = case.read(dtype, &weights_memory)?;
        close("weights", dtype, &got, &weights, 1e-6)?;
        close("first moment", Dtype::Fp32, &float(&first_memory)?, &first, 1e-8)?;
        close("second moment", Dtype::Fp32, &float(&second_memory)?, &second, 1e-10)?;
        if amsgrad {
            close("largest", Dtype::Fp32, &float(&largest_memory)?, &largest, 1e-10)?;
        }
        weights = got;
        first = float(&first_memory)?;
        second = float(&second_memory)?;
        if amsgrad {
            largest = float(&largest_memory)?;
        }
    }
    Ok(())
}
