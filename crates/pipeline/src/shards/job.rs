//! One job of a stored plan, for engines that start a process for each.

use gfxpack_model::Digest;
use gfxpack_plan::shard::Ended;
use gfxpack_plan::stored::Jobs;
use gfxpack_toolchain::Search;

use super::outbox::{Note, Outbox};
use super::run::Run;
use super::stored::Stored;
use crate::build::executor_options;
use crate::cache::Cache;
use crate::error::Result;
use crate::options::{BuildOptions, CacheOptions, Purpose};
use crate::progress::Progress;
use crate::remote::RemoteBackends;
use crate::report::Facts;

/// A job that ran to its end.
pub struct BuiltJob {
    /// How it ended: one entry.
    pub ended: Vec<Ended>,
    /// Why it has no object, with the compiler's output, if it has none.
    pub refusal: Option<Note>,
}

/// Runs a job of `stored` into `build.out`, unless its object or the
/// compiler's refusal is already there.
///
/// # Errors
/// Where the plan can't be run here, or the machine fails.
pub fn run(
    stored: Stored,
    job: Digest,
    cache: &CacheOptions,
    search: &Search,
    build: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuiltJob> {
    let cache = Cache::open_for(cache, Purpose::Build)?;
    let prepared = stored.prepare(&Jobs::One(job), cache, search, progress.cancel())?;
    let outbox = Outbox::open(&build.out)?;
    let run = Run {
        prepared: &prepared,
        outbox: &outbox,
        options: executor_options(&prepared, build, &RemoteBackends::default()),
        progress,
    };
    let ended = run.run(&mut Facts::new())?;
    Ok(BuiltJob { ended, refusal: outbox.note(job) })
}
