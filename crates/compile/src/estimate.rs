//! How long a build will still take, from what its jobs are expected to cost
//! and what those that have ended did cost.

use std::collections::HashMap;
use std::time::Duration;

use gfxpack_model::JobId;

/// So many of the jobs to come are laid out one by one, which matters towards
/// the end; the others fill the workers evenly.
const LAID_OUT: usize = 256;
/// How many rounds of jobs, one on each worker, it takes until what is
/// observed counts as much as what was expected.
const PRIOR_ROUNDS: f64 = 1.0;
/// After so many rounds what was observed counts a third: what else the
/// machine does changes.
const MEMORY_ROUNDS: f64 = 16.0;
/// A job that takes longer than expected is taken to need this part more of
/// the time it ran.
const OVERDUE: f64 = 0.1;

/// A build as it is known from its events. Times are since any one moment.
#[derive(Debug, Clone, Default)]
pub struct Estimator {
    workers: usize,
    /// By number: a map would take several times the memory of a million jobs.
    jobs: Vec<Option<Job>>,
    /// Job numbers in the order in which they will start.
    queue: Vec<JobId>,
    /// All before this one have been started.
    first_waiting: usize,
    running: HashMap<JobId, Duration>,
    classes: Vec<Class>,
    ended: usize,
    /// While jobs waited: workers' seconds spent on jobs, and in all.
    busy: f64,
    open: f64,
    last: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Job {
    class: u8,
    expected: f64,
    started: bool,
}

/// Jobs that may all be off by the same factor: those of one language.
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    /// Of all, of those that wait, of those that ended, in seconds.
    total: f64,
    waiting: f64,
    done: f64,
    /// What was expected of those that ended, and what they took, the latest
    /// weighing most.
    ended: f64,
    took: f64,
    jobs: usize,
}

impl Class {
    fn add(self, other: &Self) -> Self {
        Self {
            total: self.total + other.total,
            waiting: self.waiting + other.waiting,
            done: self.done + other.done,
            ended: self.ended + other.ended,
            took: self.took + other.took,
            jobs: self.jobs + other.jobs,
        }
    }

    /// How much longer jobs take than expected; `before` without evidence.
    fn scale(&self, workers: usize, before: f64) -> f64 {
        let round = self.total / self.jobs.max(1) as f64 * workers as f64;
        let prior = (round * PRIOR_ROUNDS).max(f64::MIN_POSITIVE);
        (self.took + before * prior) / (self.ended + prior)
    }
}

impl Estimator {
    /// These jobs will start in this order: id, class (a small number),
    /// expected time.
    pub fn queued(
        &mut self,
        workers: usize,
        jobs: impl IntoIterator<Item = (JobId, usize, Duration)>,
        now: Duration,
    ) {
        *self = Self { workers: workers.max(1), last: now, ..Self::default() };
        for (job, class, expected) in jobs {
            let expected = expected.as_secs_f64();
            if self.classes.len() <= class {
                self.classes.resize(class + 1, Class::default());
            }
            let known = &mut self.classes[class];
            known.total += expected;
            known.waiting += expected;
            known.jobs += 1;
            self.queue.push(job);
            if self.jobs.len() <= job.0 {
                self.jobs.resize(job.0 + 1, None);
            }
            let class = u8::try_from(class).expect("there are few classes");
            self.jobs[job.0] = Some(Job { class, expected, started: false });
        }
    }

    /// A job's compiler was started.
    pub fn started(&mut self, id: JobId, now: Duration) {
        self.advance(now);
        let Some(Some(job)) = self.jobs.get_mut(id.0) else { return };
        job.started = true;
        self.classes[usize::from(job.class)].waiting -= job.expected;
        self.running.insert(id, now);
        while self.queue.get(self.first_waiting).is_some_and(|&next| self.job(next).started) {
            self.first_waiting += 1;
        }
    }

