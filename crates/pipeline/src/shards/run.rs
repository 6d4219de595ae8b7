//! Runs jobs of a stored plan into an output directory. Results that are there stay, jobs
//! with a kept refusal are not run again, and jobs that ran out of time or that
//! the machine ended are tried once more.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_compile::{
    CorruptObject, Event, ExecutorOptions, Failure, FileSystemCache, ObjectInfo, ObjectStore,
};
use gfxpack_model::{Digest, JobId, KernelKey};
use gfxpack_plan::shard::{JobState, ShardEntry, ShardObject};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::state::job_state;
use crate::build::REPAIRS;
use crate::destination::replace;
use crate::error::{self, Result};
use crate::failures;
use crate::prepare::Prepared;
use crate::progress::{Event as ProgressEvent, Progress};
use crate::report::BuildFacts;
use crate::text::counted;

/// The factor for the time limit of kernels that ran out of time.
const MORE_TIME: u32 = 2;

/// The directory with notes of failed jobs, one file each.
const FAILED: &str = "failed";

/// Why a job has no object, with the compiler's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct JobNote {
    state: JobState,
    key: KernelKey,
    reason: String,
    output: String,
}

/// What is needed to run a shard's jobs.
pub(crate) struct ShardRun<'a> {
    pub(crate) prepared: &'a Prepared,
    /// The output directory of any number of shards of the plan: objects in the cache's own layout,
    /// a note for each job that failed, and manifests.
    pub(crate) dir: &'a Path,
    pub(crate) store: ObjectStore,
    pub(crate) options: ExecutorOptions,
    pub(crate) progress: &'a dyn Progress,
}

/// The result of running some jobs.
#[derive(Default)]
struct PassResult {
    /// Jobs whose objects were in the cache, and those that were compiled, with their objects.
    made: BTreeMap<JobId, (JobState, ShardObject)>,
    failed: BTreeMap<JobId, Failure>,
}

