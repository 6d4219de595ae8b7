//! `lookup`: looks a kernel up as MIOpen and programs with gfxpack's runtime
//! would. Changes nothing.

mod places;

use std::path::{Path, PathBuf};

use gfxpack_model::{KeyError, code_object};
use gfxpack_pipeline::destination;
use gfxpack_pipeline::inputs::unknown_count;
use gfxpack_pipeline::text::{elided, key_in_words};
use gfxpack_runtime::explain::{advice, unasked_kdbs};
use gfxpack_runtime::{
    Config, Environment, Hit, KdbDirectories, KernelCache, KernelKey, LookupOrder, MiopenKdb,
    MiopenLookup, MiopenOutcome, Miss, MissReason, NearestKey, NearestKeys, Target, UserDirectory,
    WarningSink, ask_as_miopen,
};
use serde_json::{Value, json};

pub(super) use self::places::{libraries, usual_directories};
use super::detect;
use crate::args::{Lookup, LookupArgs, Program};
use crate::fail::{self, Error, ErrorKind, Result, in_full};
use crate::output::{Output, display, joined, message, size};

/// How many of the nearest keys are shown.
const NEAREST: usize = 3;

/// The hint if no kdb has the key.
const MISS_HINT: &str = "`gfxpack doctor` checks the installed kdbs; `gfxpack dist --keys FILE \
                         --source-dir DIR` makes a package with the kernels that they lack";

/// The hint if no kdb has a key whose name is of no source file.
const OTHER_HINT: &str = "`gfxpack doctor` checks the installed kdbs; the name is of no source that \
                          gfxpack compiles (.cpp.o, .cl.o, .s.o)";

/// The hint if a kdb that MIOpen does not open has the key.
const HIDDEN_HINT: &str = "`gfxpack doctor` counts what the smaller kdb hides; --for runtime asks \
                           for programs with gfxpack's runtime";

/// Reports which file has the kernel, or why none has it, with the nearest keys.
/// Opens the cache silently and to look only.
pub(crate) fn run(args: &Lookup, kernel_args: &str, output: &Output) -> Result {
    let (asked, environment) = (&args.asked, Environment::read());
    let target = target_of(asked, &environment, output)?;
    let mut directories = directories(asked, &environment, output)?;
    places::prefer(&mut directories, &target);
    let mut config = Config::new(target, directories);
    config.warnings = WarningSink::Silent;
    config.look_only = true;
    if args.user_first {
        config.order = LookupOrder::UserFirst;
    }
    let cache = KernelCache::open(config);
    let Config { target, directories, .. } = cache.config();
    let key = KernelKey { kernel_name: args.name.clone(), kernel_args: kernel_args.to_owned() };
    let (miopen, runtime) = (ask_as_miopen(cache.config(), &key), cache.get(&key));
    let by_miopen = miopen.lookup.found.as_ref();
    let by_miopen = by_miopen.filter(|_| miopen.outcome == MiopenOutcome::Finds);
    let by_runtime = runtime.found.as_ref();
    // The device-wide kdb that MIOpen does not open although it has the kernel, and the one that it
    // opens.
    let hidden = miopen.kdb.as_ref().and_then(|MiopenKdb { file, hidden, .. }| {
        let hidden = hidden.as_deref().filter(|_| by_miopen.is_none())?;
        (by_runtime?.file.as_deref()? == hidden).then_some((hidden, file.as_path()))
    });
    let rules = directories.rules.versions;
    // Why MIOpen's result does not cover the user's cache.
    let note = match (&directories.user, &directories.fallback) {
        (UserDirectory::Unknown(why), _) | (_, Some(why)) => Some(why),
        _ => None,
    };

    let miopen_answer = answer(by_miopen, &miopen.lookup.misses);
    let runtime_answer = answer(by_runtime, &runtime.misses);
    let (found, mut message) = match args.program {
        Program::Miopen => (by_miopen, miopen_answer.clone()),
        Program::Runtime => (by_runtime, runtime_answer.clone()),
    };
    message["kernel_name"] = key.kernel_name.as_str().into();
    message["kernel_args"] = key.kernel_args.as_str().into();
    message["target"] = json!(target);
    message["miopen"] = miopen_answer;
    message["miopen"]["outcome"] = miopen.outcome.name().into();
    message["miopen"]["rules"] = rules.into();
    message["miopen"]["opened"] = miopen.kdb.as_ref().map(|kdb| display(&kdb.file)).into();
    let not_opened = miopen.kdb.as_ref().and_then(|kdb| kdb.hidden.as_ref());
    message["miopen"]["not_opened"] = not_opened.map(display).into();
    message["miopen"]["note"] = note.cloned().into();
    message["runtime"] = runtime_answer;
    output.message("lookup", &message);
    // Which directories hold no kdb is of interest only where nothing is found.
    let is_shown = |miss: &&Miss| found.is_none() || !matches!(miss.reason, MissReason::NoFile);
    for miss in runtime.misses.iter().filter(is_shown) {
        output.info(&miss_in_words(miss));
        if miss.reason.is_fault() {
            output.info(&format!("  hint: {}", miss.reason.hint()));
        }
    }
    let in_words = by_miopen.map_or_else(|| why_not(&miopen, hidden), hit_in_words);
    output.text(&format!("MIOpen:            {in_words}"));
    let in_words = by_runtime.map_or_else(|| "no file has it".to_owned(), hit_in_words);
    output.text(&format!("gfxpack's runtime: {in_words}"));
    output.info(&format!("MIOpen's answer is by the rules of MIOpen {rules}"));
    if let Some(note) = note {
        output.info(&format!("MIOpen's answer is without the user's cache: {note}"));
    }
    if cache.files().is_empty() {
        output.warn(&format!("no file is asked: {}", places::why_no_file(directories)));
    }
    if by_runtime.is_none() {
        explain(&cache, &key, output);
    }
    let Some(found) = found else {
        let hint = match key.check() {
            _ if args.program == Program::Miopen && hidden.is_some() => HIDDEN_HINT,
            Err(KeyError::Name(_)) => OTHER_HINT,
            _ => MISS_HINT,
        };
        return Err(not_found(&key_in_words(&key), target, hint));
    };
    match &args.out {
        Some(path) => destination::replace(path, &*found.code_object),
        None => Ok(()),
    }
}

