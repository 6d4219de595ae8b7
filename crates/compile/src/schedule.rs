//! The order in which a build's workers take jobs: longest first. Jobs that share a precompiled
//! header wait for it, and others run meanwhile.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use gfxpack_model::{JobId, Language, SourceId};
use gfxpack_plan::plan::Plan;
use gfxpack_process::Cancel;

use crate::costs::{Expected, usual_memory, with_margin};

/// How often a waiting worker checks whether the build was cancelled.
const AGAIN: Duration = Duration::from_millis(100);

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Precompiles headers for the group of jobs with this number.
    PrecompileHeaders(usize),
    /// A job of the plan.
    Job(JobId),
}

/// The tasks that are left.
pub(crate) struct Schedule<'a> {
    plan: &'a Plan,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Groups whose headers no worker has begun to precompile.
    to_precompile: VecDeque<usize>,
    /// Jobs that wait for a group's headers, one queue per group, then those that wait for none;
    /// each job with its position among all.
    queues: Vec<Queue>,
    /// By source: the peak memory of its jobs in this build.
    peaks: HashMap<SourceId, u64>,
}

#[derive(Default)]
struct Queue {
    ready: bool,
    jobs: VecDeque<(usize, JobId, Expected)>,
}

impl State {
    /// The first job of all in the chosen queues.
    fn pop(&mut self, of: impl Fn(&Queue) -> bool) -> Option<(JobId, Expected)> {
        let queues = self.queues.iter_mut().filter(|queue| of(queue));
        let place =
            |queue: &&mut Queue| queue.jobs.front().map_or(usize::MAX, |(place, ..)| *place);
        let (_, job, expected) = queues.min_by_key(place)?.jobs.pop_front()?;
        Some((job, expected))
    }
}

