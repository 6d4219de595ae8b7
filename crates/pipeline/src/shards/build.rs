//! `build --shard`: runs one shard of a stored plan and writes its manifest.

use std::path::{Path, PathBuf};

use gfxpack_compile::ObjectStore;
use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use gfxpack_plan::shard::{JobState, Shard, ShardEntry, ShardManifest, by_hash};
use gfxpack_plan::stored::Jobs;
use gfxpack_toolchain::Toolchain;

use super::run::ShardRun;
use super::state::write_manifest;
use super::stored::Stored;
use crate::build::{executor_options, reported};
use crate::cache::Cache;
use crate::error::{self, Error, ErrorKind, Result};
use crate::options::{BuildOptions, Purpose};
use crate::progress::Progress;
use crate::text::counted;

/// A digest of the paths of toolchains, as they are in commands.
fn places(toolchains: &[Toolchain]) -> Digest {
    let paths = toolchains.iter().map(|it| [&it.clang, &it.installed_libs, &it.rocm]);
    let paths: Vec<&PathBuf> = paths.flatten().collect();
    let paths = paths.iter().map(|path| path.as_os_str().as_encoded_bytes());
    Hasher::new("gfxpack places of toolchains 1").list(paths).finish()
}

/// Runs a shard into `build.out`, writes the shard's manifest, and returns it with its path.
///
/// # Errors
/// If the plan can't be run here, or the run as a whole fails. Failed jobs are in
/// the manifest; [`outcome`] judges them.
pub fn run(
    plan: &Path,
    shard: Shard,
    build: &BuildOptions,
    progress: &dyn Progress,
) -> Result<(ShardManifest, PathBuf)> {
    build.check()?;
    let stored = Stored::open(plan)?;
    let chosen = |job: Digest| by_hash(job, shard.count()) == shard.index();
    let digest = stored.digest();
    let cache = Cache::open_for(&build.compilers.cache, Purpose::Build)?;
    let search = build.compilers.toolchain.search();
    let prepared = stored.prepare(&Jobs::Only(&chosen), cache, &search, progress.cancel())?;
    prepared.inputs.warnings.iter().for_each(|warning| progress.warning(warning));
    std::fs::create_dir_all(&build.out).map_err(error::io("create", &build.out))?;
    let dir = &std::fs::canonicalize(&build.out).map_err(error::io("find", &build.out))?;
    let run = ShardRun {
        prepared: &prepared,
        dir,
        store: ObjectStore::open(dir)?,
        options: executor_options(&prepared, build)?,
        progress,
    };
    let built = reported(&prepared, build, Some(shard), progress, |facts| {
        let manifest = ShardManifest {
            plan: digest,
            shard,
            places: places(&prepared.toolchains),
            jobs: run.run(facts)?,
        };
        let file = write_manifest(&manifest, dir)?;
        Ok((manifest, file))
    })?;
    prepared.cache.shrink(progress);
    Ok(built)
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
            "do not run it again: the compiler's output is below `failed` in --out; \
             `gfxpack merge --allow-partial` makes kdbs without these kernels",
        ));
    }
    Ok(())
}
