//! Estimates how long a build will still take, from the expected cost of its jobs
//! and the actual cost of those that have ended.

use std::collections::HashMap;
use std::time::Duration;

use gfxpack_model::JobId;

/// The part of the work after which observed costs count as much as expected ones.
const PRIOR: f64 = 0.01;
/// A job that already takes longer than expected is assumed to need this fraction
/// of its elapsed time more.
const OVERDUE: f64 = 0.1;

/// The state of a build, from its events. All times have the same, arbitrary
/// origin.
#[derive(Debug, Clone, Default)]
pub(super) struct Estimator {
    /// By job number: class and expected seconds. A map would take several times
    /// the memory for a million jobs.
    jobs: Vec<(usize, f64)>,
    /// The jobs that are running, with their start times.
    running: HashMap<JobId, Duration>,
    /// The largest number of jobs that ran at the same time.
    at_once: usize,
    classes: Vec<Class>,
    /// Number of jobs that have not ended.
    unfinished: usize,
}

/// The jobs of one language, whose estimates may all be off by the same factor.
/// All fields are in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    /// Expected cost of all jobs, and of those that have not started.
    total: f64,
    waiting: f64,
    /// Expected and actual cost of the jobs that have ended.
    ended: f64,
    took: f64,
}

impl Class {
    /// The factor by which jobs take longer than expected; `before` if none has
    /// ended.
    fn scale(&self, before: f64) -> f64 {
        let prior = (self.total * PRIOR).max(f64::MIN_POSITIVE);
        (self.took + before * prior) / (self.ended + prior)
    }
}

impl Estimator {
    /// Starts over with these jobs: id, class (a small number), expected time.
    pub(super) fn queued(&mut self, jobs: impl IntoIterator<Item = (JobId, usize, Duration)>) {
        *self = Self::default();
        for (job, class, expected) in jobs {
            let expected = expected.as_secs_f64();
            if self.classes.len() <= class {
                self.classes.resize(class + 1, Class::default());
            }
            self.classes[class].total += expected;
            self.classes[class].waiting += expected;
            if self.jobs.len() <= job.0 {
                self.jobs.resize(job.0 + 1, (0, 0.0));
            }
            self.jobs[job.0] = (class, expected);
            self.unfinished += 1;
        }
    }

    pub(super) fn started(&mut self, job: JobId, now: Duration) {
        let Some(&(class, expected)) = self.jobs.get(job.0) else { return };
        self.classes[class].waiting -= expected;
        self.running.insert(job, now);
        self.at_once = self.at_once.max(self.running.len());
    }

    /// A job has ended, successfully or not.
    pub(super) fn ended(&mut self, job: JobId, now: Duration) {
        let Some(started) = self.running.remove(&job) else { return };
        let (class, expected) = self.jobs[job.0];
        self.classes[class].ended += expected;
        self.classes[class].took += now.saturating_sub(started).as_secs_f64();
        self.unfinished -= 1;
    }

    /// The sum of all classes.
    fn all(&self) -> Class {
        self.classes.iter().fold(Class::default(), |sum, class| Class {
            total: sum.total + class.total,
            waiting: sum.waiting + class.waiting,
            ended: sum.ended + class.ended,
            took: sum.took + class.took,
        })
    }

    /// The fraction of the expected work that is done, from 0 to 1.
    pub(super) fn fraction(&self) -> f64 {
        let all = self.all();
        if self.unfinished == 0 { 1.0 } else { (all.ended / all.total).min(1.0) }
    }

