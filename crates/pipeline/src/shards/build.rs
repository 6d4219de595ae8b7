//! `build --shard`: runs one shard of a stored plan and writes its manifest.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_compile::KnownCosts;
use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use gfxpack_plan::shard::{self, JobState, Shard, ShardEntry, ShardManifest};
use gfxpack_plan::stored::Jobs;
use gfxpack_toolchain::{Search, Toolchain};

use super::manifest_files::write_manifest;
use super::output::{JobNote, ShardOutput};
use super::run::ShardRun;
use super::stored::Stored;
use crate::build::{executor_options, reported};
use crate::cache::Cache;
use crate::error::{self, Error, ErrorKind, Result};
use crate::options::{BuildOptions, CacheOptions, Purpose, ShardOptions};
use crate::progress::Progress;
use crate::report::{self, BuildFacts};
use crate::text::counted;

/// Reads the costs by which jobs are divided among shards.
pub fn read_costs(path: &Path) -> Result<KnownCosts> {
    let bytes = fs::read(path).map_err(error::io("read", path))?;
    let costs = KnownCosts::read(&bytes);
    if costs.count() == 0 {
        return Err(error::usage(
            format!("failed to find a kernel's cost in `{}`", path.display()),
            "give what `gfxpack build --message-format json` printed, or a cache's costs.jsonl",
        ));
    }
    Ok(costs)
}

/// The jobs of a shard if they are divided by cost.
fn balanced(stored: &Stored, costs: &KnownCosts, shard: Shard) -> Result<HashSet<Digest>> {
    let plan = stored.load(&Jobs::All)?;
    let times = costs.of_plan(&plan);
    let jobs: Vec<(Digest, u64)> = plan.jobs.iter().map(|job| job.digest).zip(times).collect();
    let shards = shard::by_cost(&jobs, shard.count());
    let own = jobs.iter().zip(shards).filter(|(_, of)| *of == shard.index());
    Ok(own.map(|((job, _), _)| *job).collect())
}

/// A digest of the paths of toolchains, as they are in commands.
fn places(toolchains: &[Toolchain]) -> Digest {
    let paths = toolchains.iter().map(|it| [&it.clang, &it.installed_libs, &it.rocm]);
    let paths: Vec<&PathBuf> = paths.flatten().collect();
    let paths = paths.iter().map(|path| path.as_os_str().as_encoded_bytes());
    Hasher::new("gfxpack places of toolchains 1").list(paths).finish()
}

/// The result of a shard that ran to its end.
#[derive(Debug)]
pub struct BuiltShard {
    /// How every job ended.
    pub manifest: ShardManifest,
    /// The manifest's path.
    pub file: PathBuf,
}

/// Runs a shard into `build.out`, and writes the shard's manifest.
///
/// # Errors
/// If the plan can't be run here, or the run as a whole fails. Failed jobs are in
/// the manifest; [`outcome`] judges them.
pub fn run(
    shard: &ShardOptions,
    cache: &CacheOptions,
    search: &Search,
    build: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuiltShard> {
    let stored = Stored::open(&shard.plan)?;
    let costs = shard.costs.as_deref().map(read_costs).transpose()?;
    let own = costs.as_ref().map(|costs| balanced(&stored, costs, shard.shard)).transpose()?;
    let chosen = |job: Digest| match &own {
        Some(own) => own.contains(&job),
        None => shard::by_hash(job, shard.shard.count()) == shard.shard.index(),
    };
    report::check(build)?;
    let digest = stored.digest();
    let cache = Cache::open_for(cache, Purpose::Build)?;
    let prepared = stored.prepare(&Jobs::Only(&chosen), cache, search, progress.cancel())?;
    prepared.inputs.warnings.iter().for_each(|warning| progress.warning(warning));
    let output = ShardOutput::open(&build.out)?;
    let run = ShardRun {
        prepared: &prepared,
        output: &output,
        options: executor_options(&prepared, build)?,
        progress,
    };
    let built = reported(&prepared, build, Some(shard.shard), progress, |facts| {
        let manifest = ShardManifest {
            plan: digest,
            shard: shard.shard,
            costs: costs.as_ref().map(KnownCosts::digest),
            places: Some(places(&prepared.toolchains)),
            jobs: run.run(facts)?,
        };
        let file = write_manifest(&manifest, output.dir())?;
        Ok(BuiltShard { manifest, file })
    })?;
    prepared.cache.shrink(progress);
    Ok(built)
}

/// Runs a single job of `stored` into `build.out`, unless its object or a kept
/// refusal is already there. Used by engines that start a process for each job.
/// Returns how the job ended, as one entry.
///
/// # Errors
/// If the plan can't be run here, or the machine fails.
pub fn run_job(
    stored: Stored,
    job: Digest,
    cache: &CacheOptions,
    search: &Search,
    build: &BuildOptions,
    progress: &dyn Progress,
) -> Result<(Vec<ShardEntry>, Option<JobNote>)> {
    let cache = Cache::open_for(cache, Purpose::Build)?;
    let prepared = stored.prepare(&Jobs::One(job), cache, search, progress.cancel())?;
    prepared.inputs.warnings.iter().for_each(|warning| progress.warning(warning));
    let output = ShardOutput::open(&build.out)?;
    let run = ShardRun {
        prepared: &prepared,
        output: &output,
        options: executor_options(&prepared, build)?,
        progress,
    };
    let ended = run.run(&mut BuildFacts::new())?;
    Ok((ended, output.note(job)))
}

/// The outcome of a shard whose jobs ended like this.
pub fn outcome(jobs: &[ShardEntry], shard: Shard) -> Result<()> {
    let count = |wanted: fn(JobState) -> bool| jobs.iter().filter(|job| wanted(job.state)).count();
    let lost = count(JobState::is_to_retry);
    if lost > 0 {
        let what = format!("{} of shard {shard}", counted(lost, "job"));
        return Err(Error::new(
            ErrorKind::Internal,
            format!(
                "failed to run {what}: the machine ended their compilers, or could not start them"
            ),
            "run the shard again, with more memory or fewer --jobs; what is compiled is kept",
        ));
    }
    let failed = count(|state| !state.is_made());
    if failed > 0 {
        let total = counted(jobs.len(), "kernel");
        return Err(Error::new(
            ErrorKind::ShardIncomplete,
            format!("failed to compile {failed} of {total} of shard {shard}"),
            error::SHARD_INCOMPLETE_HINT,
        ));
    }
    Ok(())
}
