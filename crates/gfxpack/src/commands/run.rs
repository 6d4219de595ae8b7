//! `run`: runs a program, and reports which kernels MIOpen found and which it had
//! to compile.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use gfxpack_model::KernelKey;
use gfxpack_model::key_record::{Counts, KeyRecord};
use gfxpack_pipeline::destination;
use gfxpack_pipeline::fft_plans::{self, FftLogs, FftRun};
use gfxpack_pipeline::line_file::LineFile;
use gfxpack_pipeline::program_run::{Cause, ProgramResult, ProgramRun};
use serde_json::json;

use crate::args::Run;
use crate::context::Context;
use crate::fail::Result;
use crate::output::{Output, counted, display, message};

/// Runs the program, and returns its exit code.
pub(crate) fn run(args: &Run, context: &Context) -> Result<u8> {
    let Context { environment, output, .. } = context;
    let fft_logs = args.plans.as_ref().map(|_| FftLogs::create()).transpose()?;
    let run = ProgramRun {
        args: &args.command,
        fft_logs: fft_logs.as_ref(),
        log_level: environment.miopen_log_level,
        log_commands: environment.miopen_log_commands,
        cache_disabled: gfxpack_runtime::Environment::read().disable_cache(),
        output_to_stderr: output.json,
    };
    let ran = run.run(&mut |text| output.pass_on(text))?;
    let missed: Vec<(&KernelKey, &Counts)> =
        ran.log.kernels.iter().filter(|(_, counts)| counts.misses > 0).collect();
    // A list of an earlier run must not be taken for this run's.
    if !ran.log.kernels.is_empty() || args.out.exists() {
        let mut file = LineFile::create(&args.out)?;
        for (key, counts) in &missed {
            let device = key.split_device().map(|(_, device)| device.to_owned());
            let targets = device.into_iter().collect();
            file.line(&KeyRecord { key: KernelKey::clone(key), counts: **counts, targets })?;
        }
        file.finish()?;
    }
    let stored = missed.iter().filter(|(_, counts)| counts.saved > 0).count();
    if let (Some(file), Some(fft)) = (&args.plans, &ran.fft)
        && (!fft.plans.plans.is_empty() || file.exists())
    {
        let list = fft_plans::list(&fft.plans.plans);
        destination::replace(file, list)?;
    }
    report(args, &ran, missed.len(), stored, output);
    if let (Some(file), Some(fft)) = (&args.plans, &ran.fft) {
        report_plans(file, fft, output);
    }
    Ok(exit_code(ran.status))
}

/// The exit code of a program, as a shell has it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Reports the kernels: `missed` were in no kdb, and MIOpen compiled and stored
/// `stored` of them.
fn report(args: &Run, ran: &ProgramResult, missed: usize, stored: usize, output: &Output) {
    let log = &ran.log;
    let files: Vec<_> = ran
        .found
        .iter()
        .map(|(file, kernels)| json!({ "file": display(file), "kernels": kernels }))
        .collect();
    let causes = ran.causes(missed);
    message!(output, "run", {
        "command": args.command.iter().map(display).collect::<Vec<_>>(),
        "exit_code": ran.status.code(), "signal": ran.status.signal(),
        "target": ran.target.as_ref().map(ToString::to_string),
        "kernels": log.kernels.len(), "found": log.kernels.len() - missed, "files": files,
        "compiled": stored, "not_stored": missed - stored, "compile_milliseconds": log.compiled.as_millis() as u64,
        "searches": log.searches, "search_milliseconds": log.searched.as_millis() as u64,
        "missed_keys": (missed > 0).then(|| display(&args.out)),
        "causes": &causes,
        "commands": if missed > 0 { ran.commands(&args.out) } else { Vec::new() },
        "rocfft": ran.fft.as_ref().map(FftRun::message),
    });
    if log.kernels.is_empty() && ran.fft.as_ref().is_some_and(|fft| !fft.plans.plans.is_empty()) {
        return;
    }
    if log.kernels.is_empty() && causes.is_empty() {
        return output.warn(match log.lines {
            0 => "MIOpen wrote no log: the program does not use it, or closes stderr",
            _ => "MIOpen looked no kernel up: the program computed nothing with it, or its cache is off (MIOPEN_DISABLE_CACHE)",
        });
    }
    if !log.kernels.is_empty() {
        ran.in_words(missed, stored).iter().for_each(|line| output.info(line));
    }
    for (number, Cause { message, hint, .. }) in causes.iter().enumerate() {
        let what = if number == 0 { "verdict" } else { "also" };
        output.info(&format!("{what}: {message}\n  hint: {hint}"));
    }
    if causes.is_empty() {
        output.info(
            "verdict: MIOpen found all kernels and searched for nothing: it is not what is slow",
        );
    }
    if missed > 0 {
        advise(&args.out, missed, ran, output);
    }
}

/// Reports the plans that rocFFT created, and how to get a package for them.
fn report_plans(file: &Path, fft: &FftRun, output: &Output) {
    fft_plans::warnings("rocFFT's log", &fft.plans).iter().for_each(|warning| output.warn(warning));
    let lines = fft.in_words(file);
    if lines.is_empty() {
        output.warn(
            "rocFFT wrote no log of a plan: the program creates none, or several processes wrote \
             one log",
        );
    }
    lines.iter().for_each(|line| output.info(line));
}

/// Prints how to get a package with the missing kernels.
fn advise(keys: &Path, missed: usize, ran: &ProgramResult, output: &Output) {
    output.info(&format!(
        "{} of those that were not found in {}; a package that has them is made by\n  {}",
        counted(missed, "key"),
        keys.display(),
        ran.commands(keys).join("\n  ")
    ));
    let is_assembly = |key: &KernelKey| key.source_name().is_some_and(|name| name.ends_with(".s"));
    let assembly =
        ran.log.kernels.iter().filter(|(key, counts)| counts.misses > 0 && is_assembly(key));
    match assembly.count() {
        0 => {}
        assembly => output.info(&format!(
            "{} in assembly: if libMIOpen lacks their sources, as Debian's does, clone MIOpen's \
             repository at the release that ran, and add --source-dir MIOpen/src/kernels",
            counted(assembly, "kernel")
        )),
    }
}
