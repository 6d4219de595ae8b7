//! `plan`: what a build would do, without doing it.

use std::path::Path;

use gfxpack_compile::Cancel;
use gfxpack_model::Digest;
use gfxpack_pipeline::options::Purpose;
use gfxpack_pipeline::plan_state::{self, PlanState};
use gfxpack_pipeline::prepare::{self, Gathered, Prepared, Work};
use gfxpack_pipeline::shards::stored;
use gfxpack_plan::plan::Plan;
use serde::Serialize;
use serde_json::json;

use super::why;
use crate::args::PlanCommand;
use crate::environment::Environment;
use crate::fail::Result;
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
    let reporter = Reporter::new(output);
    let gathered = match prepare::gather(&plan.options(environment)?, cancel, &reporter)? {
        Work::ToDo(gathered) => *gathered,
        Work::NothingMissing(shares) => {
            prepared::report_shares(&shares, output);
            return Ok(());
        }
        Work::NoKeys => {
            prepared::report_nothing(output);
            return Ok(());
        }
    };
    if let Some(dir) = &args.out {
        return store(gathered, dir, args.carry, output);
    }
    let prepared = gathered.plan()?;
    prepared::report(&prepared.inputs, output);
    if let Some(dir) = &args.stage {
        plan_state::stage(&prepared, dir)?;
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
    let kdbs: Vec<String> =
        header.kdbs.iter().map(|kdb| kdb.format.file_name(&kdb.target)).collect();
    output.message(
        "plan-stored",
        &json!({ "digest": header.digest, "directory": shown(dir), "jobs": header.jobs, "kdbs": kdbs }),
    );
    output.text(&format!("plan      {}", header.digest));
    output.text(&format!("{} for {}", counted(header.jobs, "compile job"), kdbs.join(", ")));
    Ok(())
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
    let PlanState { cached, refused } = PlanState::look_up(prepared);
    if output.messages {
        let digest = plan.digest();
        output.message("plan", &Message { digest, plan, cached: &cached, refused: &refused });
    }
    if output.json {
        return;
    }
    for toolchain in &plan.toolchains {
        output.data(&format!("compiler  {}", toolchain.identity));
    }
    output.data(&format!("plan      {}", plan.digest()));
    for kdb in &plan.kdbs {
        let languages: Vec<String> = plan_state::rows_by_language(plan, kdb)
            .iter()
            .map(|(language, count)| format!("{count} {language}"))
            .collect();
        output.data(&format!(
            "{:<20}  {} ({})",
            kdb.file_name(),
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
        "{}: {cached} in the cache, {words}{} to run",
        counted(plan.jobs.len(), "compile job"),
        plan.jobs.len() - cached - refused
    ));
    if commands {
        for job in &plan.jobs {
            output.data(&plan_state::command_line(prepared, job));
        }
    }
}
