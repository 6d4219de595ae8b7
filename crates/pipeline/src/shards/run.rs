//! Runs jobs of a stored plan into an output directory. Results that are there stay, jobs
//! with a kept refusal are not run again, and jobs that ran out of time or that
//! the machine ended are tried once more.

use std::collections::{BTreeMap, HashSet};

use gfxpack_compile::{
    Cancel, CompileError, Event, ExecutorOptions, Failure, FileSystemCache, ObjectStore, Summary,
    ValidityCheck, ValidityChecker,
};
use gfxpack_model::{Digest, JobId, KernelKey};
use gfxpack_plan::plan::Job;
use gfxpack_plan::shard::{JobState, ShardEntry};
use rayon::prelude::*;

use super::manifest_files::job_state;
use super::output::{JobNote, ShardOutput};
use crate::build::REPAIRS;
use crate::error::{Error, Result};
use crate::prepare::Prepared;
use crate::progress::{Event as ProgressEvent, Progress};
use crate::report::BuildFacts;
use crate::text::counted;

/// The factor for the time limit of kernels that ran out of time.
const MORE_TIME: u32 = 2;

/// What is needed to run a shard's jobs.
pub(crate) struct ShardRun<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) output: &'a ShardOutput,
    pub(crate) options: ExecutorOptions,
    pub(crate) progress: &'a dyn Progress,
}

/// What the output directory holds of a job.
enum KnownResult {
    Made,
    Noted(Box<JobNote>),
    ToDo,
}

/// The result of running some jobs.
#[derive(Default)]
struct PassResult {
    /// Jobs whose objects were in the cache.
    cached: Vec<JobId>,
    compiled: Vec<JobId>,
    failed: BTreeMap<JobId, Failure>,
}

