//! Puts shards together: every job of the plan from exactly one of them, each
//! object the one that its shard's manifest says.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use gfxpack_compile::{CompileError, ObjectStore};
use gfxpack_model::{Digest, JobId};
use gfxpack_plan::plan::Plan;
use gfxpack_plan::shard::{Ended, JobState, Shard, ranges};

use super::state::FoundShard;
use crate::error::{Error, ErrorKind, Result, usage};

/// What to do about a shard's manifest that does not fit the plan.
const RUN_AGAIN: &str = "remove that shard's manifest and run it again: what is compiled is kept";

/// Where the objects of a plan's jobs are.
pub struct Merged {
    shards: Vec<(Shard, PathBuf, ObjectStore)>,
    /// By job: the shard that has it, with the object's SHA-256 and size.
    jobs: Vec<Option<(u32, Digest, u64)>>,
    /// Jobs without an object, with the reason.
    pub failed: HashMap<JobId, String>,
    /// What was passed over, in words.
    pub warnings: Vec<String>,
}

/// What is wrong with shards, and whether it is passed over.
struct Faults {
    allowed: bool,
    warnings: Vec<String>,
}

impl Faults {
    fn pass(&mut self, error: Error) -> Result<()> {
        if !self.allowed {
            return Err(error);
        }
        self.warnings.push(format!("passed over: {error}"));
        Ok(())
    }
}

/// The shards of a plan by their numbers, each once and parted alike.
fn of_plan(
    plan: &Plan,
    digest: Digest,
    found: Vec<FoundShard>,
    faults: &mut Faults,
) -> Result<BTreeMap<u32, FoundShard>> {
    let mut shards: BTreeMap<u32, FoundShard> = BTreeMap::new();
    let mut repeated: Vec<FoundShard> = Vec::new();
    for found in found {
        let manifest = &found.manifest;
        let path = found.path.display().to_string();
        if manifest.plan != digest {
            faults.pass(usage(
                format!(
                    "failed to merge `{path}`: it is of plan {}, not of {digest}",
                    manifest.plan
                ),
                "build that shard from this plan; what both have in common is not compiled again",
            ))?;
            continue;
        }
        if let Some(first) = shards.values().next()
            && let Some(reason) = differently_parted(&found, first)
        {
            faults.pass(usage(
                format!(
                    "failed to merge `{path}`: it is shard {}, and `{}` is {}, {reason}",
                    manifest.shard,
                    first.path.display(),
                    first.manifest.shard
                ),
                "run all shards with the same I/N and the same --costs, or give only the \
                 directories that belong together",
            ))?;
            continue;
        }
        if let Some(first) = shards.get(&manifest.shard.index()) {
            let first = first.path.display().to_string();
            // Two different objects of one job are worth more words.
            repeated.push(found.clone());
            differ(plan, shards.values().chain(&repeated))?;
            faults.pass(usage(
                format!("failed to merge shard {} twice: `{first}` and `{path}`", manifest.shard),
                "give each shard once",
            ))?;
            continue;
        }
        shards.insert(manifest.shard.index(), found);
    }
    Ok(shards)
}

impl Merged {
    /// Holds shards against the plan and each other. With `allow_partial`,
    /// what is foreign, repeated or missing is passed over.
    pub fn new(
        plan: &Plan,
        digest: Digest,
        found: Vec<FoundShard>,
        allow_partial: bool,
    ) -> Result<Self> {
        let mut faults = Faults { allowed: allow_partial, warnings: Vec::new() };
        let shards = of_plan(plan, digest, found, &mut faults)?;
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
            faults.pass(usage(
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
                faults.pass(usage(
                    format!("failed to merge shard {shard}: its machine lost {lost} of its jobs"),
                    format!(
                        "run `gfxpack build --shard {shard}` again; --allow-partial merges without \
                         them"
                    ),
                ))?;
            }
        }
        let by_job = differ(plan, shards.values())?;
        let mut merged = Self {
            shards: Vec::new(),
            jobs: vec![None; plan.jobs.len()],
            failed: HashMap::new(),
            warnings: Vec::new(),
        };
        let found: Vec<&FoundShard> = shards.values().collect();
        let mut nowhere = Vec::new();
        for (index, job) in by_job.iter().enumerate() {
            match job {
                Some((place, Ended { result: Ok((sha256, size)), .. })) => {
                    merged.jobs[index] = Some((*place, *sha256, *size));
                }
                Some((_, Ended { result: Err(reason), .. })) => {
                    merged.failed.insert(JobId(index), reason.clone());
                }
                None => {
                    nowhere.push(index);
                    merged.failed.insert(JobId(index), "its shard was not there".to_owned());
                }
            }
        }
        if complete && let Some(first) = nowhere.first() {
            let key = &plan.jobs[*first].key;
            let count = nowhere.len();
            faults.pass(usage(
                format!(
                    "failed to find {count} of the plan's jobs in any shard, `{key}` the first"
                ),
                RUN_AGAIN,
            ))?;
        }
        merged.shards = found
            .iter()
            .map(|found| {
                let store = ObjectStore::open_to_look(&found.dir);
                (found.manifest.shard, found.dir.clone(), store)
            })
            .collect();
        merged.warnings = faults.warnings;
        Ok(merged)
    }

