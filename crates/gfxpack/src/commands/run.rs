//! `run`: runs a program, and reports which kernels MIOpen found and which it had
//! to compile.

pub(super) mod fft;
mod program;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

use gfxpack_harvest::run_log::{LEVEL, RunLog};
use gfxpack_model::KernelKey;
use gfxpack_model::key_record::{Counts, KeyRecord};
use gfxpack_pipeline::destination;
use gfxpack_process::{Foreground, temporary_dir};
use serde_json::json;

use self::fft::FftRun;
use self::program::{Cause, ProgramResult};
use crate::args::Run;
use crate::context::Context;
use crate::environment::{LOG_COMMANDS, LOG_LEVEL};
use crate::fail::{self, Error, Result};
use crate::output::{Output, counted, display, message};

/// Runs the program, and returns its exit code.
pub(crate) fn run(args: &Run, context: &Context) -> Result<u8> {
    let Context { environment, output, .. } = context;
    let fft_logs = args.plans.as_ref().map(|_| temporary_dir()).transpose()?;
    let log_level = environment.miopen_log_level;
    let mut variables =
        vec![(LOG_LEVEL, log_level.max(LEVEL).to_string()), (LOG_COMMANDS, "1".to_owned())];
    variables.extend(fft_logs.iter().flat_map(|dir| fft::variables(dir.path())));
    let program =
        Foreground { args: &args.command, variables: &variables, output_to_stderr: output.json };
    let mut log = RunLog::new(log_level, environment.miopen_log_commands);
    let mut shown = Vec::new();
    let status = program.run(|piece| {
        log.push(piece, Instant::now(), &mut shown);
        output.pass_on(&shown);
        shown.clear();
    });
    let status = status.map_err(not_started(&args.command))?;
    let log = log.finish(Instant::now(), &mut shown);
    output.pass_on(&shown);
    let fft = fft_logs.as_ref().map(|dir| fft::read(dir.path())).transpose()?;
    let ran = ProgramResult::new(log, gfxpack_runtime::Environment::read().disable_cache());
    let missed: Vec<(&KernelKey, &Counts)> =
        ran.log.kernels.iter().filter(|(_, counts)| counts.misses > 0).collect();
    // A list of an earlier run must not be taken for this run's.
    if !ran.log.kernels.is_empty() || args.out.exists() {
        let record = |(key, counts): &(&KernelKey, &Counts)| {
            let device = key.split_device().map(|(_, device)| device.to_owned());
            let targets = device.into_iter().collect();
            KeyRecord { key: KernelKey::clone(key), counts: **counts, targets, of_build: false }
        };
        destination::replace_lines(&args.out, &missed.iter().map(record).collect::<Vec<_>>())?;
    }
    let stored = missed.iter().filter(|(_, counts)| counts.saved > 0).count();
    if let (Some(file), Some(fft)) = (&args.plans, &fft)
        && (!fft.plans.plans.is_empty() || file.exists())
    {
        destination::replace(file, fft::list(&fft.plans.plans))?;
    }
    report(args, status, &ran, fft.as_ref(), missed.len(), stored, output);
    if let (Some(file), Some(fft)) = (&args.plans, &fft) {
        report_plans(file, fft, output);
    }
    Ok(exit_code(status))
}

/// The error of a program, the first of these words, that was not started.
pub(super) fn not_started(args: &[OsString]) -> impl FnOnce(std::io::Error) -> Error {
    let program = PathBuf::from(&args[0]);
    move |source| match source.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => fail::usage(
            format!("failed to start the program `{}`: {source}", program.display()),
            "give its path, or a name that is in PATH: gfxpack run -- python3 train.py",
        ),
        _ => fail::io("run", &program)(source),
    }
}

/// The exit code of a program, as a shell has it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Reports the kernels: `missed` were in no kdb, and MIOpen compiled and stored
/// `stored` of them.
fn report(
    args: &Run,
    status: ExitStatus,
    ran: &ProgramResult,
    fft: Option<&FftRun>,
    missed: usize,
    stored: usize,
    output: &Output,
) {
    let log = &ran.log;
    let files: Vec<_> = ran
        .found
        .iter()
        .map(|(file, kernels)| json!({ "file": display(file), "kernels": kernels }))
        .collect();
    let causes = ran.causes(missed);
    message!(output, "run", {
        "command": args.command.iter().map(display).collect::<Vec<_>>(),
        "exit_code": status.code(), "signal": status.signal(),
        "target": ran.target.as_ref().map(ToString::to_string),
        "kernels": log.kernels.len(), "found": log.kernels.len() - missed, "files": files,
        "compiled": stored, "not_stored": missed - stored, "compile_milliseconds": log.compiled.as_millis() as u64,
        "searches": log.searches, "search_milliseconds": log.searched.as_millis() as u64,
        "missed_keys": (missed > 0).then(|| display(&args.out)),
        "causes": &causes,
        "commands": if missed > 0 { ran.commands(&args.out) } else { Vec::new() },
        "rocfft": fft.map(FftRun::message),
    });
    if log.kernels.is_empty() && fft.is_some_and(|fft| !fft.plans.plans.is_empty()) {
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
    fft::warnings("rocFFT's log", &fft.plans).iter().for_each(|warning| output.warn(warning));
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
