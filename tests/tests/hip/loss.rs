//! Reference for cross entropy.

use anyhow::Result;

use super::launch::Launch;
use super::numbers::{Element, Random};
use super::options::Options;

const IGNORED: i64 = -100;
const SMOOTHING: f64 = 0.125;

pub(crate) fn cross_entropy(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let group = options.group()?;
    let mut random = Random::new(11);
    let mut launches = Vec::new();
    for classes in [300, 7, 1] {
        let count = classes as i64;
        // Real ones, the first and last, one to be left out, and ones that don't exist.
        let targets = [random.below(classes) as i64, 0, count - 1, IGNORED, count, -1];
        let logits = random.values(element, targets.len() * classes, -20.0, 20.0);
        let loss_gradients = random.values(Element::F32, targets.len(), 0.5, 1.5);
        let (mut losses, mut log_sums, mut gradients) = (Vec::new(), Vec::new(), Vec::new());
        for (row, logits) in logits.chunks(classes).enumerate() {
            let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log_sum =
                largest + logits.iter().map(|logit| (logit - largest).exp()).sum::<f64>().ln();
            let target = targets[row];
            let known = (0..count).contains(&target);
            let unknown = if target == IGNORED { 0.0 } else { f64::NAN };
            // Cross entropy with the smoothed distribution, term by term.
            let wanted = |class: usize| {
                let sharp = if class as i64 == target { 1.0 - SMOOTHING } else { 0.0 };
                sharp + SMOOTHING / classes as f64
            };
            let terms = logits.iter().enumerate().map(|(i, logit)| wanted(i) * (log_sum - logit));
            losses.push(if known { terms.sum() } else { unknown });
            gradients.extend(logits.iter().enumerate().map(|(i, logit)| {
                let slope = (logit - log_sum).exp() - wanted(i);
                if known { loss_gradients[row] * slope } else { unknown }
            }));
            log_sums.push(log_sum);
        }
        let settings = |launch: Launch| launch.i32(classes).i64(IGNORED).f32(SMOOTHING);
        launches.push(settings(
            Launch::blocks("cross_entropy_forward", targets.len(), group)
                .input(element, &logits)
                .integers(&targets)
                .output(Element::F32, losses, 1e-4)
                .output(Element::F32, log_sums.clone(), 1e-5),
        ));
        launches.push(settings(
            Launch::blocks("cross_entropy_backward", targets.len(), group)
                .input(element, &logits)
                .integers(&targets)
                .input(Element::F32, &log_sums)
                .input(Element::F32, &loss_gradients)
                .output(element, gradients, 1e-5),
        ));
    }
    Ok(launches)
}
