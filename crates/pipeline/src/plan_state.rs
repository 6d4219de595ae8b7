//! What there is of a plan before it is built: the jobs that are done, and
//! the commands of all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, Looks, write_atomic};
use gfxpack_model::SourceId;
use gfxpack_plan::plan::{Job, KdbPlan, Plan};
use rayon::prelude::*;

use crate::error::{self, Result};
use crate::prepare::Prepared;

/// Which of a plan's jobs would not run, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanState {
    /// Whose objects the store has.
    pub cached: Vec<bool>,
    /// Which have a kept refusal.
    pub refused: Vec<bool>,
}

impl PlanState {
    /// Looks all jobs up, whose compilers may read the directories `admitted`
    /// besides the sources. Nothing is written.
    pub fn look_up(prepared: &Prepared, admitted: &[PathBuf]) -> Self {
        let (plan, store) = (&prepared.plan, &prepared.cache.store);
        let (looks, cancel) = (Looks::new(&prepared.cache.digests), Cancel::default());
        let current = prepared.current(&looks, &cancel, admitted).without_writing();
        let has = |job: &Job| store.lookup(job.digest, current.for_job(job)).is_some();
        let cached: Vec<bool> = plan.jobs.par_iter().map(has).collect();
        let is_refused = |(job, cached): (&Job, &bool)| {
            !cached && store.refusal(job.digest, current.for_job(job)).is_some()
        };
        let refused = plan.jobs.par_iter().zip(&cached).map(is_refused).collect();
        Self { cached, refused }
    }
}

/// How many rows of a kdb are of each language, by the language's name.
pub fn rows_by_language(plan: &Plan, kdb: &KdbPlan) -> BTreeMap<String, usize> {
    let mut languages: BTreeMap<String, usize> = BTreeMap::new();
    for row in &kdb.rows {
        *languages.entry(plan[row.job].language.to_string()).or_default() += 1;
    }
    languages
}

/// The command of a job, for a shell.
pub fn command_line(prepared: &Prepared, job: &Job) -> String {
    prepared.toolchains[job.toolchain.0].command_line(job.program, &job.arguments)
}

/// Writes `DIR/source-N` for every source, and `DIR/commands`: one line a
/// job for a shell in DIR, which makes `objects/DIGEST.o`.
///
/// # Errors
/// Where a file can't be written.
pub fn stage(prepared: &Prepared, dir: &Path) -> Result<()> {
    let objects = dir.join("objects");
    fs::create_dir_all(&objects).map_err(error::io("create", &objects))?;
    for source in 0..prepared.plan.sources.len() {
        let to = dir.join(format!("source-{source}"));
        gfxpack_compile::lay_out(&prepared.inputs.sources, SourceId(source), &to)?;
    }
    let mut lines = String::new();
    for job in &prepared.plan.jobs {
        let (command, source, digest) = (command_line(prepared, job), job.source.0, job.digest);
        writeln!(lines, "cd source-{source} && {command} -o ../objects/{digest}.o")
            .expect("writing to a string");
    }
    let path = dir.join("commands");
    write_atomic(&path, &[lines.as_bytes()]).map_err(error::io("write", &path))
}
