//! `targets`: lists the known GPUs, and what can be built for them here; or the compilers that were
//! found, and what each builds.

use std::collections::BTreeMap;

use gfxpack_compile::{Cancel, FileDigests, landlock_abi};
use gfxpack_model::Language;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_pipeline::text::word;
use gfxpack_plan::arguments;
use gfxpack_process::temporary_dir;
use gfxpack_toolchain::{Missing, Search, Toolchain, ToolchainReport, Toolchains};
use serde_json::{Value, json};

use crate::args::{CacheArgs, Targets};
use crate::context::Context;
use crate::fail::Result;
use crate::output::{Output, display, joined, message};

/// Lists all processors, or all toolchains.
pub(crate) fn run(args: &Targets, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    let listed = match survey(&args.toolchain.search(), cancel) {
        Ok(listed) if args.toolchains => {
            for one in &listed {
                output.message("toolchain", &toolchain_message(one));
                print_toolchain(one, output);
                output.text("");
            }
            output.text(&format!("kernel: {}", landlock()));
            return Ok(());
        }
        Ok(listed) => Some(listed),
        // The list is useful even without a compiler. A compiler that was given must
        // work.
        Err(error)
            if !args.buildable && !args.toolchains && error.cause() == Some(&Missing::Hipcc) =>
        {
            output.warn(&format!("{error}; what can be built here is not known"));
            None
        }
        Err(error) => return Err(error),
    };
    let mut rows: Vec<[String; 5]> = Vec::new();
    for processor in PROCESSORS {
        let builds = listed.as_deref().map(|listed| buildable(listed, processor.name));
        if args.buildable && builds.as_ref().is_none_or(Vec::is_empty) {
            continue;
        }
        message!(output, "target", {
            "gfx": processor.name, "family": processor.family,
            "compute_units": processor.compute_units, "products": processor.products,
            "pci_ids": processor.pci_ids.iter().map(|id| format!("{id:04x}")).collect::<Vec<_>>(),
            "xnack": processor.xnack, "sramecc": processor.sramecc,
            "builds": builds.as_ref().map(|builds| {
                let known = |one| (word(one), json!(builds.contains(&one)));
                Language::ALL.map(known).into_iter().collect::<serde_json::Map<_, _>>()
            }),
        });
        let counts: Vec<String> = processor.compute_units.iter().map(ToString::to_string).collect();
        rows.push([
            processor.name.to_owned(),
            processor.family.to_owned(),
            match builds.as_deref() {
                None => "?".to_owned(),
                Some([]) => "-".to_owned(),
                Some(all) if all.len() == Language::ALL.len() => "all".to_owned(),
                Some(some) => joined(some),
            },
            counts.join(" "),
            joined(processor.products),
        ]);
    }
    let head = ["GFX", "FAMILY", "BUILDS", "COMPUTE UNITS", "PRODUCTS"].map(str::to_owned);
    rows.insert(0, head);
    table(&rows).iter().for_each(|line| output.text(line));
    Ok(())
}

/// The rows with aligned columns.
fn table<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Probes all toolchains, in order of preference. Results are kept in the cache
/// directory, or in a temporary one if there is no cache.
///
/// # Errors
/// If a given program is not usable, or no toolchain is found.
fn survey(search: &Search, cancel: &Cancel) -> Result<Vec<ToolchainReport>> {
    let (scratch, options) = (temporary_dir()?, CacheArgs::default());
    let cache = options.dir.directory().ok();
    let cache = cache.filter(|dir| std::fs::create_dir_all(dir.join("trials")).is_ok());
    let digests = match &cache {
        Some(dir) => options.file_digests(dir),
        None => FileDigests::default(),
    };
    let cache = cache.as_deref().unwrap_or(scratch.path());
    let found = Toolchains::find(search, &digests, (cache, true), cache, arguments::plain, cancel);
    let listed = found?.list()?;
    digests.save();
    Ok(listed)
}

