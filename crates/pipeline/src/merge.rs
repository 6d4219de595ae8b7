//! The kdbs of a stored plan out of its shards.

use std::path::{Path, PathBuf};

use gfxpack_compile::CompileError;
use gfxpack_model::{Digest, JobId};
use gfxpack_plan::plan::Plan;
use gfxpack_plan::stored::Jobs;

use crate::build::{Assembly, MadeKdb, Objects};
use crate::cache::Cache;
use crate::error::{self, Error, Result};
use crate::failure_log::FailureFiles;
use crate::options::{CacheOptions, KdbForm, Purpose};
use crate::progress::{Event, Progress};
use crate::record;
use crate::shards::merge::Merged;
use crate::shards::state;
use crate::shards::stored::Stored;
use crate::writers::MadePackages;

/// Which shards are put together, and where.
#[derive(Debug)]
pub struct MergeShards<'a> {
    /// Directories that shards were built into.
    pub dirs: &'a [PathBuf],
    /// The stored plan that they are of.
    pub plan: &'a Path,
    /// Where outputs go; kdbs to `kdb` below.
    pub out: &'a Path,
    /// Whether shards or kernels may be missing.
    pub allow_partial: bool,
    /// The form of kdbs.
    pub form: KdbForm,
    /// The cache, which remembers what outputs were made from.
    pub cache: &'a CacheOptions,
}

/// What was put together.
pub struct MergedKdbs {
    /// The kdbs, in the plan's order.
    pub kdbs: Vec<MadeKdb>,
    /// Jobs of the plan.
    pub jobs: usize,
    /// Jobs without an object.
    pub failed: usize,
    /// The plan's digest.
    pub plan: Digest,
}

impl MergeShards<'_> {
    /// Checks the shards, and writes and verifies every kdb.
    ///
    /// # Errors
    /// Where shards do not fit together, an object is damaged, or a kdb can't
    /// be written.
    pub fn run(&self, progress: &dyn Progress) -> Result<MergedKdbs> {
        let stored = Stored::open(self.plan)?;
        let (found, wrong) = state::find(self.dirs)?;
        for error in wrong {
            if !self.allow_partial {
                return Err(error.into());
            }
            progress.warning(&error::in_full(&error));
        }
        let (digest, plan) = (stored.digest(), stored.load(&Jobs::All)?);
        let merged = Merged::new(&plan, digest, found, self.allow_partial)?;
        merged.warnings.iter().for_each(|warning| progress.warning(warning));
        let cache = Cache::open_for(self.cache, Purpose::Build)?;
        let prepared = stored.prepared(plan, Vec::new(), cache)?;
        std::fs::create_dir_all(self.out).map_err(error::io("create", self.out))?;
        let outputs = prepared.cache.outputs(self.out)?;
        let plan = &prepared.plan;
        let read = |job: JobId| merged.read(plan, job);
        let objects = Objects { known: merged.known(), failed: merged.failed.clone(), read: &read };
        let assembly = Assembly {
            prepared: &prepared,
            out: self.out,
            form: self.form,
            cancel: progress.cancel(),
            outputs: &outputs,
        };
        let files = FailureFiles::default();
        progress.event(Event::BuildStarted { plan, files: &files });
        let made = assembly.run(&objects, progress);
        progress.event(Event::BuildEnded { kept: true });
        let kdbs = made.map_err(|error| explained(error, &merged, plan))?;
        record::write(self.out, &kdbs, &MadePackages::default(), None, &outputs, progress)?;
        let (jobs, failed) = (plan.jobs.len(), merged.failed.len());
        Ok(MergedKdbs { kdbs, jobs, failed, plan: digest })
    }
}

/// An object that is damaged is its shard's affair.
fn explained(error: Error, merged: &Merged, plan: &Plan) -> Error {
    match error {
        Error::Compile(CompileError::CorruptObject(job)) => merged.damaged(plan, job),
        other => other,
    }
}

impl MergedKdbs {
    /// An error if kernels are missing that were not allowed to be.
    ///
    /// # Errors
    /// One of the kind `ErrorKind::Refused`.
    pub fn outcome(&self, allow_partial: bool) -> Result<()> {
        let missing: usize = self.kdbs.iter().map(|kdb| kdb.missing.len()).sum();
        if missing == 0 || allow_partial {
            return Ok(());
        }
        let kernels: u64 = self.kdbs.iter().map(|kdb| kdb.kernels).sum();
        let reasons = "the compiler's output is below `failed` in the shards' directories";
        let total = kernels as usize + missing;
        Err(error::refused(missing, total, reasons, false))
    }
}
