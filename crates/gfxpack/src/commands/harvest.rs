//! `harvest`: collects keys and driver commands from logs, kdbs and earlier
//! harvests.

mod sources;

use gfxpack_harvest::{SeenCommand, harvest};
use gfxpack_pipeline::destination::replace;
use gfxpack_pipeline::fft_plans;
use gfxpack_pipeline::harvest_sums::HarvestSums;
use gfxpack_pipeline::line_file::LineFile;

use self::sources::{names, nothing_hint, read};
use crate::args::{Harvest, HarvestCommand, HarvestKeys, HarvestPlans, Sources};
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, message, to_file};

/// Runs `harvest` or one of its sub-commands.
pub(crate) fn run(args: &Harvest, context: &Context) -> Result {
    let Context { output, .. } = context;
    match &args.command {
        None => keys(&args.keys, context),
        Some(HarvestCommand::Plans(args)) => plans(args, output),
    }
}

fn plans(args: &HarvestPlans, output: &Output) -> Result {
    let (found, warnings) = fft_plans::harvest(&args.logs, args.strict)?;
    warnings.iter().for_each(|warning| output.warn(warning));
    let (plans, unsupported, damaged) = (&found.plans, found.unsupported, found.skipped.lines());
    if plans.is_empty() {
        warnings.iter().for_each(|warning| output.warn(warning));
        let hint = found.skipped.iter().next().map_or(
            "have rocFFT log its calls: ROCFFT_LAYER=1 ROCFFT_LOG_TRACE_PATH=FILE program",
            |skipped| skipped.hint,
        );
        return Err(fail::usage("failed to find a plan in these logs", hint));
    }
    let out = to_file(args.out.as_ref());
    match out {
        Some(out) => replace(out, fft_plans::list(plans).as_bytes())?,
        None => plans.iter().for_each(|plan| {
            let plan = plan.to_string();
            message!(output, "plan-of-log", { "plan": plan });
            output.text(&plan);
        }),
    }
    message!(output, "harvested-plans", {
        "file": out.map(display), "plans": plans.len(), "unsupported": unsupported, "damaged": damaged,
    });
    output.info(&format!("{} of rocFFT", counted(plans.len(), "plan")));
    Ok(())
}

fn keys(args: &HarvestKeys, context: &Context) -> Result {
    let Context { output, .. } = context;
    let (keys, files) = read(&args.sources, context, |inputs, options| harvest(inputs, &options))?;
    let mut sums = HarvestSums::new(args.missed);
    let mut out = to_file(args.out.as_ref()).map(LineFile::create).transpose()?;
    for record in keys.iter().filter(|record| sums.take(record)) {
        match &mut out {
            Some(out) => out.line(record)?,
            None => {
                output.message("key", record);
                output.text(&serde_json::to_string(record).map_err(fail::json)?);
            }
        }
    }
    if sums.read == 0 {
        return Err(fail::usage(
            format!("failed to find a key in {}", names(&args.sources)),
            nothing_hint(
                &files,
                "MIOpen writes keys into its log where MIOPEN_LOG_LEVEL is 6 or more, and since \
                 3.5.1 into miopen_error_PID.log in TMPDIR when something fails",
            ),
        ));
    }
    if let Some(out) = out {
        out.finish()?;
    }
    let file = to_file(args.out.as_ref()).map(display);
    output.message("harvested", &sums.message(file, files.len()));
    sums.remarks().iter().for_each(|remark| output.info(remark));
    Ok(())
}

/// The commands of all inputs; each is also written as a message.
///
/// # Errors
/// If an input can't be read, or there is no command.
pub(super) fn gather_commands(sources: &Sources, context: &Context) -> Result<Vec<SeenCommand>> {
    let Context { output, .. } = context;
    let (found, files) =
        read(sources, context, |inputs, options| gfxpack_harvest::commands(inputs, &options))?;
    if found.is_empty() {
        return Err(fail::usage(
            format!("failed to find a driver command in {}", names(sources)),
            nothing_hint(
                &files,
                "MIOpen writes them into its log where MIOPEN_ENABLE_LOGGING_CMD is 1",
            ),
        ));
    }
    for SeenCommand { command, seen, .. } in &found {
        message!(output, "command", {
            "command": command.as_str(), "operation": command.operation(), "seen": seen,
            "tunable": command.is_tunable(),
        });
    }
    Ok(found)
}
