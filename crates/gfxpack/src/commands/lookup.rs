//! `lookup`: looks a kernel up as MIOpen and programs with gfxpack's runtime
//! would. Changes nothing.

use gfxpack_pipeline::destination;
use gfxpack_pipeline::lookup_answers::{LookupAnswers, miss_in_words};
use gfxpack_pipeline::text::{elided, key_in_words};
use gfxpack_pipeline::usual_directories::{MiopenPlaces, UsualDirectories, prefer, why_no_file};
use gfxpack_runtime::explain::{UnaskedKdb, advice, unasked_kdbs};
use gfxpack_runtime::{
    Config, Environment, KdbDirectories, KernelCache, KernelKey, LookupOrder, Miss, MissReason,
    NearestKey, NearestKeys, Target, WarningSink,
};
use serde_json::json;

use super::detect;
use crate::args::{Lookup, LookupArgs, Program};
use crate::fail::{self, Error, ErrorKind, Result};
use crate::output::{Output, display, joined, message};

/// How many of the nearest keys are shown.
const NEAREST: usize = 3;

/// The hint if no kdb has the key.
const MISS_HINT: &str = "`gfxpack doctor` checks the installed kdbs; `gfxpack dist --keys FILE` \
                         makes a package with the kernels that they lack";

/// The hint if a kdb that MIOpen does not open has the key.
const HIDDEN_HINT: &str = "`gfxpack doctor` counts what the smaller kdb hides; --for runtime asks \
                           for programs with gfxpack's runtime";

/// Reports which file has the kernel, or why none has it, with the nearest keys.
/// Opens the cache silently and to look only.
pub(crate) fn run(args: &Lookup, kernel_args: &str, output: &Output) -> Result {
    let (asked, environment) = (&args.asked, Environment::read());
    let target = target_of(asked, &environment, output)?;
    let mut directories = directories(asked, &environment, output)?;
    prefer(&mut directories, &target);
    let mut config = Config::new(target, directories);
    config.warnings = WarningSink::Silent;
    config.look_only = true;
    if args.user_first {
        config.order = LookupOrder::UserFirst;
    }
    let cache = KernelCache::open(config);
    let key = KernelKey { kernel_name: args.name.clone(), kernel_args: kernel_args.to_owned() };
    let answers = LookupAnswers::ask(&cache, &key);
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
    for miss in answers.runtime.misses.iter().filter(is_shown) {
        output.info(&miss_in_words(miss));
        if miss.reason.is_fault() {
            output.info(&format!("  hint: {}", miss.reason.hint()));
        }
    }
    output.text(&format!("MIOpen:            {}", answers.miopen_in_words()));
    output.text(&format!("gfxpack's runtime: {}", answers.runtime_in_words()));
    answers.remarks().iter().for_each(|remark| output.info(remark));
    if cache.files().is_empty() {
        output.warn(&format!("no file is asked: {}", why_no_file(&cache.config().directories)));
    }
    if answers.runtime.found.is_none() {
        explain(&cache, &key, output);
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

/// Prints what is unusual about a key that no file has, the nearest keys, and
/// kdbs that have it but are not asked.
fn explain(cache: &KernelCache, key: &KernelKey, output: &Output) {
    let config = cache.config();
    let target = &config.target;
    let asked = cache.files();
    if let Some(advice) = advice(key, target) {
        message!(output, "advice", { "message": advice });
        output.text(&format!("note    {advice}"));
    }
    let files = asked.iter().map(|(_, file)| file.as_path());
    print_nearest(key, &NearestKeys::search(key, files, NEAREST), output);
    for UnaskedKdb { file, target: serves, .. } in unasked_kdbs(key, target, &asked) {
        message!(output, "elsewhere", { "file": display(&file), "target": serves });
        let file = file.display();
        output.text(&format!("note    {file} has this very key, and is not asked for {target}"));
    }
}

fn print_nearest(key: &KernelKey, found: &NearestKeys, output: &Output) {
    let NearestKeys { of_that_name, keys, names, .. } = found;
    if *of_that_name == 0 && !names.is_empty() {
        message!(output, "names", { "nearest": names });
        let (name, quoted) =
            (&key.kernel_name, joined(names.iter().map(|name| format!("`{name}`"))));
        output.text(&format!("no kernel is called `{name}`; the nearest names are {quoted}"));
    }
    if *of_that_name > 0 {
        let plural = if *of_that_name == 1 { "kernel has" } else { "kernels have" };
        output.text(&format!("{of_that_name} {plural} that name; the nearest:"));
    }
    for NearestKey { differing_words, kernel_args, file, asked, stored, .. } in keys {
        message!(output, "nearest", {
            "file": display(file), "kernel_args": kernel_args, "differing_words": differing_words,
            "asked": asked, "stored": stored,
        });
        let word = if *differing_words == 1 { "word differs" } else { "words differ" };
        output.text(&format!("{differing_words} {word} in {}", file.display()));
        output.text(&format!("  asked   {}", elided(asked)));
        output.text(&format!("  stored  {}", elided(stored)));
    }
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
    let mut directories = usual_directories(asked, environment, output)?;
    if !asked.system_dir.is_empty() {
        let absolute =
            |path: &std::path::PathBuf| std::path::absolute(path).map_err(fail::io("find", path));
        let given = asked.system_dir.iter().map(absolute).collect::<Result<Vec<_>>>()?;
        directories.system = KdbDirectories::new(given, directories.user.clone()).system;
    }
    Ok(directories)
}

/// The libMIOpen that looks, or where to look for it.
pub(super) fn miopen_places(asked: &LookupArgs) -> MiopenPlaces {
    MiopenPlaces { given: asked.miopen.clone(), pythons: gfxpack_pipeline::environment::pythons() }
}

/// The usual directories; prints notes about them.
pub(super) fn usual_directories(
    asked: &LookupArgs,
    environment: &Environment,
    output: &Output,
) -> Result<KdbDirectories> {
    let places = miopen_places(asked);
    let usual = UsualDirectories::find(asked.miopen_version.as_deref(), &places, environment)?;
    usual.warning.iter().for_each(|warning| output.warn(warning));
    usual.note.iter().for_each(|note| output.note(note));
    Ok(usual.directories)
}
