//! Merges shards: takes every job of the plan from exactly one of them, with the
//! object that this shard's manifest names.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use gfxpack_compile::{CorruptObject, ObjectStore};
use gfxpack_model::{Digest, JobId};
use gfxpack_plan::plan::{Job, Plan};
use gfxpack_plan::shard::{JobState, Shard, ShardEntry, ShardObject, ranges};
use gfxpack_plan::stored::Jobs;

use super::state::{self, FoundShard};
use super::stored::Stored;
use crate::build::{MadeKdb, assemble, damaged_object, incomplete};
use crate::cache::Cache;
use crate::error::{self, Error, ErrorKind, Result, usage};
use crate::ledger::{self, Ledger, Reason};
use crate::options::{MergeOptions, Purpose};
use crate::prepare::Prepared;
use crate::progress::{Event, Progress};
use crate::record;
use crate::report::FailureFiles;
use crate::write_packages::MadePackages;

/// The hint for a shard's manifest that does not match the plan.
const RUN_AGAIN: &str = "remove that shard's manifest and run it again: what is compiled is kept";

/// A shard whose objects are read.
struct MergedShard {
    shard: Shard,
    dir: PathBuf,
    store: ObjectStore,
}

/// The merged shards: where the object of each job is.
struct MergedObjects<'a> {
    plan: &'a Plan,
    shards: Vec<MergedShard>,
    /// By job: the index of the shard that has its result; 0 if none has.
    shard_of: Vec<u32>,
    known: Vec<Option<ShardObject>>,
    /// Jobs without an object, with the reason.
    failed: HashMap<JobId, (Reason, String)>,
}

/// Returns the error, or warns of it if errors are ignored.
type Allow<'a> = dyn Fn(Error) -> Result<()> + 'a;

/// The shards of a plan by number, without duplicates, all divided in the same way.
fn shards_of_plan(
    plan: &Plan,
    digest: Digest,
    found: Vec<FoundShard>,
    allow: &Allow<'_>,
) -> Result<BTreeMap<u32, FoundShard>> {
    let mut shards: BTreeMap<u32, FoundShard> = BTreeMap::new();
    let mut repeated: Vec<FoundShard> = Vec::new();
    for found in found {
        let manifest = &found.manifest;
        let path = found.path.display().to_string();
        if manifest.plan != digest {
            allow(usage(
                format!(
                    "failed to merge `{path}`: it is of plan {}, not of {digest}",
                    manifest.plan
                ),
                "build that shard from this plan; what both have in common is not compiled again",
            ))?;
            continue;
        }
        if let Some(first) = shards.values().next()
            && manifest.shard.count() != first.manifest.shard.count()
        {
            allow(usage(
                format!(
                    "failed to merge `{path}`: it is shard {}, and `{}` is {}, of another number",
                    manifest.shard,
                    first.path.display(),
                    first.manifest.shard
                ),
                "run all shards with the same N, and remove the manifest of the one that is too much",
            ))?;
            continue;
        }
        if let Some(first) = shards.get(&manifest.shard.index()) {
            let first = first.path.display().to_string();
            // If the two have different objects for a job, report that instead.
            repeated.push(found.clone());
            results_by_job(plan, shards.values().chain(&repeated))?;
            allow(usage(
                format!("failed to merge shard {} twice: `{first}` and `{path}`", manifest.shard),
                "give each shard once",
            ))?;
            continue;
        }
        shards.insert(manifest.shard.index(), found);
    }
    Ok(shards)
}

/// Whether all shards are there. Each must have run to its end.
fn are_complete(shards: &BTreeMap<u32, FoundShard>, allow: &Allow<'_>) -> Result<bool> {
    let first = shards.values().next().ok_or_else(|| {
        usage(
            "failed to find a shard's manifest",
            "give directories that `gfxpack build --shard` wrote into",
        )
    })?;
    let count = first.manifest.shard.count();
    let missing: Vec<u32> = (1..=count).filter(|shard| !shards.contains_key(shard)).collect();
    let complete = missing.is_empty();
    if !complete {
        let indices = ranges(&missing);
        allow(usage(
            format!("failed to find {} of {count} shards: {indices}", missing.len()),
            format!(
                "run `gfxpack build --shard I/{count}` for {indices}; --allow-partial merges \
                 without them"
            ),
        ))?;
    }
    for found in shards.values() {
        let (shard, lost) = (found.manifest.shard, found.manifest.count(JobState::Infra));
        if lost > 0 {
            allow(usage(
                format!("failed to merge shard {shard}: its machine lost {lost} of its jobs"),
                format!(
                    "run `gfxpack build --shard {shard}` again; --allow-partial merges without \
                     them"
                ),
            ))?;
        }
    }
    Ok(complete)
}

