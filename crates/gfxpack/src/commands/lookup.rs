//! `lookup`: asks for a kernel as a program would, and changes nothing.

use std::path::Path;

use gfxpack_model::code_object;
use gfxpack_pipeline::destination;
use gfxpack_runtime::{
    Config, Environment, Hit, KernelCache, KernelKey, Lookup as Answer, LookupOrder, Miss,
    PlaceOptions, Places, Target, UserPlace, WarningSink, cached_versions,
};
use serde_json::{Value, json};

use super::detect;
use crate::args::{Asked, Hardware, Lookup, MiopenVersion};
use crate::fail::{self, Failure, Result};
use crate::output::{Output, shown, size};

/// Tells who has the kernel, or why nobody has.
pub(crate) fn run(args: &Lookup, output: &Output) -> Result {
    let environment = Environment::read();
    let mut config = config(&args.asked, &environment, output)?;
    if args.user_first {
        config.order = LookupOrder::UserFirst;
    }
    let target = config.target.clone();
    let cache = KernelCache::open(config);
    let key = KernelKey { kernel_name: args.name.clone(), kernel_args: args.args.clone() };
    let answer = cache.get(&key);
    if output.json {
        output.message("lookup", &body(&key, &target, &answer));
    } else {
        for miss in &answer.misses {
            output.say(&format!("{}: {}", miss.file.display(), reason(miss)));
        }
    }
    if cache.files().is_empty() {
        output.warn(&format!("no file is asked: {}", why_none(&cache.config().places)));
    }
    let Some(found) = answer.found else {
        return Err(Failure::NotFound { key: key.to_string(), target: target.to_string() });
    };
    if !output.json {
        output.data(&in_words(&found));
    }
    match &args.out {
        Some(path) => {
            destination::replace(path, &found.code_object).map_err(fail::io("write", path))
        }
        None => Ok(()),
    }
}

/// How the cache is opened to answer this: silent, and only to look.
pub(super) fn config(asked: &Asked, environment: &Environment, output: &Output) -> Result<Config> {
    let target = match &asked.target {
        Some(target) => target.clone(),
        None => here(&asked.hardware, environment, output)?,
    };
    let mut config = Config::new(target, places(asked, environment, output)?);
    config.warnings = WarningSink::Silent;
    config.look_only = true;
    config.limits.max_object_bytes = asked.max_object.bytes;
    Ok(config)
}

/// The usual places, or those given.
pub(super) fn places(asked: &Asked, environment: &Environment, output: &Output) -> Result<Places> {
    let mut places = Places::resolve(environment, &options(&asked.version, environment, output));
    if !asked.system_dir.is_empty() {
        let absolute =
            |path: &std::path::PathBuf| std::path::absolute(path).map_err(fail::io("find", path));
        let given = asked.system_dir.iter().map(absolute).collect::<Result<Vec<_>>>()?;
        places.system = Places::new(given, places.user.clone()).system;
    }
    Ok(places)
}

/// The rules of places with the version whose user cache is meant: the one
/// named, or the newest that has one, which is told.
pub(super) fn options(
    version: &MiopenVersion,
    environment: &Environment,
    output: &Output,
) -> PlaceOptions {
    let own = PlaceOptions::default();
    // Without a version, that is the directory above them.
    let mut options = own.clone();
    options.version = String::new();
    let above = Places::resolve(environment, &options);
    let above = match (&above.read_only[..], above.user) {
        ([dir, ..], _) => dir.clone(),
        ([], UserPlace::Dir(dir)) => dir,
        _ => return own,
    };
    if environment.custom_cache_dir().is_some() {
        if version.miopen_version.is_some() {
            output.warn("MIOPEN_CUSTOM_CACHE_DIR is asked as it stands; --miopen-version is not");
        }
        return own;
    }
    let there = cached_versions(&above);
    options.version = match &version.miopen_version {
        // MIOpen's own directories end in a full stop where it has no tweak.
        Some(named) => there
            .iter()
            .find(|version| *version == named)
            .or_else(|| there.iter().find(|version| version.strip_suffix('.') == Some(named)))
            .unwrap_or(named)
            .clone(),
        None => match there.first() {
            None => own.version.clone(),
            Some(newest) => {
                if there.len() > 1 || *newest != own.version {
                    tell_version(newest, &there, &above, output);
                }
                newest.clone()
            }
        },
    };
    options
}

fn tell_version(newest: &str, there: &[String], above: &Path, output: &Output) {
    let others = match there.len() {
        1 => String::new(),
        count => format!(", the newest of {count}"),
    };
    let dir = above.join(newest);
    let note = format!(
        "the user's kernels are those of version {newest}{others}, in `{}`; --miopen-version names \
         another",
        dir.display()
    );
    if output.json {
        output.message("note", &json!({ "message": note }));
    } else {
        output.say(&format!("note: {note}"));
    }
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

/// Why nobody is asked.
fn why_none(places: &Places) -> String {
    match &places.user {
        UserPlace::Disabled { why } | UserPlace::Memory { why } => why.clone(),
        _ => "there is no place for kdbs".to_owned(),
    }
}

/// `system /opt/rocm/share/miopen/db/gfx906_60.kdb: 4.1 kB for gfx906`.
pub(super) fn in_words(found: &Hit) -> String {
    let file = found.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
    let bytes = size(found.code_object.len() as u64);
    format!("{} {file}: {bytes} for {}", found.layer.name(), code_targets(found).join(", "))
}

fn code_targets(found: &Hit) -> Vec<String> {
    let targets = code_object::targets(&found.code_object).unwrap_or_default();
    targets.iter().map(ToString::to_string).collect()
}

/// The reason with its causes, on a line.
pub(super) fn reason(miss: &Miss) -> String {
    fail::in_full(&miss.reason)
}

fn body(key: &KernelKey, target: &Target, answer: &Answer) -> Value {
    let misses: Vec<Value> = answer
        .misses
        .iter()
        .map(|miss| {
            json!({
                "layer": miss.layer.name(), "file": shown(&miss.file), "reason": miss.reason.name(),
                "detail": reason(miss), "hint": miss.reason.hint(),
            })
        })
        .collect();
    let found = answer.found.as_ref();
    json!({
        "kernel_name": key.kernel_name, "kernel_args": key.kernel_args, "target": target,
        "found": found.is_some(),
        "layer": found.map(|found| found.layer.name()),
        "file": found.and_then(|found| found.file.as_ref()).map(shown),
        "object_bytes": found.map(|found| found.code_object.len()),
        "object_targets": found.map(code_targets),
        "misses": misses,
    })
}