impl ShardRun<'_> {
    /// Runs every job of the plan, and returns how each ended, sorted by digest.
    pub(crate) fn run(&self, facts: &mut BuildFacts) -> Result<Vec<ShardEntry>> {
        let plan = &self.prepared.plan;
        let prepared = self.prepared;
        let file_system = FileSystemCache::new(&prepared.cache.digests);
        let cancel = self.progress.cancel();
        let checker = prepared.validity_checker(&file_system, cancel, &self.options.admitted);
        let known: Vec<KnownResult> =
            plan.jobs.par_iter().map(|job| self.known(job, &checker)).collect();
        let mut ended: Vec<ShardEntry> = Vec::with_capacity(plan.jobs.len());
        let (mut finished, mut to_do) = (Vec::new(), Vec::new());
        for (index, known) in plan.job_ids().zip(known) {
            let job = plan[index].digest;
            match known {
                KnownResult::Made => {
                    ended.push(self.made(index, JobState::Cached)?);
                    finished.push(index);
                }
                KnownResult::Noted(note) => {
                    ended.push(ShardEntry { job, state: note.state, result: Err(note.reason) });
                    finished.push(index);
                }
                KnownResult::ToDo => to_do.push(index),
            }
        }
        let mut first = self.pass(&to_do, 1, Some(&finished), facts)?;
        let again: Vec<JobId> = first
            .failed
            .iter()
            .filter(|(_, failure)| is_tried_again(failure))
            .map(|(job, _)| *job)
            .collect();
        if !again.is_empty() {
            self.progress.note(&format!("trying {} once more", counted(again.len(), "kernel")));
            let second = self.pass(&again, MORE_TIME, None, facts)?;
            again.iter().for_each(|job| drop(first.failed.remove(job)));
            first.cached.extend(second.cached);
            first.compiled.extend(second.compiled);
            first.failed.extend(second.failed);
        }
        for (jobs, state) in [(&first.cached, JobState::Cached), (&first.compiled, JobState::Ok)] {
            for &index in jobs {
                ended.push(self.made(index, state)?);
            }
        }
        for (index, failure) in &first.failed {
            let job = plan[*index].digest;
            let (state, reason) = (job_state(&failure.kind), failure.kind.to_string());
            ended.push(ShardEntry { job, state, result: Err(reason) });
        }
        ended.sort_unstable_by_key(|ended| ended.job);
        Ok(ended)
    }

    fn known(&self, job: &Job, checker: &ValidityChecker<'_>) -> KnownResult {
        let check = checker.for_job(job);
        let job = job.digest;
        if self.output.has(job, check) {
            return KnownResult::Made;
        }
        match self.output.note(job) {
            Some(note) if !self.options.retry_refused && self.holds(job, &note, check) => {
                KnownResult::Noted(note.into())
            }
            _ => KnownResult::ToDo,
        }
    }

    /// Whether a failed job would fail again: always if it ran out of time,
    /// otherwise if there is a valid kept refusal.
    fn holds(&self, job: Digest, note: &JobNote, check: ValidityCheck<'_>) -> bool {
        note.state == JobState::Timeout || self.output.store.refusal(job, check).is_some()
    }

    /// Records a failure, and copies its kept refusal from the store `from`, if
    /// there is one, so that the next run need not start the compiler.
    fn note(&self, id: JobId, failure: &Failure, from: &ObjectStore) -> Result<()> {
        let job = &self.prepared.plan[id];
        let note = JobNote {
            state: job_state(&failure.kind),
            key: KernelKey::clone(&job.key),
            reason: failure.kind.to_string(),
            output: failure.output.clone(),
        };
        self.output.write_note(job.digest, &note)?;
        let store = &self.output.store;
        // In this order, since both stores may be the same.
        if !failure.is_kernels_fault() || !store.adopt_refusal(from, job.digest)? {
            // What an earlier run left may be for another plan's sources.
            store.remove(job.digest);
        }
        Ok(())
    }

    fn made(&self, id: JobId, state: JobState) -> Result<ShardEntry> {
        let job = self.prepared.plan[id].digest;
        let info = self.output.store.info(job).ok_or(CompileError::CorruptObject(job))?;
        self.output.forget(job);
        Ok(ShardEntry { job, state, result: Ok((info.sha256, info.size)) })
    }

    /// Copies the objects of an event from another store. Damaged ones, which
    /// that store has removed, are added to `lost`.
    fn adopt(&self, event: &Event, from: &ObjectStore, lost: &mut HashSet<JobId>) -> Result<()> {
        let plan = &self.prepared.plan;
        let adopt = |job: JobId| self.output.store.adopt(from, plan[job].digest);
        let adopted: Vec<(JobId, _)> = match event {
            Event::FoundInCache { cached, .. } => {
                cached.par_iter().map(|(job, _)| (*job, adopt(*job))).collect()
            }
            Event::Finished { job, .. } => vec![(*job, adopt(*job))],
            _ => Vec::new(),
        };
        for (job, adopted) in adopted {
            if adopted?.is_none() {
                lost.insert(job);
            }
        }
        Ok(())
    }

    /// Runs some jobs. `there` are jobs that need no run; if it is given,
    /// failures that will be tried again are not reported yet.
    fn pass(
        &self,
        jobs: &[JobId],
        more_time: u32,
        there: Option<&[JobId]>,
        facts: &mut BuildFacts,
    ) -> Result<PassResult> {
        let Prepared { plan, cache, .. } = self.prepared;
        let cancel = &self.progress.cancel().child();
        let mut pass = PassResult::default();
        let mut left: Vec<JobId> = jobs.to_vec();
        let time_limit = self.options.time_limit.saturating_mul(more_time);
        let options = ExecutorOptions { time_limit, ..self.options.clone() };
        for turn in 0..=REPAIRS {
            let executor = self.prepared.executor(&cache.store, Some(&left), &options, cancel);
            let mut listener = Listener {
                run: self,
                cancel,
                retries: there.is_some(),
                // Jobs that need no run were reported in the first turn.
                there: there.filter(|_| turn == 0),
                pass: &mut pass,
                facts: &mut *facts,
                lost: HashSet::new(),
                error: None,
            };
            let ran = executor.run(&mut |event| listener.event(event, &cache.store));
            let summary = listener.ended(ran.map_err(Error::from))?;
            cache.digests.save();
            let mut lost = std::mem::take(&mut listener.lost);
            // Another build replaced these in the cache before they were copied.
            let is_other = |job: &&JobId| {
                let there = self.output.store.info(plan[**job].digest);
                let made = summary.objects[job.0].as_ref();
                made.is_some_and(|(made, _)| there.as_ref() != Some(made))
            };
            lost.extend(left.iter().filter(is_other));
            if lost.is_empty() {
                return Ok(pass);
            }
            pass.forget(|job| lost.contains(&job));
            left = lost.into_iter().collect();
            left.sort_unstable();
        }
        Err(CompileError::CorruptObject(plan[left[0]].digest).into())
    }
}

