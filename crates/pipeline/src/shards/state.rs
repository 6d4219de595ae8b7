//! Which shards of a plan are done, judged by the manifests that exist. The exit
//! codes of schedulers are not used.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_plan::shard::{JobState, ShardManifest};

use super::manifest_files::{list_manifests, read_manifest};
use super::stored::Stored;
use crate::error::{self, Error, Result};

/// A shard's manifest and where it was found.
#[derive(Debug, Clone)]
pub(super) struct FoundShard {
    pub(super) manifest: ShardManifest,
    /// The manifest's path.
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
        let listed = list_manifests(dir)
            .map_err(|error| error::usage(error, "give directories that shards were built into"))?;
        for path in listed {
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
