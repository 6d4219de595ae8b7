//! `lookup`: looks a kernel up as MIOpen and programs with gfxpack's runtime
//! would. Changes nothing.

use gfxpack_pipeline::destination;
use gfxpack_pipeline::lookup_answers::{LookupAnswers, miss_in_words};
use gfxpack_pipeline::text::key_in_words;
use gfxpack_pipeline::usual_directories::{UsualDirectories, why_no_file};
use gfxpack_runtime::{
    Config, Environment, KdbDirectories, KernelCache, KernelKey, LookupOrder, Miss, MissReason,
    Target, WarningSink,
};
use serde_json::json;

use super::detect;
use crate::args::{Lookup, LookupArgs, MiopenVersion, Program, WantedKernel};
use crate::fail::{self, Error, ErrorKind, Result};
use crate::output::Output;

/// The hint if no kdb has the key.
const MISS_HINT: &str = "`gfxpack explain` with the same arguments shows the nearest keys";

/// The hint if a kdb that MIOpen does not open has the key.
const HIDDEN_HINT: &str = "`gfxpack doctor` counts what the smaller kdb hides; --for runtime asks \
                           for programs with gfxpack's runtime";

/// Reports which file has the kernel, or why none has it.
pub(crate) fn run(args: &Lookup, kernel_args: &str, output: &Output) -> Result {
    let (cache, key, answers) = look_up(&args.kernel, kernel_args, args.user_first, output)?;
    let target = &cache.config().target;
    let (found, mut message) = match args.program {
        Program::Miopen => (answers.found_by_miopen(), answers.miopen_answer()),
        Program::Runtime => (answers.runtime.found.as_ref(), answers.runtime_message()),
    };
    message["kernel_name"] = key.kernel_name.as_str().into();
    message["kernel_args"] = key.kernel_args.as_str().into();
    message["target"] = json!(target);
    message["miopen"] = answers.miopen_message();
    message["runtime"] = answers.runtime_message();
    output.message("lookup", &message);
    // Which directories hold no kdb is of interest only where nothing is found.
    let is_shown = |miss: &&Miss| found.is_none() || !matches!(miss.reason, MissReason::NoFile);
    let misses = answers.runtime.misses.iter().filter(is_shown);
    misses.for_each(|miss| output.info(&miss_in_words(miss)));
    print(&answers, output);
    if cache.files().is_empty() {
        output.warn(&format!("no file is asked: {}", why_no_file(&cache.config().directories)));
    }
    let Some(found) = found else {
        let hidden = args.program == Program::Miopen && answers.hidden().is_some();
        let hint = if hidden { HIDDEN_HINT } else { MISS_HINT };
        return Err(not_found(&key_in_words(&key), target, hint));
    };
    match &args.out {
        Some(path) => destination::replace(path, &found.code_object),
        None => Ok(()),
    }
}

/// The error that no file has a kernel.
pub(super) fn not_found(kernel: &str, target: &Target, hint: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("failed to find {kernel} for {target}"), hint)
}

/// Prints both results, one line each.
pub(super) fn print(answers: &LookupAnswers, output: &Output) {
    output.text(&format!("MIOpen:            {}", answers.miopen_in_words()));
    output.text(&format!("gfxpack's runtime: {}", answers.runtime_in_words()));
    answers.remarks().iter().for_each(|remark| output.info(remark));
}

/// Opens the cache silently and to look only, and looks the kernel up in both ways.
pub(super) fn look_up(
    wanted: &WantedKernel,
    kernel_args: &str,
    user_first: bool,
    output: &Output,
) -> Result<(KernelCache, KernelKey, LookupAnswers)> {
    let (asked, environment) = (&wanted.asked, Environment::read());
    let target = target_of(asked, &environment, output)?;
    let mut config = Config::new(target, directories(asked, &environment, output)?);
    config.warnings = WarningSink::Silent;
    config.look_only = true;
    config.limits.max_object_bytes = asked.max_object.bytes;
    if user_first {
        config.order = LookupOrder::UserFirst;
    }
    let cache = KernelCache::open(config);
    let key = KernelKey { kernel_name: wanted.name.clone(), kernel_args: kernel_args.to_owned() };
    let answers = LookupAnswers::ask(&cache, &key);
    Ok((cache, key, answers))
}

/// The given GPU, or this machine's first.
pub(super) fn target_of(
    asked: &LookupArgs,
    environment: &Environment,
    output: &Output,
) -> Result<Target> {
    if let Some(target) = &asked.target {
        return Ok(target.clone());
    }
    let detection = detect::detect(&asked.hardware, environment)?;
    let first = detection.devices.first().ok_or_else(|| {
        fail::usage(
            "failed to find a GPU to look kernels up for",
            "say which one is meant, as --target gfx90a@104; `gfxpack doctor` tells why none was found",
        )
    })?;
    let target = first.target();
    output.info(&format!("looking for kernels for {target}, this machine's first GPU"));
    Ok(target)
}

/// The given places, or the usual ones.
pub(super) fn directories(
    asked: &LookupArgs,
    environment: &Environment,
    output: &Output,
) -> Result<KdbDirectories> {
    let mut directories = usual_directories(&asked.version, environment, output);
    if !asked.system_dir.is_empty() {
        let absolute =
            |path: &std::path::PathBuf| std::path::absolute(path).map_err(fail::io("find", path));
        let given = asked.system_dir.iter().map(absolute).collect::<Result<Vec<_>>>()?;
        directories.system = KdbDirectories::new(given, directories.user.clone()).system;
    }
    Ok(directories)
}

/// The usual directories; prints notes about them.
pub(super) fn usual_directories(
    version: &MiopenVersion,
    environment: &Environment,
    output: &Output,
) -> KdbDirectories {
    let usual = UsualDirectories::find(version.miopen_version.as_deref(), environment);
    usual.warning.iter().for_each(|warning| output.warn(warning));
    usual.note.iter().for_each(|note| output.note(note));
    usual.directories
}
