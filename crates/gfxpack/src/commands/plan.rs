//! `plan`: what a build would do, without doing it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use gfxpack_compile::{Cancel, Current, Looks, write_atomic};
use gfxpack_model::{Digest, SourceId};
use gfxpack_pipeline::cache::Cache;
use gfxpack_pipeline::options::Purpose;
use gfxpack_pipeline::prepare::{self, Gathered, Prepared, Work};
use gfxpack_pipeline::shards::stored;
use gfxpack_plan::plan::{Job, Plan};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::why;
use crate::args::PlanCommand;
use crate::environment::Environment;
use crate::fail::{self, Result};
use crate::options::PlanArgs;
use crate::output::{Output, counted, shown};
use crate::prepared;
use crate::progress::Reporter;

/// Makes the plan and prints it.
pub(crate) fn run(
    args: &PlanCommand,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    let plan = PlanArgs {
        inputs: &args.inputs,
        toolchain: &args.toolchain,
        cache: &args.cache,
        stated_license: None,
        allow_partial: false,
        // What the commands name has to stay.
        purpose: if args.stage.is_some() { Purpose::Build } else { Purpose::Look },
        jobs: None,
    };
    let reporter = Reporter::new(output, None);
    let gathered = match prepare::gather(&plan.options(environment)?, cancel, &reporter)? {
        Work::ToDo(gathered) => *gathered,
        Work::NothingMissing(shares) => {
            prepared::report_shares(&shares, output);
            return Ok(());
        }
    };
    if let Some(dir) = &args.out {
        return store(gathered, dir, args.carry, output);
    }
    let prepared = gathered.plan()?;
    prepared::report(&prepared.inputs, output);
    if let Some(dir) = &args.stage {
        stage(&prepared, dir)?;
    }
    match &args.explain {
        Some(text) => why::run(&prepared, text, output),
        None => {
            print(&prepared, args.commands, output);
            Ok(())
        }
    }
}

/// Stores the plan, and says in short what it is.
fn store(gathered: Gathered, dir: &Path, carry: u64, output: &Output) -> Result {
    prepared::report(&gathered.read.inputs, output);
    let header = stored::write(dir, gathered, carry)?;
    let kdbs: Vec<String> = header.kdbs.iter().map(|kdb| kdb.target.kdb_file_name()).collect();
    output.message(
        "plan-stored",
        &json!({ "digest": header.digest, "directory": shown(dir), "jobs": header.jobs, "kdbs": kdbs }),
    );
    if !output.json {
        output.data(&format!("plan      {}", header.digest));
        output.data(&format!("{} compile jobs for {}", header.jobs, kdbs.join(", ")));
    }
    Ok(())
}

/// Writes `DIR/source-N` for every source, and `DIR/commands`: one line a
/// job for a shell in DIR, which makes `objects/DIGEST.o`.
fn stage(prepared: &Prepared, dir: &Path) -> Result {
    let objects = dir.join("objects");
    fs::create_dir_all(&objects).map_err(fail::io("create", &objects))?;
    for source in 0..prepared.plan.sources.len() {
        prepared.inputs.sources.stage(SourceId(source), &dir.join(format!("source-{source}")))?;
    }
    let mut lines = String::new();
    for job in &prepared.plan.jobs {
        let command =
            prepared.toolchains[job.toolchain.0].command_line(job.program, &job.arguments);
        let (source, digest) = (job.source.0, job.digest);
        writeln!(lines, "cd source-{source} && {command} -o ../objects/{digest}.o")
            .expect("writing to a string");
    }
    let path = dir.join("commands");
    write_atomic(&path, &[lines.as_bytes()]).map_err(fail::io("write", &path))
}

#[derive(Serialize)]
struct Message<'a> {
    digest: Digest,
    plan: &'a Plan,
    cached: &'a [bool],
    refused: &'a [bool],
}

/// Prints a plan: a summary with one line a target, or with `commands` every
/// job; as JSON the whole plan.
pub(crate) fn print(prepared: &Prepared, commands: bool, output: &Output) {
    let plan = &prepared.plan;
    let Cache { store, digests, .. } = &prepared.cache;
    let looks = Looks::new(digests);
    let (sources, cancel) = (&prepared.inputs.sources, Cancel::default());
    let toolchains = &prepared.toolchains;
    let current = Current::new(&looks, sources, toolchains, store, &cancel).without_writing();
    let has = |job: &Job| store.lookup(job.digest, current.of(job)).is_some();
    let cached: Vec<bool> = plan.jobs.par_iter().map(has).collect();
    let is_refused = |(job, cached): (&Job, &bool)| {
        !cached && store.refusal(job.digest, current.of(job)).is_some()
    };
    let refused: Vec<bool> = plan.jobs.par_iter().zip(&cached).map(is_refused).collect();
    if output.json {
        let digest = plan.digest();
        output.message("plan", &Message { digest, plan, cached: &cached, refused: &refused });
        return;
    }
    for toolchain in &plan.toolchains {
        output.data(&format!("compiler  {}", toolchain.identity));
    }
    output.data(&format!("plan      {}", plan.digest()));
    for kdb in &plan.kdbs {
        let mut languages: BTreeMap<String, usize> = BTreeMap::new();
        for row in &kdb.rows {
            *languages.entry(plan[row.job].language.to_string()).or_default() += 1;
        }
        let languages: Vec<String> =
            languages.iter().map(|(language, count)| format!("{count} {language}")).collect();
        output.data(&format!(
            "{:<20}  {} ({})",
            kdb.target.kdb_file_name(),
            counted(kdb.rows.len(), "kernel"),
            languages.join(", ")
        ));
    }
    let count = |of: &[bool]| of.iter().filter(|it| **it).count();
    let (cached, refused) = (count(&cached), count(&refused));
    let words = match refused {
        0 => String::new(),
        _ => format!("{refused} refused before, "),
    };
    output.data(&format!(
        "{} compile jobs: {cached} in the cache, {words}{} to run",
        plan.jobs.len(),
        plan.jobs.len() - cached - refused
    ));
    if commands {
        for job in &plan.jobs {
            output.data(
                &prepared.toolchains[job.toolchain.0].command_line(job.program, &job.arguments),
            );
        }
    }
}