impl PassResult {
    /// Removes jobs that are run again.
    fn forget(&mut self, these: impl Fn(JobId) -> bool) {
        self.cached.retain(|job| !these(*job));
        self.compiled.retain(|job| !these(*job));
    }
}

/// Copies and records the results of a run of jobs, and passes its events on.
struct Listener<'a, 'r> {
    run: &'a ShardRun<'r>,
    cancel: &'a Cancel,
    /// Whether jobs that failed because of the machine or the time limit will be
    /// tried again.
    retries: bool,
    /// Jobs that need no run, if they still have to be reported.
    there: Option<&'a [JobId]>,
    pass: &'a mut PassResult,
    facts: &'a mut BuildFacts,
    /// Jobs whose objects in the cache were damaged or replaced.
    lost: HashSet<JobId>,
    error: Option<Error>,
}

impl Listener<'_, '_> {
    /// Processes an event of a run whose objects are in the store `from`.
    fn event(&mut self, event: Event, from: &ObjectStore) {
        let adopted = self.run.adopt(&event, from, &mut self.lost);
        // The first error is kept, and ends the run.
        if let Err(error) = adopted.and_then(|()| self.take(event, from)) {
            self.error.get_or_insert(error);
            self.cancel.cancel();
        }
    }

    /// The result of the run, or the error that ended it.
    fn ended(&mut self, ran: Result<Summary>) -> Result<Summary> {
        self.error.take().map_or(ran, Err)
    }

    /// Records an event, and passes it on unless it is a failure that will be
    /// tried again.
    fn take(&mut self, event: Event, from: &ObjectStore) -> Result<()> {
        let Self { run, pass, .. } = self;
        let plan = &run.prepared.plan;
        let event = match event {
            Event::FoundInCache { cached, refused } => {
                pass.cached.extend(cached.iter().map(|(job, _)| *job));
                for (job, failure) in &refused {
                    run.note(*job, failure, from)?;
                    pass.failed.insert(*job, failure.clone());
                }
                let Some(there) = self.there else { return Ok(()) };
                let store = &run.output.store;
                let size = |job: JobId| store.info(plan[job].digest).map_or(0, |info| info.size);
                let there = there.iter().map(|job| (*job, size(*job)));
                Event::FoundInCache { cached: cached.into_iter().chain(there).collect(), refused }
            }
            Event::Failed { job, failure, .. } if self.retries && is_tried_again(&failure) => {
                pass.failed.insert(job, failure);
                return Ok(());
            }
            event => event,
        };
        match &event {
            Event::Finished { job, .. } => pass.compiled.push(*job),
            Event::Failed { job, failure, .. } => {
                run.note(*job, failure, from)?;
                pass.failed.insert(*job, failure.clone());
            }
            _ => {}
        }
        self.facts.event(&event);
        run.progress.event(ProgressEvent::Job { plan, event: &event });
        Ok(())
    }
}

fn is_tried_again(failure: &Failure) -> bool {
    matches!(job_state(&failure.kind), JobState::Infra | JobState::Timeout)
}