    /// By job: SHA-256 and size of its object.
    pub fn known(&self) -> Vec<Option<(Digest, u64)>> {
        self.jobs.iter().map(|job| job.map(|(_, sha256, size)| (sha256, size))).collect()
    }

    /// Reads a job's object, which must be the one that its manifest says.
    pub fn read(&self, plan: &Plan, job: JobId) -> Result<Vec<u8>, CompileError> {
        let digest = plan[job].digest;
        let (place, sha256, _) = self.jobs[job.0].ok_or(CompileError::CorruptObject(digest))?;
        self.shards[place as usize].2.read_known(digest, sha256)
    }

    /// What is told of an object that could not be read.
    pub fn damaged(&self, plan: &Plan, digest: Digest) -> Error {
        let job = plan.jobs.iter().position(|job| job.digest == digest).unwrap_or_default();
        let place = self.jobs[job].map_or(0, |(place, ..)| place as usize);
        let (shard, dir, _) = &self.shards[place];
        let (key, dir) = (&plan.jobs[job].key, dir.display());
        Error::new(
            ErrorKind::Unsound,
            format!(
                "failed to merge shard {shard}: the object of `{key}` in `{dir}` is damaged or gone"
            ),
            format!("run `gfxpack build --shard {shard}` again: it compiles what is damaged"),
        )
    }
}

fn differently_parted(a: &FoundShard, b: &FoundShard) -> Option<&'static str> {
    if a.manifest.shard.count() != b.manifest.shard.count() {
        Some("of another number")
    } else if a.manifest.costs != b.manifest.costs {
        Some("parted by other costs")
    } else {
        None
    }
}

/// Each job of the plan with the place of the shard that has it.
fn differ<'f>(
    plan: &Plan,
    shards: impl Iterator<Item = &'f FoundShard>,
) -> Result<Vec<Option<(u32, &'f Ended)>>> {
    let shards: Vec<&FoundShard> = shards.collect();
    let mut numbers: Vec<u32> = (0..plan.jobs.len() as u32).collect();
    let digest = |index: &u32| plan.jobs[*index as usize].digest;
    numbers.sort_unstable_by_key(digest);
    let mut jobs: Vec<Option<(u32, &Ended)>> = vec![None; plan.jobs.len()];
    let mut overlap = None;
    for (place, found) in shards.iter().enumerate() {
        let path = || found.path.display().to_string();
        for ended in &found.manifest.jobs {
            let Ok(place_of_job) = numbers.binary_search_by_key(&ended.job, digest) else {
                let what = format!("it has job `{}`, which the plan has not", ended.job);
                return Err(usage(format!("failed to merge `{}`: {what}", path()), RUN_AGAIN));
            };
            let index = numbers[place_of_job] as usize;
            let Some((other, before)) = &jobs[index] else {
                jobs[index] = Some((place as u32, ended));
                continue;
            };
            let first = shards[*other as usize].path.display().to_string();
            let key = &plan.jobs[index].key;
            match (&before.result, &ended.result) {
                (Ok((one, _)), Ok((other, _))) if one != other => {
                    return Err(Error::new(
                        ErrorKind::Unsound,
                        format!(
                            "failed to merge two different objects of `{key}`: {one} in `{first}`, \
                             {other} in `{}`",
                            path()
                        ),
                        "the machines differ in something that no digest covers, as the headers of \
                         the C++ library, or the compiler does not repeat itself: docs/toolchains.md",
                    ));
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