    /// A job ended, well or not.
    pub fn ended(&mut self, id: JobId, now: Duration) {
        self.advance(now);
        let Some(started) = self.running.remove(&id) else { return };
        let job = self.job(id);
        let keep = 1.0 - 1.0 / (MEMORY_ROUNDS * self.workers as f64);
        let class = &mut self.classes[usize::from(job.class)];
        class.done += job.expected;
        class.ended = class.ended * keep + job.expected;
        class.took = class.took * keep + now.saturating_sub(started).as_secs_f64();
        self.ended += 1;
    }

    /// A job that was queued.
    fn job(&self, id: JobId) -> Job {
        self.jobs[id.0].expect("only what was queued is started")
    }

    /// How much of the expected work is done, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        let all = self.classes.iter().fold(Class::default(), |sum, class| sum.add(class));
        if self.ended == self.queue.len() { 1.0 } else { (all.done / all.total).min(1.0) }
    }

    /// The time left; `None` before there is any evidence.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        if self.ended == 0 || self.workers == 0 {
            return None;
        }
        let all = self.classes.iter().fold(Class::default(), |sum, class| sum.add(class));
        let common = all.scale(self.workers, 1.0);
        let scales: Vec<f64> =
            self.classes.iter().map(|class| class.scale(self.workers, common)).collect();
        // When each worker will be free.
        let mut free: Vec<f64> = self
            .running
            .iter()
            .map(|(id, started)| {
                let job = self.job(*id);
                let ran = now.saturating_sub(*started).as_secs_f64();
                let needs = job.expected * scales[usize::from(job.class)];
                if ran < needs { needs - ran } else { ran * OVERDUE }
            })
            .collect();
        free.resize(free.len().max(self.workers), 0.0);
        let mut rest: f64 =
            self.classes.iter().zip(&scales).map(|(class, scale)| class.waiting * scale).sum();
        let waiting = self.queue[self.first_waiting..].iter();
        let waiting = waiting.map(|id| self.job(*id)).filter(|job| !job.started);
        for job in waiting.take(LAID_OUT) {
            let needs = job.expected * scales[usize::from(job.class)];
            rest -= needs;
            let next = free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("a worker");
            *next += needs;
        }
        let longest = free.iter().copied().fold(0.0, f64::max);
        let even = (free.iter().sum::<f64>() + rest.max(0.0)) / free.len() as f64;
        let left = longest.max(even);
        let waits = self.first_waiting < self.queue.len();
        let left = if waits { left / self.efficiency() } else { left };
        Duration::try_from_secs_f64(left).ok()
    }

    /// Which part of the workers' time went to jobs while there were jobs for
    /// all: less than 1 where some wait for memory, or for the disk.
    fn efficiency(&self) -> f64 {
        let all = self.classes.iter().fold(Class::default(), |sum, class| sum.add(class));
        let prior = all.total / 50.0;
        ((self.busy + prior) / (self.open + prior)).clamp(1.0 / self.workers as f64, 1.0)
    }

    fn advance(&mut self, now: Duration) {
        if self.first_waiting < self.queue.len() {
            let passed = now.saturating_sub(self.last).as_secs_f64();
            self.busy += passed * self.running.len().min(self.workers) as f64;
            self.open += passed * self.workers as f64;
        }
        self.last = self.last.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Numbers that look random and are the same in every run, from 0 to 1.
    fn noise(seed: u64) -> f64 {
        let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x >> 11) as f64 / (1u64 << 53) as f64
    }

    /// HIP, OpenCL C and assembly as in MIOpen's own list: expected seconds.
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

    /// Runs a build of jobs that take what `real` says, at most `at_once` at a
    /// time, and gives what was predicted at every end of a job: the moment,
    /// the prediction, and the truth, in seconds.
    fn simulate(
        workers: usize,
        at_once: usize,
        jobs: &[(usize, f64)],
        real: impl Fn(usize) -> f64,
    ) -> Vec<(f64, f64, f64)> {
        let mut estimator = Estimator::default();
        let queue = jobs.iter().enumerate();
        let queue =
            queue.map(|(number, (class, expected))| (JobId(number), *class, seconds(*expected)));
        estimator.queued(workers, queue, Duration::ZERO);
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

    /// The largest error of a prediction made between those parts of the
    /// build, as a part of the whole build's time.
    fn worst(predicted: &[(f64, f64, f64)], from: f64, to: f64) -> f64 {
        let total = predicted.last().unwrap().0;
        let within = predicted.iter().filter(|(at, ..)| (from..=to).contains(&(at / total)));
        let errors = within.map(|(_, left, truth)| (left - truth).abs() / total);
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn with_known_costs_the_time_left_is_right_all_along() {
        for (workers, count) in [(1, 50), (2, 302), (8, 2000), (16, 40)] {
            let jobs = mixed(count);
            let predicted = simulate(workers, workers, &jobs, |job| jobs[job].1);
            assert!(predicted.len() == count);
            let worst = worst(&predicted, 0.0, 1.0);
            assert!(worst < 0.02, "{workers} workers, {count} jobs: {worst}");
        }
    }

    #[test]
    fn noise_and_a_slower_machine_are_made_up_for() {
        let jobs = mixed(1000);
        let real = |job: usize| jobs[job].1 * 1.7 * (0.7 + 0.6 * noise(job as u64 + 77));
        let predicted = simulate(4, 4, &jobs, real);
        assert!(worst(&predicted, 0.05, 1.0) < 0.08, "{}", worst(&predicted, 0.05, 1.0));
        assert!(worst(&predicted, 0.4, 1.0) < 0.03, "{}", worst(&predicted, 0.4, 1.0));
    }

    #[test]
    fn a_language_that_is_off_does_not_spoil_the_others() {
        let jobs = mixed(1000);
        // HIP three times as slow as thought, all else as thought.
        let real = |job: usize| jobs[job].1 * if jobs[job].0 == 0 { 3.0 } else { 1.0 };
        let predicted = simulate(4, 4, &jobs, real);
        // Before the others begin, theirs is taken to be off as well.
        assert!(worst(&predicted, 0.05, 0.95) < 0.30, "{}", worst(&predicted, 0.05, 0.95));
        assert!(worst(&predicted, 0.95, 1.0) < 0.06, "{}", worst(&predicted, 0.95, 1.0));
    }

    #[test]
    fn workers_that_wait_for_memory_are_noticed() {
        let jobs = mixed(1000);
        let predicted = simulate(8, 3, &jobs, |job| jobs[job].1);
        assert!(worst(&predicted, 0.2, 1.0) < 0.10, "{}", worst(&predicted, 0.2, 1.0));
    }

    #[test]
    fn a_machine_that_gets_busy_is_noticed() {
        let jobs = mixed(2000);
        // From the hundredth job on everything takes twice as long.
        let predicted =
            simulate(4, 4, &jobs, |job| jobs[job].1 * if job < 100 { 1.0 } else { 2.0 });
        assert!(worst(&predicted, 0.4, 1.0) < 0.08, "{}", worst(&predicted, 0.4, 1.0));
    }

    #[test]
    fn one_long_job_decides_where_workers_are_many() {
        let jobs: Vec<(usize, f64)> = [100.0, 1.0, 1.0, 1.0].map(|time| (0, time)).to_vec();
        let predicted = simulate(4, 4, &jobs, |job| jobs[job].1);
        for (at, left, truth) in predicted {
            assert!((left - truth).abs() < 1.0, "at {at}: {left} for {truth}");
        }
    }

    #[test]
    fn nothing_is_said_without_evidence_and_an_overdue_job_is_not_free() {
        let (mut estimator, first, second) = (Estimator::default(), JobId(7), JobId(9));
        assert_eq!(estimator.left(Duration::ZERO), None);
        estimator.queued(2, [(first, 0, seconds(1.0)), (second, 0, seconds(1.0))], Duration::ZERO);
        assert_eq!(estimator.left(seconds(0.5)), None);
        estimator.started(first, Duration::ZERO);
        estimator.started(second, Duration::ZERO);
        estimator.ended(first, seconds(1.0));
        assert_eq!(estimator.fraction(), 0.5);
        let left = estimator.left(seconds(30.0)).unwrap();
        assert!(left >= seconds(3.0), "{left:?}");
    }
}
