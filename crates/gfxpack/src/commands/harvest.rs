//! `harvest`: collects keys and driver commands from logs, kdbs and earlier
//! harvests.

mod sources;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gfxpack_harvest::{SeenCommand, harvest};
use gfxpack_model::key_record::KeyRecord;
use gfxpack_pipeline::destination::replace;

use self::sources::{names, nothing_hint, read};
use super::run::fft;
use crate::args::{Harvest, HarvestCommand, HarvestKeys, Sources};
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, joined, message, to_file};

pub(crate) fn run(args: &Harvest, context: &Context) -> Result {
    let Context { output, .. } = context;
    match &args.command {
        None => keys(&args.keys, context),
        Some(HarvestCommand::Plans { logs, strict, out }) => {
            plans(logs, *strict, to_file(out.as_ref()), output)
        }
    }
}

fn plans(logs: &[PathBuf], strict: bool, out: Option<&Path>, output: &Output) -> Result {
    let (found, warnings) = fft::harvest(logs, strict)?;
    warnings.iter().for_each(|warning| output.warn(warning));
    let (plans, unsupported, damaged) = (&found.plans, found.unsupported, found.skipped.lines());
    if plans.is_empty() {
        let hint = found.skipped.iter().next().map_or(
            "have rocFFT log its calls: ROCFFT_LAYER=1 ROCFFT_LOG_TRACE_PATH=FILE program",
            |skipped| skipped.hint,
        );
        return Err(fail::usage("failed to find a plan in these logs", hint));
    }
    match out {
        Some(out) => replace(out, fft::list(plans).as_bytes())?,
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
    if keys.is_empty() {
        return Err(fail::usage(
            format!("failed to find a key in {}", names(&args.sources)),
            nothing_hint(
                &files,
                "MIOpen writes keys into its log where MIOPEN_LOG_LEVEL is 6 or more, and since \
                 3.5.1 into miopen_error_PID.log in TMPDIR when something fails",
            ),
        ));
    }
    let taken: Vec<&KeyRecord> =
        keys.iter().filter(|record| !args.missed || record.counts.was_missing()).collect();
    output.put_lines(args.out.as_ref(), "key", &taken)?;
    let count = |is: &dyn Fn(&KeyRecord) -> bool| taken.iter().filter(|record| is(record)).count();
    let missed = count(&|record| record.counts.was_missing());
    // Those with features after the processor are among them.
    let uncompilable = count(&|record| record.key.check().is_err());
    let with_features = count(&|record| record.key.has_features());
    let mut devices: BTreeMap<&str, u64> = BTreeMap::new();
    for record in &taken {
        *devices.entry(record.key.split_device().map_or("", |(_, device)| device)).or_default() +=
            1;
    }
    message!(output, "harvested", {
        "file": to_file(args.out.as_ref()).map(display), "keys": taken.len(), "missed": missed,
        "uncompilable": uncompilable, "devices": devices, "files": files.len(),
    });
    if taken.is_empty() {
        let read = counted(keys.len(), "key");
        output.info(&format!("nothing was missing among {read}"));
        return Ok(());
    }
    let devices = joined(devices.iter().map(|(device, count)| match *device {
        "" => format!("{count} for no processor by name"),
        device => format!("{count} for {device}"),
    }));
    let taken = counted(taken.len(), "key");
    output.info(&format!("{taken} ({devices}), {missed} of which were missing somewhere"));
    let of_no_source = uncompilable - with_features;
    if of_no_source > 0 {
        output.info(&format!(
            "{of_no_source} of them are of no source file that gfxpack compiles, or for no processor"
        ));
    }
    if with_features > 0 {
        output.info(&format!(
            "{with_features} of them are of MIOpen before 3.0, with features in -mcpu= \
             (`gfx90a:sramecc+:xnack-`): no later one looks them up"
        ));
    }
    if let Some(out) = to_file(args.out.as_ref()) {
        let out = out.display();
        output.info(&format!(
            "to build: gfxpack dist --keys {out} --source-dir DIR --target TARGET --out dist"
        ));
    }
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
    for (command, seen) in &found {
        message!(output, "command", {
            "command": command.as_str(), "operation": command.operation(), "seen": seen,
            "tunable": command.is_tunable(),
        });
    }
    Ok(found)
}
