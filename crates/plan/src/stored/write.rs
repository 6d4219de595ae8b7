//! Writes a plan's jobs as a stream. Only their digests and keys are kept in memory, so that a
//! million jobs take little more memory than their keys.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gfxpack_model::{Digest, Error, JobId, KernelKey, SourceId};
use sha2::{Digest as _, Sha256};

use super::lines::{Group, Rows, StoredKdb};
use crate::arguments::compile_target;
use crate::clock::Clock;
use crate::key_list::KeyRequest;
use crate::plan::{self, Command, Commands, Job, PlanToolchain, Source, TargetRequest};
use crate::workers::Workers;

/// The part of the header that describes the written jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The plan's digest.
    pub digest: Digest,
    /// The number of jobs.
    pub jobs: usize,
    /// SHA-256 of their lines.
    pub jobs_sha256: Digest,
    /// Properties that many jobs share.
    pub groups: Vec<Group>,
    /// One per target.
    pub kdbs: Vec<StoredKdb>,
    /// Of jobs that differ only in macros, one each.
    pub samples: Vec<Job>,
}

/// Plans as [`plan::plan`] does, and has every job written as a line. Jobs are in the order of the first
/// kdb's rows, so that the order of the given keys does not matter.
///
/// # Errors
/// If a key's options can't be given to a compiler, and the errors of `write`.
///
/// # Panics
/// If a request refers to a missing toolchain or source.
pub fn write_jobs(
    toolchains: &[PlanToolchain],
    sources: &[Source],
    requests: &[TargetRequest],
    clock: &Clock,
    write: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    workers: &impl Workers,
) -> Result<Written, Error> {
    let commands = Commands::new(toolchains, sources, clock, workers);
    let mut writer = Writer {
        write,
        sha256: Sha256::new(),
        groups: Vec::new(),
        group_numbers: HashMap::new(),
        samples: Vec::new(),
        sampled: HashSet::new(),
        jobs: Vec::new(),
        by_digest: HashMap::new(),
    };
    let mut kdbs = Vec::new();
    let mut kdb_digests = Vec::new();
    for request in requests {
        let mut order: Vec<&(Arc<KeyRequest>, SourceId)> = request.keys.iter().collect();
        order.sort_by(|(a, _), (b, _)| a.key.cmp(&b.key));
        let mut numbers: Vec<u32> = Vec::with_capacity(order.len());
        let mut rows = Vec::new();
        commands.each(request, &order, |key, source, command| {
            let number = writer.job(command, key, source, request)?;
            let job = JobId(number as usize);
            add(&mut rows, job, &key.key, &writer.jobs[job.0].1);
            numbers.push(number);
            Ok(())
        })?;
        let keys = order.iter().map(|(key, _)| &*key.key);
        let digests = numbers.iter().map(|number| writer.jobs[*number as usize].0);
        kdb_digests.push(plan::kdb_digest(&request.target, keys, digests));
        kdbs.push(StoredKdb {
            target: request.target.clone(),
            format: request.format,
            toolchain: request.toolchain,
            rows,
        });
    }
    Ok(Written {
        digest: plan::plan_digest(kdb_digests.into_iter()),
        jobs: writer.jobs.len(),
        jobs_sha256: Digest::from_bytes(writer.sha256.finalize().into()),
        groups: writer.groups,
        kdbs,
        samples: writer.samples,
    })
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

struct Writer<'a> {
    write: &'a mut dyn FnMut(&[u8]) -> Result<(), Error>,
    sha256: Sha256,
    groups: Vec<Group>,
    group_numbers: HashMap<Group, usize>,
    samples: Vec<Job>,
    /// The groups of the samples, with their arguments but for macros.
    sampled: HashSet<(usize, Vec<String>)>,
    /// By number, with the first key of each.
    jobs: Vec<(Digest, Arc<KernelKey>)>,
    by_digest: HashMap<Digest, u32>,
}

impl Writer<'_> {
    /// The number of the job with this command. The first time, the job is written.
    fn job(
        &mut self,
        command: Command,
        key: &KeyRequest,
        source: SourceId,
        request: &TargetRequest,
    ) -> Result<u32, Error> {
        let Command { digest, program, arguments, options } = command;
        if let Some(number) = self.by_digest.get(&digest) {
            return Ok(*number);
        }
        let group = Group {
            kernel_name: key.key.kernel_name.clone(),
            language: key.language,
            target_id: compile_target(key.language, request.target.id()),
            source,
            toolchain: request.toolchain,
            program,
            before: arguments[..options.start].to_vec(),
            after: arguments[options.end..].to_vec(),
        };
        let groups = &mut self.groups;
        let group = *self.group_numbers.entry(group).or_insert_with_key(|group| {
            groups.push(group.clone());
            groups.len() - 1
        });
        let is_macro = |option: &&String| option.starts_with("-D") || option.starts_with("-U");
        let others = arguments.iter().filter(|arg| !is_macro(arg)).cloned().collect();
        if self.sampled.insert((group, others)) {
            let Group { language, target_id, .. } = &self.groups[group];
            self.samples.push(Job {
                digest,
                key: Arc::clone(&key.key),
                language: *language,
                target_id: target_id.clone(),
                source,
                toolchain: request.toolchain,
                program,
                arguments: arguments.iter().map(|arg| Arc::from(arg.as_str())).collect(),
            });
        }
        self.line(digest, group, &key.key.kernel_args)?;
        let number = self.jobs.len() as u32;
        self.jobs.push((digest, Arc::clone(&key.key)));
        self.by_digest.insert(digest, number);
        Ok(number)
    }

    fn line(&mut self, digest: Digest, group: usize, arguments: &str) -> Result<(), Error> {
        let mut line = serde_json::to_vec(&(digest, group, arguments)).expect("plain data");
        line.push(b'\n');
        self.sha256.update(&line);
        (self.write)(&line)
    }
}
