//! What happened in a build, collected from its events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use gfxpack_compile::{Event, Usage};
use gfxpack_model::{JobId, Language, TargetId};
use gfxpack_plan::plan::Plan;
use gfxpack_process::Timestamp;
use serde_json::{Value, json};

use crate::failures::{FailureGroups, reason_of};

/// Maximum size of an output in the report, in bytes.
pub(crate) const OUTPUT_LIMIT: usize = 16 << 10;

/// A job that ran to its end.
#[derive(Debug, Clone)]
pub(crate) struct JobFacts {
    pub(crate) failed: bool,
    /// Size of the object, in bytes.
    pub(crate) size: u64,
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
}

/// The jobs of a build so far, by number. There may be a million, all of them in
/// the store.
#[derive(Debug)]
pub(crate) struct BuildFacts {
    pub(crate) begun: Instant,
    pub(crate) date: Timestamp,
    pub(crate) workers: usize,
    /// Jobs that ran.
    pub(crate) jobs: BTreeMap<JobId, JobFacts>,
    /// Sizes of objects that were in the store.
    pub(crate) cached: BTreeMap<JobId, u64>,
    refused: BTreeSet<JobId>,
    pub(crate) failures: FailureGroups,
}

impl BuildFacts {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            date: Timestamp::now(),
            workers: 0,
            jobs: BTreeMap::new(),
            cached: BTreeMap::new(),
            refused: BTreeSet::new(),
            failures: FailureGroups::default(),
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::FoundInCache { cached, refused } => {
                // What an earlier run of this build compiled still counts as
                // compiled.
                let found = cached.iter().filter(|(job, _)| !self.jobs.contains_key(job));
                self.cached.extend(found.copied());
                // A repeated run tries failed jobs again.
                self.failures = FailureGroups::default();
                self.jobs.retain(|_, fact| !fact.failed);
                self.refused = refused.iter().map(|(job, _)| *job).collect();
                for (job, failure) in refused {
                    self.failures.add(*job, failure);
                }
            }
            Event::Queued { workers, .. } => self.workers = self.workers.max(*workers),
            Event::HeadersPrecompiled { .. } | Event::Started { .. } | Event::Warning { .. } => {}
            Event::Finished { job, compiled, .. } => {
                let (size, duration, usage) =
                    (compiled.object.size, compiled.duration, compiled.usage);
                self.cached.remove(job);
                self.jobs.insert(*job, JobFacts { failed: false, size, duration, usage });
            }
            Event::Failed { job, failure, .. } => {
                self.failures.add(*job, failure);
                let (duration, usage) = (failure.duration, failure.usage);
                self.cached.remove(job);
                self.jobs.insert(*job, JobFacts { failed: true, size: 0, duration, usage });
            }
        }
    }

    /// A summary of the build, without single jobs. `seconds` is how long the
    /// build took, `error` what ended it early.
    pub(crate) fn summary(&self, plan: &Plan, seconds: Duration, error: Option<&str>) -> Value {
        let mut groups: BTreeMap<(&TargetId, Language), Totals> = BTreeMap::new();
        let mut all = Totals::default();
        let of = |job: &JobId| (&plan[*job].target_id, plan[*job].language);
        for (job, fact) in &self.jobs {
            groups.entry(of(job)).or_default().add(fact);
            all.add(fact);
        }
        for (job, size) in &self.cached {
            for sum in [groups.entry(of(job)).or_default(), &mut all] {
                sum.cached += 1;
                sum.size += size;
            }
        }
        for job in &self.refused {
            for sum in [groups.entry(of(job)).or_default(), &mut all] {
                sum.failed += 1;
                sum.refused_before += 1;
            }
        }
        let groups: Vec<Value> = groups
            .iter()
            .map(|((target, language), sum)| {
                let mut body = json!({ "target": target, "language": language });
                sum.describe(&mut body);
                body
            })
            .collect();
        let failures: Vec<Value> = self
            .failures
            .list
            .iter()
            .map(|group| {
                let first = group.jobs.first().map(|job| &plan[*job].key);
                json!({
                    "count": group.jobs.len(), "kind": group.example.kind.name(),
                    "message": group.example.kind.to_string(), "reason": reason_of(&group.example),
                    "example": first,
                    "output": cut(&group.example.output),
                })
            })
            .collect();
        let compilers: Vec<&str> =
            plan.toolchains.iter().map(|toolchain| toolchain.identity.as_str()).collect();
        let mut body = json!({
            "compilers": compilers, "plan": plan.digest(),
            "workers": self.workers, "jobs": plan.jobs.len(),
            "milliseconds": seconds.as_millis() as u64, "error": error,
        });
        all.describe(&mut body);
        body["groups"] = groups.into();
        body["failures"] = failures.into();
        body
    }
}

/// The beginning of a long output.
pub(super) fn cut(output: &str) -> String {
    let end = output.floor_char_boundary(OUTPUT_LIMIT);
    let more = if end < output.len() { "\n[more is not shown here]" } else { "" };
    format!("{}{more}", &output[..end])
}

#[derive(Debug, Default)]
struct Totals {
    cached: usize,
    compiled: usize,
    failed: usize,
    refused_before: usize,
    size: u64,
    run: Duration,
    cpu: Duration,
    peak_memory: u64,
}

impl Totals {
    fn add(&mut self, fact: &JobFacts) {
        *if fact.failed { &mut self.failed } else { &mut self.compiled } += 1;
        self.size += fact.size;
        self.run += fact.duration;
        self.cpu += fact.usage.cpu;
        self.peak_memory = self.peak_memory.max(fact.usage.peak_memory);
    }

    fn describe(&self, body: &mut Value) {
        body["cached"] = self.cached.into();
        body["compiled"] = self.compiled.into();
        body["failed"] = self.failed.into();
        body["refused_before"] = self.refused_before.into();
        body["size"] = self.size.into();
        body["compile_milliseconds"] = (self.run.as_millis() as u64).into();
        body["cpu_milliseconds"] = (self.cpu.as_millis() as u64).into();
        body["peak_memory"] = self.peak_memory.into();
    }
}
