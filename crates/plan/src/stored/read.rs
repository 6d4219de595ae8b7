//! Reads a stored plan, or some of its jobs as a stream.

use std::collections::HashSet;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use gfxpack_model::{Digest, Error, JobId, KernelKey};
use sha2::{Digest as _, Sha256};

use super::check::check;
use super::lines::{Group, Header, Rows, StoredToolchain, damaged};
use crate::arguments;
use crate::key_list::KEYS_AT_ONCE;
use crate::plan::{self, Job, KdbPlan, Plan, Row, SharedWords};
use crate::workers::Workers;

/// The jobs to read.
pub enum Jobs<'a> {
    /// All jobs, and the kdbs.
    All,
    /// The jobs whose digests are chosen; no kdbs.
    Only(&'a dyn Fn(Digest) -> bool),
}

/// The most bytes of a line: keys take far less.
const MAX_LINE: u64 = 16 << 20;

/// The position of the digest in a line, after `["`.
const DIGEST: std::ops::Range<usize> = 2..66;

/// Reads the chosen jobs from their lines. Everything is checked: the digest of all lines, that of
/// each job, and that of the plan if all of it is read.
///
/// # Errors
/// If the lines can't be read, or do not have their digests.
pub fn read<A>(
    header: &Header<A>,
    lines: &mut dyn BufRead,
    wanted: &Jobs<'_>,
    workers: &impl Workers,
) -> Result<Plan, Error> {
    check(header)?;
    let sources = plan::source_digests(&header.sources);
    let (groups, toolchains) = (&header.groups[..], &header.toolchains[..]);
    let mut sha256 = Sha256::new();
    let mut words = SharedWords::default();
    let mut jobs: Vec<Job> = Vec::new();
    let other = || damaged("its jobs are not those that its header was written for");
    let mut left = header.jobs;
    while left > 0 {
        let mut block: Vec<Vec<u8>> = Vec::new();
        while left > 0 && block.len() < KEYS_AT_ONCE {
            let line = next_line(lines)?.ok_or_else(other)?;
            sha256.update(&line);
            left -= 1;
            if is_wanted(&line, wanted)? {
                block.push(line);
            }
        }
        for job in workers.map(&block, |line| job(line, groups, toolchains, &sources)) {
            let (job, arguments) = job?;
            jobs.push(Job { arguments: words.shared(&arguments), ..job });
        }
    }
    let sha256 = Digest::from_bytes(sha256.finalize().into());
    if next_line(lines)?.is_some() || sha256 != header.jobs_sha256 {
        return Err(other());
    }
    if jobs.iter().map(|job| job.digest).collect::<HashSet<_>>().len() < jobs.len() {
        return Err(damaged("it has a job twice"));
    }
    let kdbs = match wanted {
        Jobs::All => kdbs(header, &jobs)?,
        Jobs::Only(_) => Vec::new(),
    };
    let toolchains = header.toolchains.iter().map(|stored| stored.toolchain.clone()).collect();
    let plan = Plan { toolchains, sources: header.sources.clone(), jobs, kdbs };
    if matches!(wanted, Jobs::All) && plan.digest() != header.digest {
        return Err(damaged("its kdbs are not those that its digest says"));
    }
    Ok(plan)
}

/// The next line; `None` at the end.
fn next_line(lines: &mut dyn BufRead) -> Result<Option<Vec<u8>>, Error> {
    let mut line = Vec::new();
    let unreadable = |error: io::Error| {
        Error::usage("failed to read the plan's jobs", "check the directory").caused_by(error)
    };
    Read::take(&mut *lines, MAX_LINE).read_until(b'\n', &mut line).map_err(unreadable)?;
    match line.len() as u64 {
        0 => Ok(None),
        MAX_LINE => Err(damaged("it has lines without end")),
        _ => Ok(Some(line)),
    }
}

fn is_wanted(line: &[u8], wanted: &Jobs<'_>) -> Result<bool, Error> {
    let Jobs::Only(chosen) = wanted else { return Ok(true) };
    let digest = line.get(DIGEST).and_then(|text| std::str::from_utf8(text).ok());
    let digest = digest.and_then(|text| text.parse().ok());
    digest.map(chosen).ok_or_else(|| damaged("a line does not begin with a job's digest"))
}

/// The job of a line, and its arguments, which it does not have yet.
fn job(
    line: &[u8],
    groups: &[Group],
    toolchains: &[StoredToolchain],
    sources: &[Digest],
) -> Result<(Job, Vec<String>), Error> {
    let (digest, number, kernel_args): (Digest, usize, String) =
        serde_json::from_slice(line).map_err(|error| damaged(format!("a job: {error}")))?;
    let group = groups.get(number).ok_or_else(|| damaged("a job names a group that is missing"))?;
    let key = Arc::new(KernelKey { kernel_name: group.kernel_name.clone(), kernel_args });
    let own = arguments::parse(group.language, key.options())
        .map_err(|problem| damaged(format!("the options of `{key}`: {problem}")))?;
    let arguments = [&group.before[..], &own, &group.after].concat();
    let compiler = toolchains[group.toolchain.0].toolchain.digest_for(group.language);
    if plan::job_digest(compiler, group.program, &arguments, sources[group.source.0]) != digest {
        return Err(damaged(format!("job `{digest}` is not what its digest says")));
    }
    let job = Job {
        digest,
        language: group.language,
        target_id: group.target_id.clone(),
        source: group.source,
        toolchain: group.toolchain,
        program: group.program,
        arguments: Vec::new(),
        key,
    };
    Ok((job, arguments))
}

fn kdbs<A>(header: &Header<A>, jobs: &[Job]) -> Result<Vec<KdbPlan>, Error> {
    let one = |kdb: &super::lines::StoredKdb| {
        let mut rows: Vec<Row> = Vec::new();
        for stored in &kdb.rows {
            match stored {
                Rows::Run(JobId(first), count) => {
                    let run = (*first..first + count).map(JobId);
                    rows.extend(run.map(|job| Row { key: Arc::clone(&jobs[job.0].key), job }));
                }
                Rows::Other(job, name, args) => rows.push(Row {
                    key: Arc::new(KernelKey {
                        kernel_name: name.clone(),
                        kernel_args: args.clone(),
                    }),
                    job: *job,
                }),
            }
        }
        if !rows.is_sorted_by(|a, b| a.key < b.key) {
            return Err(damaged("the rows of a kdb are not in their order"));
        }
        Ok(KdbPlan {
            target: kdb.target.clone(),
            format: kdb.format,
            toolchain: kdb.toolchain,
            rows,
        })
    };
    header.kdbs.iter().map(one).collect()
}