/// What was found, and why the other files do not have it, for machines.
fn answer(found: Option<&Hit>, misses: &[Miss]) -> Value {
    let miss = |miss: &Miss| {
        json!({
            "layer": miss.layer.name(), "file": display(&miss.file), "reason": miss.reason.name(),
            "detail": in_full(&miss.reason), "hint": miss.reason.hint(),
        })
    };
    json!({
        "found": found.is_some(), "layer": found.map(|found| found.layer.name()),
        "file": found.and_then(|found| found.file.as_ref()).map(display),
        "object_bytes": found.map(|found| found.code_object.len()),
        "object_targets": found.map(object_targets),
        "misses": misses.iter().map(miss).collect::<Vec<_>>(),
    })
}

/// Why MIOpen does not find a kernel, as one line.
fn why_not(miopen: &MiopenLookup, hidden: Option<(&Path, &Path)>) -> String {
    let fault = || {
        let fault = miopen.lookup.misses.iter().find(|miss| miss.reason.is_fault());
        fault.map(miss_in_words).unwrap_or_default()
    };
    match (miopen.outcome, hidden) {
        (MiopenOutcome::Fails, _) => format!("fails: {}", fault()),
        (MiopenOutcome::Unknown, _) => format!("unknown: {}", fault()),
        (_, None) => "compiles it".to_owned(),
        (_, Some((hidden, opened))) => format!(
            "compiles it: {} has it, and is not opened since {} exists",
            hidden.display(),
            opened.display()
        ),
    }
}

/// `system /opt/rocm/share/miopen/db/gfx906_60.kdb: 4.1 kB for gfx906`.
fn hit_in_words(found: &Hit) -> String {
    let file = found.file.as_deref().map(display).unwrap_or_default();
    let bytes = size(found.code_object.len() as u64);
    format!("{} {file}: {bytes} for {}", found.layer.name(), object_targets(found).join(", "))
}

/// The file and why it does not have the kernel, as one line.
fn miss_in_words(miss: &Miss) -> String {
    format!("{}: {}", miss.file.display(), in_full(&miss.reason))
}

fn object_targets(found: &Hit) -> Vec<String> {
    let targets = code_object::targets(&found.code_object).unwrap_or_default();
    targets.iter().map(ToString::to_string).collect()
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
    for (file, serves) in unasked_kdbs(key, target, &asked) {
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
        unknown_count(target).iter().for_each(|doubt| output.warn(doubt));
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
        let absolute = |path: &PathBuf| std::path::absolute(path).map_err(fail::io("find", path));
        let given = asked.system_dir.iter().map(absolute).collect::<Result<Vec<_>>>()?;
        directories.system = KdbDirectories::new(given, directories.user.clone()).system;
    }
    Ok(directories)
}
