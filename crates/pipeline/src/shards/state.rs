//! Which shards of a plan are done, judged by the manifests that exist. The exit
//! codes of schedulers are not used.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_plan::shard::{JobState, Shard, ShardManifest};

use super::manifest_files::{list_manifests, read_manifest};
use super::slurm;
use super::stored::Stored;
use crate::error::{self, Error, Result};
use crate::text::counted;

/// A shard's manifest and where it was found.
#[derive(Debug, Clone)]
pub struct FoundShard {
    /// The manifest.
    pub manifest: ShardManifest,
    /// The manifest's path.
    pub path: PathBuf,
    /// The directory with the shard's objects.
    pub dir: PathBuf,
}

/// The manifests in these directories, and the errors in those that can't be read.
pub fn find(dirs: &[PathBuf]) -> Result<(Vec<FoundShard>, Vec<Error>)> {
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

/// The state of a plan's shards.
pub struct State {
    /// The plan, if known.
    pub plan: Option<Digest>,
    /// Number of shards.
    pub count: u32,
    /// By index: shards that are done or to be tried again.
    pub shards: BTreeMap<u32, FoundShard>,
    /// Messages about manifests that are ignored.
    pub strange: Vec<String>,
}

impl State {
    /// Reads the manifests in these directories, some of which may not exist yet. Without a plan or
    /// a number of shards, those that were submitted count, else those of the first shard found.
    pub fn read(dirs: &[PathBuf], plan: Option<&Path>, count: Option<NonZeroU32>) -> Result<Self> {
        let (found, wrong) = find(&existing(dirs))?;
        let mut strange: Vec<String> = wrong.iter().map(Error::to_string).collect();
        let submitted = dirs.iter().find_map(|dir| slurm::submitted(dir));
        let submitted = submitted.map(|submitted| (submitted.plan, submitted.shards));
        let first = || found.first().map(|it| (it.manifest.plan, it.manifest.shard.count()));
        let known = submitted.or_else(first);
        let plan = match plan {
            Some(plan) => Some(Stored::open(plan)?.digest()),
            None => known.map(|(plan, _)| plan),
        };
        let count = count.map(u32::from).or(known.map(|(_, count)| count)).ok_or_else(|| {
            error::usage(
                "failed to tell how many shards there are: none is done yet",
                "say it with --shards N",
            )
        })?;
        let mut by_index: BTreeMap<u32, FoundShard> = BTreeMap::new();
        for found in found {
            let shard = found.manifest.shard;
            let path = found.path.display();
            if Some(found.manifest.plan) != plan {
                strange.push(format!("`{path}` is of another plan, {}", found.manifest.plan));
            } else if shard.count() != count {
                strange.push(format!("`{path}` is of {} shards, not of {count}", shard.count()));
            } else if let Some(other) = by_index.get(&shard.index()) {
                strange.push(format!("`{path}` repeats `{}`", other.path.display()));
            } else {
                by_index.insert(shard.index(), found);
            }
        }
        Ok(Self { plan, count, shards: by_index, strange })
    }

    /// Shards that have to run or to run again.
    pub fn missing(&self) -> Vec<u32> {
        let is_missing = |shard: &u32| {
            let found = self.shards.get(shard);
            found.is_none_or(|found| found.manifest.count(JobState::Infra) > 0)
        };
        (1..=self.count).filter(is_missing).collect()
    }

    /// Number of jobs in all shards that failed and are not to be tried again.
    pub fn failed(&self) -> usize {
        let manifests = self.shards.values().map(|found| &found.manifest);
        manifests
            .map(|manifest| manifest.count(JobState::Failed) + manifest.count(JobState::Timeout))
            .sum()
    }

    /// Every shard with its state as text. `active` are queued or running.
    pub fn lines(&self, active: &BTreeMap<u32, String>) -> Vec<(Shard, String)> {
        let shard = |index| Shard::new(index, self.count).expect("counted from 1");
        let text = |index: &u32| match (self.shards.get(index), active.get(index)) {
            (_, Some(active)) => active.to_lowercase(),
            (None, None) => "missing".to_owned(),
            (Some(found), None) => {
                let count = |state| found.manifest.count(state);
                let mut text = format!("done, {}", counted(found.manifest.jobs.len(), "job"));
                for (state, what) in [
                    (JobState::Failed, "refused"),
                    (JobState::Timeout, "out of time"),
                    (JobState::Infra, "lost by the machine: to run again"),
                ] {
                    if count(state) > 0 {
                        text.push_str(&format!(", {} {what}", count(state)));
                    }
                }
                text
            }
        };
        (1..=self.count).map(|index| (shard(index), text(&index))).collect()
    }
}

/// The directories that exist already.
fn existing(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let unique: BTreeSet<&Path> = dirs.iter().map(PathBuf::as_path).collect();
    unique.into_iter().filter(|dir| dir.exists()).map(Path::to_owned).collect()
}
