//! What jobs cost in an earlier build, from what that build reported: for
//! those who part the jobs among machines before any of them runs.

use std::collections::HashMap;

use gfxpack_model::{Digest, JobId, KernelKey, Language, SourceId};
use gfxpack_plan::plan::Plan;
use serde::Deserialize;

use super::expected::{CostRecord, Costs, identity_of};

/// Costs of an earlier build.
#[derive(Debug)]
pub struct KnownCosts {
    costs: Costs,
    digest: Digest,
    count: usize,
}

/// A message of a build that tells what a job took.
#[derive(Deserialize)]
struct Finished {
    #[serde(rename = "type")]
    kind: String,
    kernel_name: String,
    kernel_args: String,
    target: String,
    language: Language,
    milliseconds: u64,
    #[serde(default)]
    cpu_milliseconds: u64,
    #[serde(default)]
    peak_memory: u64,
}

impl KnownCosts {
    /// Reads what a build printed with `--message-format json`, or the
    /// `costs.jsonl` of its cache; lines that tell no cost are passed over.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let mut exact: HashMap<String, CostRecord> = HashMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let record = match line.first() {
                Some(b'[') => serde_json::from_slice::<CostRecord>(line).ok(),
                Some(b'{') => message(line),
                _ => None,
            };
            if let Some(record) = record.filter(CostRecord::is_sound) {
                exact.insert(record.0.clone(), record);
            }
        }
        let count = exact.len();
        Self { costs: Costs::from_records(exact), digest: Digest::of(bytes), count }
    }

    /// SHA-256 of what was read.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many jobs' costs it tells.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// What each job of a plan is expected to take, in microseconds.
    pub fn of_plan(&self, plan: &Plan, closure_size: impl Fn(SourceId) -> usize) -> Vec<u64> {
        let all: Vec<JobId> = plan.job_ids().collect();
        let expected = self.costs.expect(plan, &all, closure_size);
        expected.iter().map(|expected| expected.time.as_micros() as u64).collect()
    }
}

fn message(line: &[u8]) -> Option<CostRecord> {
    let said: Finished = serde_json::from_slice(line).ok()?;
    if said.kind != "job-finished" {
        return None;
    }
    let source = said.kernel_name.strip_suffix(".o").unwrap_or(&said.kernel_name).to_owned();
    let Finished { kernel_name, kernel_args, target, language, peak_memory, .. } = said;
    // CPU time where it is known, as in the costs that a cache keeps.
    let time = if said.cpu_milliseconds > 0 { said.cpu_milliseconds } else { said.milliseconds };
    let key = KernelKey { kernel_name, kernel_args };
    Some(CostRecord(identity_of(&key, &target), source, language, time, peak_memory >> 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_records_tell_the_same_and_the_rest_is_passed_over() {
        let said = r#"{"format":1,"type":"job-finished","job":"x","kernel_name":"a.cl.o","kernel_args":" -mcpu=gfx906","target":"gfx906","language":"opencl-c","worker":0,"milliseconds":9,"cpu_milliseconds":7,"peak_memory":2048}"#;
        let costs = KnownCosts::read(format!("{said}\nnonsense\n{{}}\n[1]\n").as_bytes());
        assert_eq!(costs.count(), 1);
        let record = costs.costs.exact.values().next().unwrap();
        let kept = serde_json::to_string(record).unwrap();
        let again = KnownCosts::read(kept.as_bytes());
        assert_eq!(again.costs.exact.values().next(), Some(record));
        assert_ne!(again.digest(), costs.digest());
        assert_eq!((record.3, record.4), (7, 2));
        let failed = said.replace("job-finished", "job-failed");
        assert_eq!(KnownCosts::read(failed.as_bytes()).count(), 0);
    }
}
