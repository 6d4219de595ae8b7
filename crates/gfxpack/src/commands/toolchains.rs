//! `toolchains`: the compilers that were found, and what each builds.

use std::collections::BTreeMap;

use gfxpack_compile::{Cancel, FileDigests, landlock_abi};
use gfxpack_miopen::{Library, LibraryError};
use gfxpack_model::Language;
use gfxpack_pipeline::error::in_full;
use gfxpack_plan::arguments;
use gfxpack_process::temporary_dir;
use gfxpack_toolchain::{Listed, Toolchain, Toolchains};
use serde_json::{Value, json};

use super::miopen;
use crate::args::{CacheArgs, ToolchainArgs, ToolchainsCommand};
use crate::environment::Environment;
use crate::fail::Result;
use crate::options::{cache_dir, search};
use crate::output::{Output, shown};

/// Lists all toolchains, in order of preference.
pub(crate) fn run(
    args: &ToolchainsCommand,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    for (index, listed) in
        survey(&args.toolchain, &args.cache, environment, cancel)?.iter().enumerate()
    {
        if output.json {
            output.message("toolchain", &message(listed));
        } else {
            if index > 0 {
                output.data("");
            }
            print(listed, output);
        }
    }
    if !output.json {
        output.data("");
        output.data(&format!("kernel: {}", landlock()));
    }
    library(environment, output)
}

/// Whether the kernel holds compilers to the directories that they may write.
fn landlock() -> String {
    match landlock_abi() {
        Some(version) => {
            format!("refuses what compilers would write elsewhere (Landlock {version})")
        }
        None => "has no Landlock; what compilers write elsewhere is refused without it".to_owned(),
    }
}

/// The libMIOpen that is asked which kernels problems want.
fn library(environment: &Environment, output: &Output) -> Result {
    let found = Library::installed(environment.rocm_path.as_deref());
    if !output.json {
        output.data("");
    }
    match found {
        Ok(library) => miopen::print(&library, None, output)?,
        Err(LibraryError::NotInstalled { .. }) if !output.json => output.data(
            "libMIOpen: none is installed; `gfxpack miopen --miopen debian:sid` fetches Debian's",
        ),
        Err(LibraryError::NotInstalled { .. }) => {}
        Err(error) => output.warn(&in_full(&error)),
    }
    Ok(())
}

/// Asks all toolchains. What that takes is kept in the cache directory, or
/// where there can be none in a temporary one.
pub(crate) fn survey(
    toolchain: &ToolchainArgs,
    cache: &CacheArgs,
    environment: &Environment,
    cancel: &Cancel,
) -> Result<Vec<Listed>> {
    let scratch = temporary_dir()?;
    let cache = cache_dir(&cache.dir, environment).directory().ok();
    let cache = cache.filter(|dir| std::fs::create_dir_all(dir.join("trials")).is_ok());
    let digests = match &cache {
        Some(dir) => FileDigests::open(&dir.join("file-digests.json")),
        None => FileDigests::in_memory(),
    };
    let search = search(toolchain, environment);
    let cache = cache.as_deref().unwrap_or(scratch.path());
    let found = Toolchains::find(&search, &digests, (cache, true), cache, arguments::plain, cancel);
    let listed = found?.list()?;
    digests.save();
    Ok(listed)
}

/// What the device libraries lack, by the names of their files.
fn constants(listed: &Listed) -> Vec<String> {
    listed.constants.iter().map(|constant| constant.file.clone()).collect()
}

fn of_language(listed: &Listed, language: Language) -> &[(&'static str, bool)] {
    let found = listed.builds.iter().find(|(other, _)| *other == language);
    found.map_or(&[], |(_, processors)| processors.as_slice())
}

/// The language as other messages spell it.
fn word(language: Language) -> String {
    json!(language).as_str().unwrap_or_default().to_owned()
}

fn message(listed: &Listed) -> Value {
    let builds: BTreeMap<String, Vec<Value>> = listed
        .builds
        .iter()
        .map(|(language, processors)| {
            let each = processors.iter();
            let each = each.map(|(gfx, supplied)| json!({ "gfx": gfx, "supplied": supplied }));
            (word(*language), each.collect())
        })
        .collect();
    let refused: BTreeMap<String, &String> =
        listed.refused.iter().map(|(language, words)| (word(*language), words)).collect();
    let toolchain = listed.toolchain.as_ref().ok();
    let version = |toolchain: &Toolchain| {
        toolchain.hip_version.map(|[major, minor, patch]| format!("{major}.{minor}.{patch}"))
    };
    json!({
        "program": shown(&listed.program),
        "identity": toolchain.map(Toolchain::identity),
        "unusable": listed.toolchain.as_ref().err(),
        "clang": toolchain.map(|toolchain| shown(&toolchain.clang)),
        "clang_version": toolchain.map(|toolchain| &toolchain.clang_version),
        "hip_version": toolchain.and_then(version),
        "rocm": toolchain.map(|toolchain| shown(&toolchain.rocm)),
        "device_libs": toolchain.map(|toolchain| shown(&toolchain.installed_libs)),
        "digest": toolchain.map(|toolchain| toolchain.digest),
        "builds": builds,
        "refused": refused,
        "constants": listed.constants,
        "landlock": landlock_abi(),
    })
}

fn print(listed: &Listed, output: &Output) {
    let line = |label: &str, value: &str| output.data(&format!("  {label:<12} {value}"));
    let toolchain = match &listed.toolchain {
        Ok(toolchain) => toolchain,
        Err(reason) => {
            output.data(&listed.program.display().to_string());
            line("unusable", reason);
            return;
        }
    };
    output.data(&format!("{}: {}", listed.program.display(), toolchain.identity()));
    if toolchain.hipcc.is_some() {
        line("clang", &toolchain.clang.display().to_string());
    }
    line("HIP headers", &toolchain.rocm.join("include/hip").display().to_string());
    line("device libs", &toolchain.installed_libs.display().to_string());
    // Often the same for all of them, and then said once.
    let mut lines: Vec<(String, String)> = Vec::new();
    for language in [Language::Hip, Language::OpenclC, Language::Assembly] {
        let text = builds(listed, language);
        match lines.last_mut().filter(|(_, known)| *known == text) {
            Some((languages, _)) => languages.push_str(&format!(", {language}")),
            None => lines.push((language.to_string(), text)),
        }
    }
    for (languages, text) in lines {
        line("builds", &format!("{languages}: {text}"));
    }
    for (language, words) in &listed.refused {
        line("fails at", &format!("{language}: {words}"));
    }
    let marked = listed.builds.iter().any(|(_, all)| all.iter().any(|(_, supplied)| *supplied));
    if marked {
        line("* supplied", &constants(listed).join(" "));
    }
}

/// The processors, a star at those that need a constant supplied.
fn builds(listed: &Listed, language: Language) -> String {
    let processors = of_language(listed, language);
    if processors.is_empty() {
        return "nothing".to_owned();
    }
    let name =
        |(gfx, supplied): &(&str, bool)| format!("{gfx}{}", if *supplied { "*" } else { "" });
    processors.iter().map(name).collect::<Vec<_>>().join(" ")
}