/// A warning if shards had their toolchains in different places.
fn in_different_places(shards: &BTreeMap<u32, FoundShard>) -> Option<String> {
    let mut manifests = shards.values().map(|found| &found.manifest);
    let one = manifests.next()?;
    let other = manifests.find(|other| other.places != one.places)?;
    Some(format!(
        "shards {} and {} had their toolchains in different places: an object that depends on a \
         path is not the one that a single machine makes",
        one.shard, other.shard
    ))
}

impl<'a> MergedObjects<'a> {
    /// Checks shards against the plan and each other. Foreign, repeated or missing
    /// shards are faults.
    fn new(
        plan: &'a Plan,
        digest: Digest,
        found: Vec<FoundShard>,
        allow: &Allow<'_>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let shards = shards_of_plan(plan, digest, found, allow)?;
        let complete = are_complete(&shards, allow)?;
        in_different_places(&shards).iter().for_each(|warning| progress.warning(warning));
        let by_job = results_by_job(plan, shards.values())?;
        let (mut known, mut failed) = (vec![None; plan.jobs.len()], HashMap::new());
        let mut without_shard = Vec::new();
        for (index, job) in by_job.iter().enumerate() {
            match job {
                Some((_, ShardEntry { result: Ok(made), .. })) => known[index] = Some(*made),
                Some((_, ShardEntry { result: Err(why), state, .. })) => {
                    let is_refused = *state == JobState::Refused;
                    let reason = if is_refused { Reason::Refused } else { Reason::Failed };
                    failed.insert(JobId(index), (reason, why.clone()));
                }
                None => {
                    without_shard.push(index);
                    let why = "its shard was not there".to_owned();
                    failed.insert(JobId(index), (Reason::Failed, why));
                }
            }
        }
        if complete && let Some(first) = without_shard.first() {
            let key = &plan.jobs[*first].key;
            let count = without_shard.len();
            allow(usage(
                format!(
                    "failed to find {count} of the plan's jobs in any shard, `{key}` the first"
                ),
                RUN_AGAIN,
            ))?;
        }
        let shard_of = by_job.iter().map(|job| job.map_or(0, |(shard, _)| shard)).collect();
        let shards = shards.values().map(|found| MergedShard {
            shard: found.manifest.shard,
            dir: found.dir.clone(),
            store: ObjectStore::open_to_look(&found.dir),
        });
        Ok(Self { plan, shards: shards.collect(), shard_of, known, failed })
    }

    /// The shard that has the result of a job.
    fn shard(&self, job: JobId) -> &MergedShard {
        &self.shards[self.shard_of[job.0] as usize]
    }

    /// Reads a job's object, which must be the one in the manifest.
    fn read(&self, job: JobId) -> Result<Vec<u8>> {
        let known = self.known[job.0];
        let ShardObject { key, sha256, .. } = known.ok_or(CorruptObject(self.plan[job].digest))?;
        let bytes = self.shard(job).store.read(key)?;
        if Digest::of(&bytes) == sha256 { Ok(bytes) } else { Err(CorruptObject(key).into()) }
    }

    /// The error for an object that could not be read.
    fn damaged(&self, key: Digest) -> Error {
        let jobs = &self.plan.jobs;
        let is_it = |known: &Option<ShardObject>| known.is_some_and(|object| object.key == key);
        let job = self.known.iter().position(is_it).unwrap_or_default();
        let MergedShard { shard, dir, .. } = self.shard(JobId(job));
        let (key, dir) = (&jobs[job].key, dir.display());
        Error::new(
            ErrorKind::Unsound,
            format!(
                "failed to merge shard {shard}: the object of `{key}` in `{dir}` is damaged or gone"
            ),
            format!("run `gfxpack build --shard {shard}` again: it compiles what is damaged"),
        )
    }
}

/// By job: the index of its shard, and its result. Fails if shards contradict
/// each other.
fn results_by_job<'f>(
    plan: &Plan,
    shards: impl Iterator<Item = &'f FoundShard>,
) -> Result<Vec<Option<(u32, &'f ShardEntry)>>> {
    let shards: Vec<&FoundShard> = shards.collect();
    let mut numbers: Vec<u32> = (0..plan.jobs.len() as u32).collect();
    let digest = |index: &u32| plan.jobs[*index as usize].digest;
    numbers.sort_unstable_by_key(digest);
    let mut jobs: Vec<Option<(u32, &ShardEntry)>> = vec![None; plan.jobs.len()];
    let mut overlap = None;
    for (shard_index, found) in shards.iter().enumerate() {
        let path = || found.path.display().to_string();
        for ended in &found.manifest.jobs {
            let Ok(position) = numbers.binary_search_by_key(&ended.job, digest) else {
                let what = format!("it has job `{}`, which the plan has not", ended.job);
                return Err(usage(format!("failed to merge `{}`: {what}", path()), RUN_AGAIN));
            };
            let index = numbers[position] as usize;
            let Some((other, before)) = &jobs[index] else {
                jobs[index] = Some((shard_index as u32, ended));
                continue;
            };
            let first = shards[*other as usize].path.display().to_string();
            let key = &plan.jobs[index].key;
            match (&before.result, &ended.result) {
                (Ok(one), Ok(another)) if one.sha256 != another.sha256 => {
                    let made = [(shards[*other as usize], one.sha256), (*found, another.sha256)];
                    return Err(two_objects(&plan.jobs[index], made));
                }
                _ if found.manifest.shard == shards[*other as usize].manifest.shard => {}
                _ => {
                    overlap.get_or_insert_with(|| {
                        let what = format!("`{first}` and `{}`: both have `{key}`", path());
                        usage(format!("failed to merge {what}"), RUN_AGAIN)
                    });
                }
            }
        }
    }
    overlap.map_or(Ok(jobs), Err)
}

