//! What happened in a build, collected from its events.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gfxpack_compile::{Event, Failure, JobRun, Site, Usage};
use gfxpack_model::{JobId, Language, TargetId};
use gfxpack_plan::plan::Plan;
use serde_json::{Value, json};

use crate::failures::FailureGroups;

/// How many bytes of compilers' output are kept in addition to the first output
/// for each reason: nobody reads more, and browsers must be able to open the
/// report.
const ALL_OUTPUTS_LIMIT: usize = 8 << 20;
/// Maximum size of one kernel's output, in bytes.
pub(crate) const OUTPUT_LIMIT: usize = 16 << 10;

/// A job that ran to its end, or the precompiling of headers.
#[derive(Debug, Clone)]
pub(crate) struct JobFacts {
    /// The group of failures that the job is in; `None` if it was compiled.
    pub(crate) failed: Option<usize>,
    /// Size of the object, in bytes.
    pub(crate) size: u64,
    /// The worker, and the time since the build began.
    pub(crate) worker: usize,
    pub(crate) start: Duration,
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
    /// Where it ran, if not on this machine.
    pub(crate) remote: Option<Arc<str>>,
    /// The compiler's output if the job failed, shortened.
    pub(crate) output: Option<Arc<str>>,
}

/// The jobs of a build so far, by number. There may be a million, all of them in
/// the store.
#[derive(Debug)]
pub(crate) struct BuildFacts {
    pub(crate) begun: Instant,
    pub(crate) workers: usize,
    /// Jobs that ran.
    pub(crate) jobs: BTreeMap<JobId, JobFacts>,
    /// Sizes of objects that were in the store.
    pub(crate) cached: BTreeMap<JobId, u64>,
    /// Jobs with a kept refusal.
    refused: BTreeSet<JobId>,
    pub(crate) failures: FailureGroups,
    /// Headers that were precompiled for several jobs, with one of these jobs.
    pub(crate) shared: Vec<(JobId, JobFacts)>,
    /// All outputs without duplicates: many kernels have the same.
    outputs: HashSet<Arc<str>>,
    room: usize,
}

impl BuildFacts {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            workers: 0,
            jobs: BTreeMap::new(),
            cached: BTreeMap::new(),
            refused: BTreeSet::new(),
            failures: FailureGroups::default(),
            shared: Vec::new(),
            outputs: HashSet::new(),
            room: ALL_OUTPUTS_LIMIT,
        }
    }

    fn keep(&mut self, output: &str) -> Option<Arc<str>> {
        let output = cut(output);
        if let Some(kept) = self.outputs.get(output.as_str()) {
            return Some(Arc::clone(kept));
        }
        if output.is_empty() || output.len() > self.room {
            return None;
        }
        self.room -= output.len();
        let kept: Arc<str> = output.into();
        self.outputs.insert(Arc::clone(&kept));
        Some(kept)
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let begun = self.begun;
        let ran = |run: &JobRun, duration, usage: Usage, remote, output| JobFacts {
            failed: None,
            size: 0,
            worker: run.worker,
            start: run.started.saturating_duration_since(begun),
            duration,
            usage,
            remote,
            output,
        };
        match event {
            Event::FoundInCache { cached, refused } => {
                // What an earlier run of this build compiled still counts as
                // compiled.
                let found = cached.iter().filter(|(job, _)| !self.jobs.contains_key(job));
                self.cached.extend(found.copied());
                // A repeated run tries failed jobs again.
                self.failures = FailureGroups::default();
                self.jobs.retain(|_, fact| fact.failed.is_none());
                self.refused = refused.iter().map(|(job, _)| *job).collect();
                for (job, failure) in refused {
                    self.failures.add(*job, failure);
                }
            }
            Event::Queued { workers, .. } => self.workers = self.workers.max(*workers),
            Event::HeadersPrecompiled { job, run, duration, usage } => {
                self.shared.push((*job, ran(run, *duration, *usage, None, None)));
            }
            Event::Started { .. } | Event::Warning { .. } => {}
            Event::Finished { job, run, compiled } => {
                let fact = ran(run, compiled.duration, compiled.usage, place(&compiled.site), None);
                self.cached.remove(job);
                self.jobs.insert(*job, JobFacts { size: compiled.size, ..fact });
            }
            Event::Failed { job, run, failure } => {
                let (group, _) = self.failures.add(*job, failure);
                let Failure { duration, usage, site, .. } = failure;
                let output = self.keep(&failure.output);
                let fact = ran(run, *duration, *usage, place(site), output);
                self.cached.remove(job);
                self.jobs.insert(*job, JobFacts { failed: Some(group), ..fact });
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
            .list()
            .iter()
            .map(|group| {
                let first = group.jobs.first().map(|job| &plan[*job].key);
                json!({
                    "count": group.jobs.len(), "kind": group.example.kind.name(),
                    "message": group.message, "reason": group.reason, "example": first,
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

/// The machine that a job ran on; `None` for this machine.
fn place(site: &Site) -> Option<Arc<str>> {
    let Site::Remote { worker, cached } = site else { return None };
    let worker = if worker.is_empty() { "a remote worker" } else { worker };
    Some(if *cached { format!("{worker}, earlier").into() } else { worker.into() })
}

fn cut(output: &str) -> String {
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
        *if fact.failed.is_some() { &mut self.failed } else { &mut self.compiled } += 1;
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
