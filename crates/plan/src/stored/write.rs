//! Writes a plan's jobs as lines.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gfxpack_model::{Digest, Error, JobId, KernelKey};
use sha2::{Digest as _, Sha256};

use super::lines::{Group, Rows, StoredKdb};
use crate::arguments::COMPILATION_DIR;
use crate::clock::Clock;
use crate::plan::{Job, Plan};

/// The part of the header that describes the written jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The number of jobs.
    pub jobs: usize,
    /// SHA-256 of their lines.
    pub jobs_sha256: Digest,
    /// Properties that many jobs share.
    pub groups: Vec<Group>,
    /// One per target.
    pub kdbs: Vec<StoredKdb>,
    /// Of the plan's jobs that differ only in macros, one each.
    pub samples: Vec<JobId>,
}

/// Has every job of a plan written as a line. They are in the order of the kdbs' rows, so that the
/// order of the given keys does not matter.
pub fn write_jobs(
    plan: &Plan,
    write: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Written, Error> {
    let (mut sha256, mut samples) = (Sha256::new(), Vec::new());
    let mut groups: HashMap<Group, usize> = HashMap::new();
    // The groups of the samples, with their arguments but for macros.
    let mut sampled: HashSet<(usize, Vec<&str>)> = HashSet::new();
    // Of each job that was written: its number, and its first key.
    let mut written: HashMap<JobId, (JobId, &KernelKey)> = HashMap::new();
    let mut kdbs = Vec::new();
    for kdb in &plan.kdbs {
        let mut rows = Vec::new();
        for row in &kdb.rows {
            let number = JobId(written.len());
            if let Some((number, own)) = written.get(&row.job) {
                add(&mut rows, *number, &row.key, own);
                continue;
            }
            let job = &plan[row.job];
            let next = groups.len();
            let group = *groups.entry(group(plan, job, &row.key)).or_insert(next);
            let is_macro = |option: &&str| option.starts_with("-D") || option.starts_with("-U");
            let others = job.arguments.iter().map(|arg| &**arg).filter(|arg| !is_macro(arg));
            if sampled.insert((group, others.collect())) {
                samples.push(row.job);
            }
            let line = (job.digest, group, &row.key.kernel_args);
            let mut line = serde_json::to_vec(&line).expect("plain data");
            line.push(b'\n');
            sha256.update(&line);
            write(&line)?;
            written.insert(row.job, (number, &row.key));
            add(&mut rows, number, &row.key, &row.key);
        }
        let (target, format) = (kdb.target.clone(), kdb.format);
        kdbs.push(StoredKdb { target, format, toolchain: kdb.toolchain, rows });
    }
    let mut groups: Vec<(Group, usize)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, number)| *number);
    Ok(Written {
        jobs: written.len(),
        jobs_sha256: Digest::from_bytes(sha256.finalize().into()),
        groups: groups.into_iter().map(|(group, _)| group).collect(),
        kdbs,
        samples,
    })
}

/// What a job shares with those that differ from it only in the options of this key.
fn group(plan: &Plan, job: &Job, key: &KernelKey) -> Group {
    // Only the include directories follow this before the options, of which it is none.
    let last = job.arguments.iter().position(|argument| **argument == *COMPILATION_DIR);
    let before = last.expect("all jobs have it") + 1 + plan[job.source].include_dirs.len();
    let after = job.arguments.len() - Clock::at(0).definitions(job.language).len() - 1;
    let owned = |arguments: &[Arc<str>]| arguments.iter().map(|it| (**it).to_owned()).collect();
    Group {
        kernel_name: key.kernel_name.clone(),
        language: job.language,
        target_id: job.target_id.clone(),
        source: job.source,
        toolchain: job.toolchain,
        program: job.program,
        before: owned(&job.arguments[..before]),
        after: owned(&job.arguments[after..]),
    }
}

/// Adds a row, to the last run of rows if it continues that.
fn add(rows: &mut Vec<Rows>, job: JobId, key: &KernelKey, own: &KernelKey) {
    if key != own {
        rows.push(Rows::Other(job, key.kernel_name.clone(), key.kernel_args.clone()));
        return;
    }
    match rows.last_mut() {
        Some(Rows::Run(first, count)) if first.0 + *count == job.0 => *count += 1,
        _ => rows.push(Rows::Run(job, 1)),
    }
}