impl ShardRun<'_> {
    /// Runs every job of the plan, and returns how each ended, sorted by digest.
    pub(crate) fn run(&self, facts: &mut BuildFacts) -> Result<Vec<ShardEntry>> {
        let (prepared, plan) = (self.prepared, &self.prepared.plan);
        let file_system = FileSystemCache::new(&prepared.cache.digests);
        let cancel = self.progress.cancel();
        let declarer = prepared.declarer(&file_system, cancel, &self.options.admitted);
        let keys: Vec<Digest> =
            plan.jobs.par_iter().map(|job| declarer.declared(job).key).collect();
        let known = plan.jobs.par_iter().zip(&keys).map(|(job, key)| self.known(job.digest, *key));
        let known: Vec<Option<ShardEntry>> = known.collect();
        let mut ended: Vec<ShardEntry> = Vec::with_capacity(plan.jobs.len());
        let (mut finished, mut to_do) = (Vec::new(), Vec::new());
        for (index, known) in plan.job_ids().zip(known) {
            match known {
                Some(entry) => {
                    finished.push((index, entry.result.as_ref().map_or(0, |object| object.size)));
                    ended.push(entry);
                }
                None => to_do.push(index),
            }
        }
        let mut first = self.pass(&to_do, &keys, 1, Some(&finished), facts)?;
        let again: Vec<JobId> = first
            .failed
            .iter()
            .filter(|(_, failure)| is_tried_again(failure))
            .map(|(job, _)| *job)
            .collect();
        if !again.is_empty() {
            self.progress.note(&format!("trying {} once more", counted(again.len(), "kernel")));
            let second = self.pass(&again, &keys, MORE_TIME, None, facts)?;
            again.iter().for_each(|job| drop(first.failed.remove(job)));
            first.made.extend(second.made);
            first.failed.extend(second.failed);
        }
        for (&index, &(state, object)) in &first.made {
            ended.push(self.made(plan[index].digest, state, object));
        }
        for (index, failure) in &first.failed {
            let job = plan[*index].digest;
            let (state, (_, why)) = (job_state(failure), failures::absence(failure));
            ended.push(ShardEntry { job, state, result: Err(why) });
        }
        ended.sort_unstable_by_key(|ended| ended.job);
        Ok(ended)
    }

    /// What the output directory holds of a job.
    fn known(&self, job: Digest, key: Digest) -> Option<ShardEntry> {
        // It may be damaged.
        if self.store.read(key).is_ok()
            && let Some(ObjectInfo { key, sha256, size, .. }) = self.store.info(key)
        {
            return Some(self.made(job, JobState::Cached, ShardObject { key, sha256, size }));
        }
        let note = fs::read(self.note(job)).ok().filter(|_| !self.options.retry_refused)?;
        let JobNote { state, reason, .. } = serde_json::from_slice(&note).ok()?;
        // A job that ran out of time would do so again, and one with a kept refusal
        // would be refused.
        let holds = state == JobState::Timeout || self.store.refusal(key).is_some();
        let holds = holds && !state.is_made() && !state.is_to_retry();
        holds.then_some(ShardEntry { job, state, result: Err(reason) })
    }

    /// The path of the note of a job.
    fn note(&self, job: Digest) -> PathBuf {
        self.dir.join(FAILED).join(format!("{job}.json"))
    }

    /// Records a failure, and copies its kept refusal from the cache, if there is one, so that the
    /// next run need not start the compiler.
    fn record(&self, id: JobId, key: Digest, failure: &Failure) -> Result<()> {
        let job = &self.prepared.plan[id];
        let note = JobNote {
            state: job_state(failure),
            key: KernelKey::clone(&job.key),
            reason: failures::absence(failure).1,
            output: failure.output.clone(),
        };
        let mut text = serde_json::to_vec_pretty(&note).map_err(error::json)?;
        text.push(b'\n');
        replace(&self.note(job.digest), &text)?;
        if failure.is_kernels_fault() {
            self.store.adopt_refusal(&self.prepared.cache.store, key)?;
        }
        Ok(())
    }

    /// The entry of a job that has an object, whose note is removed.
    fn made(&self, job: Digest, state: JobState, object: ShardObject) -> ShardEntry {
        fs::remove_file(self.note(job)).ok();
        ShardEntry { job, state, result: Ok(object) }
    }

    /// Copies the objects of an event from the cache. Damaged ones, which the cache has removed,
    /// are added to `lost`.
    fn adopt(
        &self,
        event: &Event,
        keys: &[Digest],
        pass: &mut PassResult,
        lost: &mut Vec<JobId>,
    ) -> Result<()> {
        let adopt = |key: Digest| self.store.adopt(&self.prepared.cache.store, key);
        let (state, adopted): (_, Vec<(JobId, _)>) = match event {
            Event::FoundInCache { cached, .. } => {
                let adopted = cached.par_iter().map(|(job, _)| (*job, adopt(keys[job.0])));
                (JobState::Cached, adopted.collect())
            }
            Event::Finished { job, compiled, .. } => {
                (JobState::Ok, vec![(*job, adopt(compiled.object.key))])
            }
            _ => return Ok(()),
        };
        for (job, adopted) in adopted {
            match adopted? {
                Some(ObjectInfo { key, sha256, size, .. }) => {
                    pass.made.insert(job, (state, ShardObject { key, sha256, size }));
                }
                None => lost.push(job),
            }
        }
        Ok(())
    }

    /// Runs some jobs. `there` are jobs that need no run; if it is given,
    /// failures that will be tried again are not reported yet.
    fn pass(
        &self,
        jobs: &[JobId],
        keys: &[Digest],
        more_time: u32,
        there: Option<&[(JobId, u64)]>,
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
            let (mut lost, mut error) = (Vec::new(), None);
            let ran = executor.run(&mut |event| {
                let adopted = self.adopt(&event, keys, &mut pass, &mut lost);
                let event = adopted.and_then(|()| self.take(event, keys, there, turn, &mut pass));
                match event {
                    Ok(None) => {}
                    Ok(Some(event)) => {
                        facts.event(&event);
                        self.progress.event(ProgressEvent::Job(plan, &event));
                    }
                    // The first error is kept, and ends the run.
                    Err(first) => {
                        error.get_or_insert(first);
                        cancel.cancel();
                    }
                }
            });
            error.map_or(ran, Err)?;
            cache.digests.save();
            if lost.is_empty() {
                return Ok(pass);
            }
            lost.sort_unstable();
            lost.dedup();
            left = lost;
        }
        Err(CorruptObject(plan[left[0]].digest).into())
    }

    /// Records what an event says of failures, and returns it as it is to be passed on: not at all
    /// if it is a failure that will be tried again, and with the jobs that are `there` only in the
    /// first turn.
    fn take(
        &self,
        event: Event,
        keys: &[Digest],
        there: Option<&[(JobId, u64)]>,
        turn: u32,
        pass: &mut PassResult,
    ) -> Result<Option<Event>> {
        match event {
            Event::FoundInCache { mut cached, refused } => {
                for (job, failure) in &refused {
                    self.record(*job, keys[job.0], failure)?;
                    pass.failed.insert(*job, failure.clone());
                }
                let Some(there) = there.filter(|_| turn == 0) else { return Ok(None) };
                cached.extend(there);
                Ok(Some(Event::FoundInCache { cached, refused }))
            }
            Event::Failed { job, failure, .. } if there.is_some() && is_tried_again(&failure) => {
                pass.failed.insert(job, failure);
                Ok(None)
            }
            event => {
                if let Event::Failed { job, failure, .. } = &event {
                    self.record(*job, keys[job.0], failure)?;
                    pass.failed.insert(*job, failure.clone());
                }
                Ok(Some(event))
            }
        }
    }
}

fn is_tried_again(failure: &Failure) -> bool {
    matches!(job_state(failure), JobState::Infra | JobState::Timeout)
}
