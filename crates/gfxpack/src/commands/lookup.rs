//! `lookup`: asks for a kernel as MIOpen and programs with gfxpack's runtime
//! would, and changes nothing.

use gfxpack_pipeline::destination;
use gfxpack_pipeline::lookup_answers::{AnswerMessage, Answers, MiopenMessage, miss_in_words};
use gfxpack_pipeline::text::key_in_words;
use gfxpack_pipeline::usual_places::{UsualPlaces, why_no_file};
use gfxpack_runtime::{
    Config, Environment, KernelCache, KernelKey, LookupOrder, MissReason, Places, Target,
    WarningSink,
};
use serde::Serialize;
use serde_json::json;

use super::detect;
use crate::args::{Asked, Hardware, Lookup, MiopenVersion, Program};
use crate::fail::{self, Failure, Result};
use crate::output::Output;

/// What to do where no kdb has the key.
const MISS_HINT: &str = "`gfxpack explain` with the same arguments shows the nearest keys";

/// What to do where an installed kdb has the key that MIOpen does not open.
const HIDDEN_HINT: &str = "`gfxpack doctor` counts what the smaller kdb hides; --for runtime asks \
                           for programs with gfxpack's runtime";

/// Both answers, and the one that was asked for, for machines.
#[derive(Serialize)]
struct Message<'a> {
    #[serde(flatten)]
    answer: AnswerMessage,
    kernel_name: &'a str,
    kernel_args: &'a str,
    target: &'a Target,
    miopen: MiopenMessage,
    runtime: AnswerMessage,
}

/// Tells who has the kernel, or why nobody has.
pub(crate) fn run(args: &Lookup, kernel_args: &str, output: &Output) -> Result {
    let environment = Environment::read();
    let mut config = config(&args.asked, &environment, output)?;
    if args.user_first {
        config.order = LookupOrder::UserFirst;
    }
    let target = config.target.clone();
    let cache = KernelCache::open(config);
    let key = KernelKey { kernel_name: args.name.clone(), kernel_args: kernel_args.to_owned() };
    let answers = Answers::ask(&cache, &key);
    let (found, misses) = match args.program {
        Program::Miopen => (answers.found_by_miopen(), &answers.miopen.lookup.misses),
        Program::Runtime => (answers.runtime.found.as_ref(), &answers.runtime.misses),
    };
    if output.messages {
        let message = Message {
            answer: AnswerMessage::new(found, misses),
            kernel_name: &key.kernel_name,
            kernel_args: &key.kernel_args,
            target: &target,
            miopen: answers.miopen_message(),
            runtime: answers.runtime_message(),
        };
        output.message("lookup", &message);
    }
    if !output.json {
        let misses = answers.runtime.misses.iter();
        // Which places hold no kdb is of interest only where nothing is found.
        misses
            .filter(|miss| found.is_none() || !matches!(miss.reason, MissReason::NoFile))
            .for_each(|miss| output.say(&miss_in_words(miss)));
        print(&answers, output);
    }
    if cache.files().is_empty() {
        output.warn(&format!("no file is asked: {}", why_no_file(&cache.config().places)));
    }
    let Some(found) = found else {
        let hidden = args.program == Program::Miopen && answers.hidden().is_some();
        return Err(Failure::NotFound {
            key: key_in_words(&key),
            target: target.to_string(),
            hint: if hidden { HIDDEN_HINT } else { MISS_HINT },
        });
    };
    match &args.out {
        Some(path) => {
            destination::replace(path, &found.code_object).map_err(fail::io("write", path))
        }
        None => Ok(()),
    }
}

/// Prints both answers, a line each.
pub(super) fn print(answers: &Answers, output: &Output) {
    output.data(&format!("MIOpen:            {}", answers.miopen_in_words()));
    output.data(&format!("gfxpack's runtime: {}", answers.runtime_in_words()));
    answers.remarks().iter().for_each(|remark| output.say(remark));
}

/// How the cache is opened to answer this: silent, and only to look.
pub(super) fn config(asked: &Asked, environment: &Environment, output: &Output) -> Result<Config> {
    let target = target_of(asked, environment, output)?;
    let mut config = Config::new(target, places(asked, environment, output)?);
    config.warnings = WarningSink::Silent;
    config.look_only = true;
    config.limits.max_object_bytes = asked.max_object.bytes;
    Ok(config)
}

/// The GPU that is meant.
pub(super) fn target_of(
    asked: &Asked,
    environment: &Environment,
    output: &Output,
) -> Result<Target> {
    match &asked.target {
        Some(target) => Ok(target.clone()),
        None => here(&asked.hardware, environment, output),
    }
}

/// The usual places, or those given.
pub(super) fn places(asked: &Asked, environment: &Environment, output: &Output) -> Result<Places> {
    let mut places = usual_places(&asked.version, environment, output);
    if !asked.system_dir.is_empty() {
        let absolute =
            |path: &std::path::PathBuf| std::path::absolute(path).map_err(fail::io("find", path));
        let given = asked.system_dir.iter().map(absolute).collect::<Result<Vec<_>>>()?;
        places.system = Places::new(given, places.user.clone()).system;
    }
    Ok(places)
}

/// The usual places, with what is to be known about them told.
pub(super) fn usual_places(
    version: &MiopenVersion,
    environment: &Environment,
    output: &Output,
) -> Places {
    let usual = UsualPlaces::find(version.miopen_version.as_deref(), environment);
    usual.warning.iter().for_each(|warning| output.warn(warning));
    usual.note.iter().for_each(|text| note(text, output));
    usual.places
}

fn note(text: &str, output: &Output) {
    output.message("note", &json!({ "message": text }));
    output.say(&format!("note: {text}"));
}

/// This machine's first GPU.
fn here(hardware: &Hardware, environment: &Environment, output: &Output) -> Result<Target> {
    let detection = detect::detect(hardware, environment)?;
    let first = detection.devices.first().ok_or_else(|| {
        fail::usage(
            "failed to find a GPU to look kernels up for",
            "say which one is meant, as --target gfx90a@104; `gfxpack doctor` tells why none was found",
        )
    })?;
    let target = first.target();
    output.say(&format!("looking for kernels for {target}, this machine's first GPU"));
    Ok(target)
}
