//! `plan`: what a build would do, without doing it.

use std::collections::BTreeMap;

use gfxpack_compile::Cancel;
use serde_json::json;

use crate::args::PlanCommand;
use crate::environment::Environment;
use crate::output::Output;
use crate::prepare::{self, Prepared, Purpose};

/// Makes the plan and prints it.
pub(crate) fn run(
    args: &PlanCommand,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    let prepared = prepare::prepare(
        &args.inputs,
        &args.toolchain,
        &args.cache,
        environment,
        false,
        Purpose::Look,
        cancel,
    )?;
    warn(&prepared, output);
    print(&prepared, args.commands, output);
    Ok(())
}

/// What is wrong without stopping a build.
pub(crate) fn warn(prepared: &Prepared, output: &Output) {
    let problems = prepared.problems.iter().map(ToString::to_string);
    for warning in prepared.warnings.iter().cloned().chain(problems) {
        output.warn(&warning);
    }
}

/// Prints a plan: a summary with one line a target, or with `commands` every
/// job; as JSON the whole plan.
pub(crate) fn print(prepared: &Prepared, commands: bool, output: &Output) {
    let plan = &prepared.plan;
    let cached: Vec<bool> = plan
        .jobs
        .iter()
        .map(|job| prepared.store.lookup(job.digest, &prepared.digests).is_some())
        .collect();
    if output.json {
        let body = json!({ "digest": plan.digest(), "plan": plan, "cached": cached });
        output.message("plan", &body);
        return;
    }
    for toolchain in &plan.toolchains {
        output.data(&format!("compiler  {}", toolchain.identity));
    }
    output.data(&format!("plan      {}", plan.digest()));
    for kdb in &plan.kdbs {
        let mut languages: BTreeMap<String, usize> = BTreeMap::new();
        for row in &kdb.rows {
            *languages.entry(plan.jobs[row.job].language.to_string()).or_default() += 1;
        }
        let languages: Vec<String> =
            languages.iter().map(|(language, count)| format!("{count} {language}")).collect();
        output.data(&format!(
            "{:<20}  {} kernels ({})",
            kdb.target.kdb_file_name(),
            kdb.rows.len(),
            languages.join(", ")
        ));
    }
    let to_do = cached.iter().filter(|cached| !**cached).count();
    output.data(&format!(
        "{} compile jobs: {} in the cache, {to_do} to run",
        plan.jobs.len(),
        plan.jobs.len() - to_do
    ));
    if commands {
        for job in &plan.jobs {
            output.data(&prepared.toolchains[job.toolchain].command_line(job));
        }
    }
}
