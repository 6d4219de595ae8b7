//! `harvest`: collects keys and driver commands from logs, kdbs and earlier
//! harvests.

use std::collections::{BTreeMap, HashSet};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use gfxpack_harvest::log::Seen;
use gfxpack_harvest::{ContentKind, FileReport, Input, Options, SeenCommand, harvest, list};
use gfxpack_model::key_record::KeyRecord;
use gfxpack_pipeline::destination::replace;
use gfxpack_pipeline::progress::{Step, Unit};
use gfxpack_pipeline::skipped_lines;
use gfxpack_pipeline::text::open;
use gfxpack_rocfft::{FftPlan, LoggedPlans, read_trace};

use super::run::fft;
use crate::args::{Harvest, HarvestCommand, HarvestKeys, Sources};
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, joined, message, to_file};
use crate::progress::Reporter;

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
    let (mut found, mut warnings) = (LoggedPlans::default(), Vec::new());
    let mut seen: HashSet<FftPlan> = HashSet::new();
    for log in logs {
        let name = display(log);
        let one = read_trace(&name, open(log)?)?;
        if strict {
            skipped_lines::refuse(&name, &one.skipped)?;
        }
        warnings.extend(fft::warnings(&name, &one));
        found.plans.extend(one.plans.into_iter().filter(|plan| seen.insert(plan.clone())));
        found.unsupported += one.unsupported;
        found.skipped.extend(one.skipped);
    }
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

/// The files below the given paths, or standard input.
fn inputs(sources: &Sources) -> Result<Vec<Input>> {
    if sources.paths.is_empty() && std::io::stdin().is_terminal() {
        return Err(fail::usage(
            "failed to start: nothing is given to harvest",
            "name logs, kdbs or directories, or pipe a log in: app 2>&1 | gfxpack harvest",
        ));
    }
    let stdin = [PathBuf::from("-")];
    let paths = if sources.paths.is_empty() { &stdin[..] } else { &sources.paths };
    let inputs = list(paths)?;
    if inputs.is_empty() {
        return Err(fail::usage(
            format!("failed to find a file in {}", names(sources)),
            "check the path",
        ));
    }
    Ok(inputs)
}

/// Reads the inputs with a progress bar, and reports on each file.
///
/// # Errors
/// If files can't be read, unless `keep_going` is set, or with `strict` lines.
fn read<T>(
    sources: &Sources,
    context: &Context,
    read: impl FnOnce(&[Input], Options<'_>) -> Result<(T, Vec<FileReport>)>,
) -> Result<(T, Vec<FileReport>)> {
    let Context { cancel, output, .. } = context;
    let inputs = inputs(sources)?;
    let known = !inputs.contains(&Input::Stdin);
    let total = if known { inputs.iter().map(Input::bytes).sum() } else { 0 };
    let reporter = Reporter::new(context);
    let step = Step::new(&reporter, "reading", Unit::Bytes, total);
    let (add, cancelled) = (|bytes| step.add(bytes), || cancel.is_cancelled());
    let options = Options { read: Some(&add), cancelled: Some(&cancelled) };
    let (found, files) = read(&inputs, options)?;
    drop(step);
    report_files(&files, sources, output)?;
    Ok((found, files))
}

/// The given paths, for display.
fn names(sources: &Sources) -> String {
    match &sources.paths[..] {
        [] => "the standard input".to_owned(),
        paths => joined(paths.iter().map(|path| format!("`{}`", path.display()))),
    }
}

/// What helps if nothing was found in the files; `otherwise` if nothing else is wrong with them.
fn nothing_hint(files: &[FileReport], otherwise: &str) -> String {
    if let Some(skipped) = files.iter().find_map(|file| file.skipped.iter().next()) {
        return skipped.hint.to_owned();
    }
    let seen = |what| files.iter().any(|file| file.seen == what);
    if !seen(Seen::Text) && !seen(Seen::Messages) {
        return "nothing is in there: see where the program writes, or get the file again"
            .to_owned();
    }
    if !seen(Seen::Messages) {
        return format!("no line is of MIOpen: see whether stderr is in it, 2>&1; {otherwise}");
    }
    otherwise.to_owned()
}

/// Reports on each file.
///
/// # Errors
/// If files could not be read, unless `keep_going` is set, or with `strict` lines.
fn report_files(files: &[FileReport], sources: &Sources, output: &Output) -> Result {
    for file in files {
        if sources.strict {
            skipped_lines::refuse(&file.name, &file.skipped)?;
        }
        message!(output, "harvested-file", {
            "file": display(&file.name), "kind": file.kind.name(), "lines": file.lines, "told": file.used,
            "skipped": skipped_lines::message(&file.skipped), "error": file.error.as_ref().map(|error| fail::in_full(error)),
        });
        if output.verbose {
            let unit = if matches!(file.kind, ContentKind::Kdb | ContentKind::Ukdb) {
                "rows"
            } else {
                "lines"
            };
            output.info(&format!(
                "{}: {}, {} of {} {unit} used",
                file.name,
                file.kind.name(),
                file.used,
                file.lines
            ));
        }
        for skipped in file.skipped.iter() {
            output.show_warning(&skipped_lines::warning(&file.name, skipped));
        }
    }
    let mut errors = files.iter().filter_map(|file| file.error.as_ref());
    let fatal = if sources.keep_going { None } else { errors.next() };
    errors.for_each(|error| output.warn(&fail::in_full(error)));
    fatal.map_or(Ok(()), |error| {
        Err(fail::usage(fail::in_full(error), error.hint().unwrap_or_default()))
    })
}