/// The processors that a toolchain builds for from a language. The flag says
/// whether a constant must be supplied.
fn processors(listed: &ToolchainReport, language: Language) -> &[(&'static str, bool)] {
    let found = listed.builds.iter().find(|(other, _)| *other == language);
    found.map_or(&[], |(_, processors)| processors.as_slice())
}

fn toolchain_message(listed: &ToolchainReport) -> Value {
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
        "program": display(&listed.program),
        "identity": toolchain.map(Toolchain::identity),
        "unusable": listed.toolchain.as_ref().err(),
        "clang": toolchain.map(|toolchain| display(&toolchain.clang)),
        "clang_version": toolchain.map(|toolchain| &toolchain.clang_version),
        "hip_version": toolchain.and_then(version),
        "rocm": toolchain.map(|toolchain| display(&toolchain.rocm)),
        "device_libs": toolchain.map(|toolchain| display(&toolchain.installed_libs)),
        "digest": toolchain.map(|toolchain| toolchain.digest),
        "builds": builds,
        "refused": refused,
        "constants": listed.constants,
        "landlock": landlock_abi(),
    })
}

/// The languages from which some toolchain builds for a processor.
fn buildable(toolchains: &[ToolchainReport], processor: &str) -> Vec<Language> {
    let is_built = |language: &Language| {
        let mut all = toolchains.iter().flat_map(|listed| processors(listed, *language));
        all.any(|(gfx, _)| *gfx == processor)
    };
    Language::ALL.into_iter().filter(is_built).collect()
}

/// Whether the kernel restricts compilers to the directories that they may write
/// to.
fn landlock() -> String {
    match landlock_abi() {
        Some(version) => {
            format!("refuses what compilers would write elsewhere (Landlock {version})")
        }
        None => "has no Landlock: only gfxpack's preloaded library refuses what compilers would \
                 write elsewhere"
            .to_owned(),
    }
}

fn print_toolchain(listed: &ToolchainReport, output: &Output) {
    let line = |label: &str, value: &str| output.text(&format!("  {label:<12} {value}"));
    let toolchain = match &listed.toolchain {
        Ok(toolchain) => toolchain,
        Err(reason) => {
            output.text(&listed.program.display().to_string());
            line("unusable", reason);
            return;
        }
    };
    output.text(&format!("{}: {}", listed.program.display(), toolchain.identity()));
    if toolchain.hipcc.is_some() {
        line("clang", &toolchain.clang.display().to_string());
    }
    line("HIP headers", &toolchain.rocm.join("include/hip").display().to_string());
    line("device libs", &toolchain.installed_libs.display().to_string());
    // If several languages have the same list, print it once.
    let mut lines: Vec<(String, String)> = Vec::new();
    for language in Language::ALL {
        let text = builds(listed, language);
        match lines.last_mut().filter(|(_, known)| *known == text) {
            Some((languages, _)) => languages.push_str(&format!(", {language}")),
            None => lines.push((language.to_string(), text)),
        }
    }
    for (languages, text) in lines {
        line("builds", &format!("{languages}: {text}"));
    }
    for (language, reason) in &listed.refused {
        line("fails at", &format!("{language}: {reason}"));
    }
    let marked = listed.builds.iter().any(|(_, all)| all.iter().any(|(_, supplied)| *supplied));
    if marked {
        let files = listed.constants.iter().map(|constant| constant.file.as_str());
        line("* supplied", &Vec::from_iter(files).join(" "));
    }
}

/// The processors; a star marks those for which a constant must be supplied.
fn builds(listed: &ToolchainReport, language: Language) -> String {
    let processors = processors(listed, language);
    if processors.is_empty() {
        return "nothing".to_owned();
    }
    let name =
        |(gfx, supplied): &(&str, bool)| format!("{gfx}{}", if *supplied { "*" } else { "" });
    processors.iter().map(name).collect::<Vec<_>>().join(" ")
}