/// The error for a job of which two shards have different objects.
fn two_objects(job: &Job, made: [(&FoundShard, Digest); 2]) -> Error {
    let [one, other] =
        made.map(|(found, sha256)| format!("{sha256} in `{}`", found.path.display()));
    Error::new(
        ErrorKind::Unsound,
        format!("failed to merge two different objects of `{}`: {one}, {other}", job.key),
        "the machines have other headers of the C++ library or of the system, or the compiler does \
         not repeat itself: docs/toolchains.md; run one of the shards again",
    )
}

/// The result of merging.
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

impl MergedKdbs {
    /// Checks the shards, and writes and verifies every kdb below `out`.
    ///
    /// # Errors
    /// If shards do not fit together, an object is damaged, or a kdb can't be
    /// written.
    pub fn merge(options: &MergeOptions, out: &Path, progress: &dyn Progress) -> Result<Self> {
        let stored = Stored::open(&options.plan)?;
        let (found, wrong) = state::find(&options.dirs)?;
        for error in wrong {
            if !options.allow_partial {
                return Err(error);
            }
            progress.warning(&error.to_string());
        }
        let (digest, plan) = (stored.digest(), stored.load(&Jobs::All)?);
        let cache = Cache::open_for(&options.cache, Purpose::Build)?;
        let Prepared { plan, inputs, cache, .. } = &stored.prepared(plan, Vec::new(), cache)?;
        let allow = |error: Error| {
            if !options.allow_partial {
                return Err(error);
            }
            progress.warning(&format!("ignored: {error}"));
            Ok(())
        };
        let merged = MergedObjects::new(plan, digest, found, &allow, progress)?;
        std::fs::create_dir_all(out).map_err(error::io("create", out))?;
        let outputs = cache.outputs(out)?;
        let read = |job: JobId| merged.read(job);
        let known = merged.known.iter();
        let known = known.map(|known| known.map(|object| (object.sha256, object.size))).collect();
        let ledger = Ledger::new(plan, inputs, known, &merged.failed);
        progress.event(Event::BuildStarted(plan, &FailureFiles::default()));
        let made = assemble(inputs, out, options.blob, &outputs, &ledger, &read, progress);
        progress.event(Event::BuildEnded);
        // Which shard a damaged object is in is known here.
        let kdbs = made.map_err(|error| match damaged_object(&error) {
            Some(job) => merged.damaged(job),
            None => error,
        })?;
        let packages = MadePackages::default();
        record::write(&kdbs, &packages, Some(&ledger), None, &outputs, progress)?;
        let (jobs, failed) = (plan.jobs.len(), merged.failed.len());
        Ok(Self { kdbs, jobs, failed, plan: digest })
    }

    /// Returns an error if kernels are missing without permission.
    ///
    /// # Errors
    /// An error of the kind `ErrorKind::Incomplete`.
    pub fn outcome(&self, allow_partial: bool) -> Result<()> {
        let missing: u64 = self.kdbs.iter().map(|kdb| ledger::missing(&kdb.absent)).sum();
        if missing == 0 || allow_partial {
            return Ok(());
        }
        let reasons = "the compiler's output is below `failed` in the shards' directories";
        Err(incomplete(&self.kdbs, reasons, false))
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_plan::shard::ShardManifest;

    use super::*;

    #[test]
    fn toolchains_in_different_places_are_reported() {
        let shards = |places: &[&str]| -> BTreeMap<u32, FoundShard> {
            let found = |(index, place): (u32, &&str)| {
                let manifest = ShardManifest {
                    plan: Digest::of(b""),
                    shard: Shard::new(index, places.len() as u32).unwrap(),
                    places: Digest::of(place.as_bytes()),
                    jobs: Vec::new(),
                };
                (index, FoundShard { manifest, path: PathBuf::new(), dir: PathBuf::new() })
            };
            (1..).zip(places).map(found).collect()
        };
        assert_eq!(in_different_places(&shards(&["a", "a"])), None);
        let warning = in_different_places(&shards(&["a", "a", "b"])).unwrap();
        assert!(warning.starts_with("shards 1/3 and 3/3 had"), "{warning}");
    }
}
