//! `merge`: the kdbs of a stored plan out of its shards.

use std::fs;

use gfxpack_compile::{Cancel, CompileError};
use gfxpack_model::JobId;
use gfxpack_plan::stored::Jobs;
use serde_json::json;

use crate::args::Merge;
use crate::build::{self, Assembly, MadeKdb, Objects};
use crate::environment::Environment;
use crate::fail::{self, Outcome};
use crate::output::Output;
use crate::prepare::{self, Purpose};
use crate::shards::merge::Merged;
use crate::shards::{Stored, state};
use crate::{progress, record, writers};

/// Checks the shards, and writes and verifies every kdb.
pub(crate) fn run(
    args: &Merge,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    let stored = Stored::open(&args.plan)?;
    let (found, wrong) = state::find(&args.dirs)?;
    for error in wrong {
        if !args.allow_partial {
            return Err(error.into());
        }
        output.warn(&fail::in_full(&error));
    }
    let (digest, plan) = (stored.digest(), stored.load(&Jobs::All)?);
    let merged = Merged::of(&plan, digest, found, args.allow_partial)?;
    merged.warnings.iter().for_each(|warning| output.warn(warning));
    let cache = prepare::open_cache(&args.cache, environment, Purpose::Build)?;
    let prepared = stored.prepared(plan, Vec::new(), cache)?;
    let kdb_dir = args.out.join("kdb");
    fs::create_dir_all(&kdb_dir).map_err(fail::io("create", &kdb_dir))?;
    let outputs = prepared.cache.outputs(&args.out)?;
    let plan = &prepared.plan;
    let read = |job: JobId| merged.read(plan, job);
    let objects = Objects { known: merged.known(), failed: merged.failed.clone(), read: &read };
    let assembly = Assembly {
        prepared: &prepared,
        out: &args.out,
        form: args.form,
        cancel,
        outputs: &outputs,
    };
    let mut progress = progress::of(output, plan, None);
    let made = assembly.run(&objects, progress.as_mut());
    progress.finish(true);
    drop(progress);
    let kdbs = made.map_err(|error| explained(error, &merged, plan))?;
    record::write(
        &args.out,
        &kdbs.iter().collect::<Vec<_>>(),
        &writers::Made::default(),
        None,
        output,
    )?;
    let missing: usize = kdbs.iter().map(|kdb| kdb.missing.len()).sum();
    summarise(args, &kdbs, plan.jobs.len(), &merged, digest.to_string(), output);
    if missing > 0 && !args.allow_partial {
        let kernels: u64 = kdbs.iter().map(|kdb| kdb.kernels).sum();
        let total = kernels as usize + missing;
        let why = "the compiler's words are below `failed` in the shards' directories";
        return Err(Outcome::Refused { failed: missing, total, why, packages: false }.into());
    }
    Ok(())
}

/// An object that is damaged is its shard's affair.
fn explained(
    error: anyhow::Error,
    merged: &Merged,
    plan: &gfxpack_plan::plan::Plan,
) -> anyhow::Error {
    match error.downcast::<CompileError>() {
        Ok(CompileError::CorruptObject(job)) => merged.damaged(plan, job).into(),
        Ok(other) => other.into(),
        Err(other) => other,
    }
}

fn summarise(
    args: &Merge,
    kdbs: &[MadeKdb],
    jobs: usize,
    merged: &Merged,
    plan: String,
    output: &Output,
) {
    build::tell(kdbs, output);
    let failed = merged.failed.len();
    output.message("merge-finished", &json!({ "jobs": jobs, "failed": failed, "plan": plan }));
    let words = if failed > 0 { format!(", {failed} without an object") } else { String::new() };
    output.say(&format!("{jobs} jobs merged{words}: {}", args.out.display()));
}
