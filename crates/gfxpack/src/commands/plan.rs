//! `plan`: shows what a build would do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_pipeline::options::Purpose;
use gfxpack_pipeline::plan_state;
use gfxpack_pipeline::prepare::{self, PlanInputs, Preparation, Prepared};
use gfxpack_pipeline::shards::stored;
use gfxpack_plan::plan::Plan;
use serde::Serialize;
use serde_json::json;

use crate::args::PlanCommand;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, if_any, joined};
use crate::progress::Reporter;
use crate::report_inputs;

/// How many keys are explained in one run.
const MAX_KEYS: usize = 20;

/// Makes the plan, and prints, stages or stores it.
pub(crate) fn run(args: &PlanCommand, context: &Context) -> Result {
    let Context { output, .. } = context;
    // The files that staged commands name must stay.
    let purpose = if args.stage.is_some() { Purpose::Build } else { Purpose::Look };
    let reporter = Reporter::new(context);
    let gathered = prepare::gather(&args.inputs, &args.compilers, purpose, None, None, &reporter)?;
    let plan_inputs = match gathered {
        Preparation::ToDo(plan_inputs) => *plan_inputs,
        Preparation::NothingToDo(coverage) => {
            report_inputs::report_nothing(&coverage, output);
            return Ok(());
        }
    };
    if args.stage.is_some() && plan_inputs.cache.warning.is_some() {
        return Err(fail::usage(
            "failed to keep the files that the commands name: the cache can't be written",
            "give a directory for it with --cache-dir",
        ));
    }
    if let Some(dir) = &args.out {
        return store(plan_inputs, dir, context);
    }
    let (prepared, _) = plan_inputs.plan()?;
    report_inputs::report(&prepared.inputs, output);
    if let Some(dir) = &args.stage {
        plan_state::stage(&prepared, dir)?;
    }
    let Some(text) = &args.explain else {
        print(&prepared, &args.allow_read, args.commands, output);
        return Ok(());
    };
    let more =
        plan_state::explain_keys(&prepared, &args.allow_read, text, MAX_KEYS, |explained| {
            output.message("explained", &explained.message(&prepared));
            let lines = explained.in_words(&prepared, output.verbose);
            lines.iter().for_each(|line| output.text(line));
        })?;
    if more > 0 {
        output.warn(&format!("{more} more keys contain `{text}`"));
    }
    Ok(())
}

fn store(plan_inputs: PlanInputs, dir: &Path, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    report_inputs::report(&plan_inputs.inputs, output);
    let (prepared, _) = plan_inputs.plan()?;
    let header = stored::write(dir, prepared, cancel)?;
    let kdbs: Vec<String> =
        header.kdbs.iter().map(|kdb| kdb.format.file_name(&kdb.target)).collect();
    output.message(
        "plan-stored",
        &json!({ "digest": header.digest, "directory": display(dir), "jobs": header.jobs, "kdbs": kdbs }),
    );
    output.text(&format!("plan      {}", header.digest));
    output.text(&format!("{} for {}", counted(header.jobs, "compile job"), joined(&kdbs)));
    Ok(())
}

/// Prints a plan: a summary with one line per target, or with `commands` every
/// job; as JSON the whole plan.
pub(crate) fn print(prepared: &Prepared, admitted: &[PathBuf], commands: bool, output: &Output) {
    let plan = &prepared.plan;
    let (cached, refused) = plan_state::look_up(prepared, admitted);
    if output.messages {
        // Not as a `Value`: with many jobs it would take hundreds of megabytes.
        #[derive(Serialize)]
        struct Message<'a> {
            digest: Digest,
            plan: &'a Plan,
            cached: &'a [bool],
            refused: &'a [bool],
        }
        let digest = plan.digest();
        output.message("plan", &Message { digest, plan, cached: &cached, refused: &refused });
    }
    for toolchain in &plan.toolchains {
        output.text(&format!("compiler  {}", toolchain.identity));
    }
    output.text(&format!("plan      {}", plan.digest()));
    for kdb in &plan.kdbs {
        let mut languages: BTreeMap<String, usize> = BTreeMap::new();
        for row in &kdb.rows {
            *languages.entry(plan[row.job].language.to_string()).or_default() += 1;
        }
        let languages = languages.iter().map(|(language, count)| format!("{count} {language}"));
        let languages = joined(languages);
        output.text(&format!(
            "{:<20}  {} ({languages})",
            kdb.file_name(),
            counted(kdb.rows.len(), "kernel")
        ));
    }
    let count = |of: &[bool]| of.iter().filter(|it| **it).count();
    let (cached, refused) = (count(&cached), count(&refused));
    let before = if_any(refused, |refused| format!("{refused} refused before, "));
    output.text(&format!(
        "{}: {cached} in the cache, {before}{} to run",
        counted(plan.jobs.len(), "compile job"),
        plan.jobs.len() - cached - refused
    ));
    if commands {
        for job in &plan.jobs {
            output.text(&plan_state::command_line(prepared, job));
        }
    }
}
