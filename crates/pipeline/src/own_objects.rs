//! Objects that other builds replaced in the cache. The cache has one object for
//! each job, and two checkouts may differ in a source file that no job's digest
//! covers. Such objects are compiled again into a store that no other build uses,
//! so that each is lost at most once.

use std::collections::HashSet;

use gfxpack_compile::{Cancel, CompileError, Event, ExecutorOptions, ObjectStore, Summary};
use gfxpack_model::JobId;
use gfxpack_process::WorkDir;

use crate::error::{self, Result};
use crate::prepare::Prepared;

/// The objects of a build, some of which other builds may have replaced.
pub(crate) struct OwnObjects<'a> {
    prepared: &'a Prepared,
    /// Created when needed, and removed with the build's other scratch files.
    store: Option<(ObjectStore, WorkDir)>,
    /// Jobs whose objects are in `store`.
    jobs: HashSet<JobId>,
}

impl<'a> OwnObjects<'a> {
    /// At first all objects are in the cache.
    pub(crate) fn new(prepared: &'a Prepared) -> Self {
        Self { prepared, store: None, jobs: HashSet::new() }
    }

    /// The store that holds a job's object.
    fn store_of(&self, job: JobId) -> &ObjectStore {
        match &self.store {
            Some((store, _)) if self.jobs.contains(&job) => store,
            _ => &self.prepared.cache.store,
        }
    }

    /// Reads a job's object, which must be the one in the summary.
    pub(crate) fn read(&self, summary: &Summary, job: JobId) -> Result<Vec<u8>, CompileError> {
        let (store, digest) = (self.store_of(job), self.prepared.plan[job].digest);
        match &summary.objects[job.0] {
            Some((object, _)) => store.read_known(digest, object.sha256),
            None => store.read(digest),
        }
    }

    /// Jobs whose objects in the cache are undamaged, but not the ones in the
    /// summary.
    pub(crate) fn replaced(&self, summary: &Summary) -> Vec<JobId> {
        let Prepared { plan, cache, .. } = self.prepared;
        let is_replaced = |job: &JobId| {
            let made = summary.objects[job.0].as_ref().map(|(object, _)| object.sha256);
            let there = cache.store.info(plan[*job].digest).map(|object| object.sha256);
            made.is_some() && there.is_some() && made != there && !self.jobs.contains(job)
        };
        plan.job_ids().filter(is_replaced).collect()
    }

    /// Called after a new run, when all objects of its summary are in the cache.
    pub(crate) fn forget(&mut self) {
        self.jobs.clear();
    }

    /// Compiles jobs again. `event` also gets the store with their objects.
    ///
    /// # Errors
    /// Like [`gfxpack_compile::Executor::run`], or if the store can't be created.
    pub(crate) fn compile(
        &mut self,
        jobs: &[JobId],
        options: &ExecutorOptions,
        cancel: &Cancel,
        event: &mut dyn FnMut(Event, &ObjectStore),
    ) -> Result<Summary> {
        let Prepared { cache, .. } = self.prepared;
        let (store, _) = match &mut self.store {
            Some(made) => made,
            none => {
                let dir = WorkDir::create(&cache.scratch);
                let dir = dir.map_err(error::io("create", &cache.scratch))?;
                none.insert((ObjectStore::open(dir.path())?, dir))
            }
        };
        let executor = self.prepared.executor(store, Some(jobs), options, cancel);
        let summary = executor.run(&mut |job_event| event(job_event, store))?;
        cache.digests.save();
        self.jobs.extend(jobs);
        Ok(summary)
    }
}

/// Updates the summary of the first run with the result of compiling `jobs`
/// again.
pub(crate) fn update(first: &mut Summary, jobs: &[JobId], again: Summary) {
    for job in jobs {
        first.objects[job.0].clone_from(&again.objects[job.0]);
    }
    first.failures.extend(again.failures);
    first.failures.sort_by_key(|(job, _)| *job);
}