impl<'a> Schedule<'a> {
    /// `jobs` is in the order in which they start unless they have to wait.
    pub(crate) fn new(
        plan: &'a Plan,
        jobs: &[(JobId, Expected)],
        header_groups: &[Vec<JobId>],
    ) -> Self {
        let mut waits = HashMap::new();
        let mut state = State::default();
        for (number, group) in header_groups.iter().enumerate() {
            state.to_precompile.push_back(number);
            state.queues.push(Queue::default());
            waits.extend(group.iter().map(|&job| (job, number)));
        }
        state.queues.push(Queue { ready: true, jobs: VecDeque::new() });
        for (place, &(job, expected)) in jobs.iter().enumerate() {
            let queue = waits.get(&job).copied().unwrap_or(header_groups.len());
            state.queues[queue].jobs.push_back((place, job, expected));
        }
        Self { plan, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next task, with the memory that it is expected to need. Waits while all remaining jobs
    /// wait; `None` if no job is left or the build was cancelled.
    pub(crate) fn next(&self, cancel: &Cancel) -> Option<(Task, u64)> {
        let mut state = self.state.lock().expect("no panic inside");
        loop {
            while let Some(number) = state.to_precompile.pop_front() {
                // Remote workers may have taken all jobs of the group.
                if !state.queues[number].jobs.is_empty() {
                    return Some((Task::PrecompileHeaders(number), usual_memory(Language::Hip)));
                }
            }
            if let Some((job, expected)) = state.pop(|queue| queue.ready) {
                let peak = state.peaks.get(&self.plan[job].source);
                let learned = peak.filter(|_| !expected.measured);
                let memory = learned.map_or(expected.memory, |peak| with_margin(*peak));
                return Some((Task::Job(job), memory));
            }
            if cancel.is_cancelled() || state.queues.iter().all(|queue| queue.jobs.is_empty()) {
                return None;
            }
            state = self.changed.wait_timeout(state, AGAIN).expect("no panic inside").0;
        }
    }

    /// The next job for a remote worker, which has no use for headers precompiled here. `None` if
    /// no job is left.
    pub(crate) fn next_elsewhere(&self) -> Option<JobId> {
        let mut state = self.state.lock().expect("no panic inside");
        state.pop(|_| true).map(|(job, _)| job)
    }

    /// Lets a group's jobs start, whether or not precompiling its headers succeeded.
    pub(crate) fn precompiled(&self, number: usize) {
        self.state.lock().expect("no panic inside").queues[number].ready = true;
        self.changed.notify_all();
    }

    /// Records a job's peak memory, which other jobs of its source are likely to need too.
    pub(crate) fn used(&self, job: JobId, peak: u64) {
        let mut state = self.state.lock().expect("no panic inside");
        let source = self.plan[job].source;
        let most = state.peaks.entry(source).or_default();
        *most = peak.max(*most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::small_plan;

    const fn expected(memory: u64, measured: bool) -> Expected {
        Expected { time: Duration::ZERO, memory, measured }
    }

    fn tasks(schedule: &Schedule<'_>) -> Vec<Task> {
        let cancel = Cancel::default();
        std::iter::from_fn(|| schedule.next(&cancel)).map(|(task, _)| task).collect()
    }

    #[test]
    fn waiting_jobs_let_others_pass_and_keep_their_order() {
        let plan = small_plan();
        let jobs: Vec<_> = (0..5).map(|job| (JobId(job), expected(1, true))).collect();
        let schedule = Schedule::new(&plan, &jobs, &[vec![JobId(0), JobId(2)]]);
        let cancel = Cancel::default();
        let next = || schedule.next(&cancel).map(|(task, _)| task);
        assert_eq!(next(), Some(Task::PrecompileHeaders(0)));
        assert_eq!(next(), Some(Task::Job(JobId(1))));
        schedule.precompiled(0);
        assert_eq!(tasks(&schedule), [0, 2, 3, 4].map(|job| Task::Job(JobId(job))));
    }

    #[test]
    fn remote_workers_do_not_wait_for_headers() {
        let plan = small_plan();
        let jobs: Vec<_> = (0..4).map(|job| (JobId(job), expected(1, true))).collect();
        let schedule = Schedule::new(&plan, &jobs, &[vec![JobId(0), JobId(2)]]);
        assert_eq!(schedule.next_elsewhere(), Some(JobId(0)));
        schedule.precompiled(0);
        let [one, two, three] = [1, 2, 3].map(|job| Task::Job(JobId(job)));
        assert_eq!(tasks(&schedule), [Task::PrecompileHeaders(0), one, two, three]);
        assert_eq!(schedule.next_elsewhere(), None);

        let schedule = Schedule::new(&plan, &jobs[..1], &[vec![JobId(0)]]);
        assert_eq!(schedule.next_elsewhere(), Some(JobId(0)));
        assert_eq!(tasks(&schedule), [], "nobody is left to precompile for");
    }

    #[test]
    fn a_worker_waits_for_waiting_jobs_unless_the_build_is_cancelled() {
        let plan = small_plan();
        let schedule = Schedule::new(&plan, &[(JobId(0), expected(1, true))], &[vec![JobId(0)]]);
        let cancel = Cancel::default();
        assert_eq!(schedule.next(&cancel).unwrap().0, Task::PrecompileHeaders(0));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| schedule.next(&cancel).map(|(task, _)| task));
            schedule.precompiled(0);
            assert_eq!(waiting.join().unwrap(), Some(Task::Job(JobId(0))));
        });
        let schedule = Schedule::new(&plan, &[(JobId(0), expected(1, true))], &[vec![JobId(0)]]);
        schedule.next(&cancel);
        cancel.cancel();
        assert_eq!(schedule.next(&cancel), None);
    }

    #[test]
    fn memory_of_first_kernels_is_expected_of_the_next_of_their_source() {
        let plan = small_plan();
        // Jobs 0 and 1 share a source, 2 and 3 another.
        let jobs = [
            (JobId(0), expected(5, false)),
            (JobId(1), expected(5, false)),
            (JobId(2), expected(5, false)),
            (JobId(3), expected(5, true)),
        ];
        let schedule = Schedule::new(&plan, &jobs, &[]);
        let cancel = Cancel::default();
        let memory = || schedule.next(&cancel).unwrap().1;
        assert_eq!(memory(), 5);
        schedule.used(JobId(0), 400 << 20);
        assert_eq!(memory(), with_margin(400 << 20));
        assert_eq!(memory(), 5, "another source");
        schedule.used(JobId(2), 400 << 20);
        assert_eq!(memory(), 5, "its own cost is known");
    }
}