    /// The time left; `None` until a job has ended.
    pub(super) fn left(&self, now: Duration) -> Option<Duration> {
        let all = self.all();
        if all.ended <= 0.0 {
            return None;
        }
        let common = all.scale(1.0);
        let scales: Vec<f64> = self.classes.iter().map(|class| class.scale(common)).collect();
        let running = self.running.iter().map(|(job, started)| {
            let (class, expected) = self.jobs[job.0];
            let ran = now.saturating_sub(*started).as_secs_f64();
            let needs = expected * scales[class];
            if ran < needs { needs - ran } else { ran * OVERDUE }
        });
        let waiting = self.classes.iter().zip(&scales).map(|(class, scale)| class.waiting * scale);
        let even = (running.clone().sum::<f64>() + waiting.sum::<f64>()) / self.at_once as f64;
        Duration::try_from_secs_f64(running.fold(even.max(0.0), f64::max)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Deterministic noise from 0 to 1.
    fn noise(seed: u64) -> f64 {
        let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x >> 11) as f64 / (1u64 << 53) as f64
    }

    /// HIP, OpenCL C and assembly in the proportions of MIOpen's own list: class
    /// and expected seconds.
    fn mixed(count: usize) -> Vec<(usize, f64)> {
        let one = |number: usize| {
            let spread = 0.5 + 2.0 * noise(number as u64);
            match number % 10 {
                0 | 1 => (0, 1.6 * spread),
                2..=5 => (1, 0.17 * spread),
                _ => (2, 0.07 * spread),
            }
        };
        let mut jobs: Vec<_> = (0..count).map(one).collect();
        jobs.sort_by(|a, b| b.1.total_cmp(&a.1));
        jobs
    }

    /// Simulates a build whose jobs take as long as `real` says, at most
    /// `at_once` at a time. Returns the prediction at each end of a job: the
    /// moment, the predicted and the true time left, in seconds.
    fn simulate(
        at_once: usize,
        jobs: &[(usize, f64)],
        real: impl Fn(usize) -> f64,
    ) -> Vec<(f64, f64, f64)> {
        let mut estimator = Estimator::default();
        let queue = jobs.iter().enumerate();
        let queue =
            queue.map(|(number, (class, expected))| (JobId(number), *class, seconds(*expected)));
        estimator.queued(queue);
        let (mut running, mut next, mut now) = (Vec::<(f64, usize)>::new(), 0, 0.0);
        let mut predicted = Vec::new();
        loop {
            while running.len() < at_once && next < jobs.len() {
                estimator.started(JobId(next), seconds(now));
                running.push((now + real(next), next));
                next += 1;
            }
            running.sort_by(|a, b| b.0.total_cmp(&a.0));
            let Some((end, number)) = running.pop() else { break };
            now = end;
            estimator.ended(JobId(number), seconds(now));
            predicted.push((now, estimator.left(seconds(now)).unwrap().as_secs_f64()));
        }
        assert_eq!(estimator.fraction(), 1.0);
        assert_eq!(estimator.left(seconds(now)), Some(Duration::ZERO));
        predicted.into_iter().map(|(at, left)| (at, left, now - at)).collect()
    }

    /// The largest error of a prediction made between two fractions of the build,
    /// as a fraction of the build's duration.
    fn worst(predicted: &[(f64, f64, f64)], from: f64, to: f64) -> f64 {
        let total = predicted.last().unwrap().0;
        let within = predicted.iter().filter(|(at, ..)| (from..=to).contains(&(at / total)));
        let errors = within.map(|(_, left, truth)| (left - truth).abs() / total);
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn the_time_left_is_about_right() {
        type Real = fn(&[(usize, f64)], usize) -> f64;
        let known: Real = |jobs, job| jobs[job].1;
        let slower: Real = |jobs, job| jobs[job].1 * 1.7 * (0.7 + 0.6 * noise(job as u64 + 77));
        // HIP is three times as slow as expected, all else as expected: until the first job of
        // another language ends, it is assumed to be slow as well.
        let off: Real = |jobs, job| jobs[job].1 * if jobs[job].0 == 0 { 3.0 } else { 1.0 };
        for (workers, count, real, from, to, error) in [
            (1, 50, known, 0.0, 1.0, 0.02),
            (8, 2000, known, 0.0, 1.0, 0.02),
            (4, 1000, slower, 0.1, 1.0, 0.10),
            (4, 1000, slower, 0.4, 1.0, 0.05),
            (4, 1000, off, 0.05, 0.95, 0.30),
            (4, 1000, off, 0.95, 1.0, 0.06),
        ] {
            let jobs = mixed(count);
            let predicted = simulate(workers, &jobs, |job| real(&jobs, job));
            let worst = worst(&predicted, from, to);
            assert!(worst < error, "{workers} workers, {count} jobs, from {from}: {worst}");
        }
    }

    #[test]
    fn one_long_job_decides_if_there_are_many_workers() {
        let jobs: Vec<(usize, f64)> = [100.0, 1.0, 1.0, 1.0].map(|time| (0, time)).to_vec();
        let predicted = simulate(4, &jobs, |job| jobs[job].1);
        for (at, left, truth) in predicted {
            assert!((left - truth).abs() < 1.0, "at {at}: {left} for {truth}");
        }
    }

    #[test]
    fn there_is_no_estimate_without_evidence_and_an_overdue_job_counts() {
        let (mut estimator, first, second) = (Estimator::default(), JobId(7), JobId(9));
        assert_eq!(estimator.left(Duration::ZERO), None);
        estimator.queued([(first, 0, seconds(1.0)), (second, 0, seconds(1.0))]);
        assert_eq!(estimator.left(seconds(0.5)), None);
        estimator.started(first, Duration::ZERO);
        estimator.started(second, Duration::ZERO);
        estimator.ended(first, seconds(1.0));
        assert_eq!(estimator.fraction(), 0.5);
        let left = estimator.left(seconds(30.0)).unwrap();
        assert!(left >= seconds(3.0), "{left:?}");
    }
}
