//! The shards' manifests, and by them which shards of a plan are done. The exit codes of schedulers
//! are not used.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use gfxpack_compile::{Failure, FailureKind};
use gfxpack_model::Digest;
use gfxpack_plan::shard::{JobState, ShardManifest};
use gfxpack_process::write_output;

use super::stored::Stored;
use crate::error::{self, Error, Result};

/// Signals that come from the machine, not from a defect of the compiler:
/// SIGKILL, as when memory runs out, and SIGTERM.
const MACHINES_SIGNALS: [i32; 2] = [9, 15];

/// The state of a job in a shard's manifest, if it failed for this reason.
pub(super) fn job_state(failure: &Failure) -> JobState {
    match &failure.kind {
        FailureKind::Crashed(signal) if MACHINES_SIGNALS.contains(signal) => JobState::Infra,
        FailureKind::TimedOut(_) => JobState::Timeout,
        // With the usual limits, the plan has no such job.
        FailureKind::TooLong => JobState::Infra,
        _ if failure.is_kernels_fault() => JobState::Refused,
        _ => JobState::Failed,
    }
}

/// The error for a manifest that could not be read or written.
fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |cause| {
        let message = format!("failed to {action} `{}`: {cause}", path.display());
        error::usage(message, "check the path")
    }
}

pub(super) fn write_manifest(manifest: &ShardManifest, dir: &Path) -> Result<PathBuf> {
    let path = dir.join(ShardManifest::file_name(manifest.shard));
    write_output(&path, |out| manifest.write(out)).map_err(io("write", &path))?;
    Ok(path)
}

fn read_manifest(path: &Path) -> Result<ShardManifest> {
    let file = File::open(path).map_err(io("read", path))?;
    ShardManifest::read(&mut BufReader::new(file)).map_err(|cause| match cause.kind() {
        // It is cut off or changed.
        io::ErrorKind::InvalidData => error::usage(
            format!("`{}` is damaged: {cause}", path.display()),
            "copy it again, or remove it and run that shard again: what is compiled is kept",
        ),
        _ => io("read", path)(cause),
    })
}

/// A shard's manifest and where it was found.
#[derive(Debug, Clone)]
pub(super) struct FoundShard {
    pub(super) manifest: ShardManifest,
    pub(super) path: PathBuf,
    /// The directory with the shard's objects.
    pub(super) dir: PathBuf,
}

/// The manifests in these directories, and the errors in those that can't be read.
pub(super) fn find<'a>(
    dirs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(Vec<FoundShard>, Vec<Error>)> {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for dir in dirs {
        let failed = |cause: io::Error| {
            let message = format!("failed to read `{}`: {cause}", dir.display());
            error::usage(message, "give directories that shards were built into")
        };
        let mut manifests = BTreeSet::new();
        for entry in fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("shard-") && name.ends_with(".manifest") {
                manifests.insert(path);
            }
        }
        for path in manifests {
            match read_manifest(&path) {
                Ok(manifest) => found.push(FoundShard { manifest, path, dir: dir.clone() }),
                Err(error) => wrong.push(error),
            }
        }
    }
    Ok((found, wrong))
}

/// The shards of a plan that have to run, or to run again.
#[derive(Debug)]
pub struct MissingShards {
    /// The plan.
    pub plan: Digest,
    /// How many shards there are.
    pub count: u32,
    /// The numbers of those that are missing, ascending.
    pub missing: Vec<u32>,
    /// Messages about manifests and directories that are ignored.
    pub warnings: Vec<String>,
}

impl MissingShards {
    /// Reads the manifests in these directories, some of which may not exist yet. Without a number
    /// of shards, that of the first shard found counts.
    ///
    /// # Errors
    /// If the plan or a directory can't be read, or the number of shards is not known.
    pub fn find(dirs: &[PathBuf], plan: &Path, count: Option<NonZeroU32>) -> Result<Self> {
        let plan = Stored::open(plan)?.digest();
        let (there, gone): (Vec<&PathBuf>, Vec<_>) = dirs.iter().partition(|dir| dir.is_dir());
        let gone = gone.iter().map(|dir| format!("there is no directory `{}`", dir.display()));
        let (found, wrong) = find(there)?;
        let mut warnings: Vec<String> = gone.chain(wrong.iter().map(Error::to_string)).collect();
        let (found, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|found| found.manifest.plan == plan);
        warnings.extend(others.iter().map(|other| {
            format!("`{}` is of another plan, {}", other.path.display(), other.manifest.plan)
        }));
        let first = found.first().map(|found| found.manifest.shard.count());
        let count = count.map(u32::from).or(first).ok_or_else(|| {
            error::usage(
                "failed to tell how many shards there are: none is done yet",
                "say it with --shards N",
            )
        })?;
        let mut missing: BTreeSet<u32> = (1..=count).collect();
        for FoundShard { manifest, path, .. } in &found {
            let of = manifest.shard.count();
            if of != count {
                warnings.push(format!("`{}` is of {of} shards, not of {count}", path.display()));
            } else if manifest.count(JobState::Infra) == 0 {
                missing.remove(&manifest.shard.index());
            }
        }
        Ok(Self { plan, count, missing: missing.into_iter().collect(), warnings })
    }
}
