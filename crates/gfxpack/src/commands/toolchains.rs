//! `toolchains`: lists the compilers that were found, and what each builds.

use gfxpack_compile::landlock_abi;
use gfxpack_miopen::{Library, LibraryError, MIOPEN};
use gfxpack_model::Language;
use gfxpack_pipeline::error::in_full;
use gfxpack_pipeline::toolchains::{self, survey};
use gfxpack_toolchain::ToolchainReport;

use super::miopen;
use crate::args::CompilerArgs;
use crate::context::Context;
use crate::fail::Result;
use crate::options::{cache_dir, search};
use crate::output::Output;

/// Lists all toolchains, in order of preference.
pub(crate) fn run(args: &CompilerArgs, context: &Context) -> Result {
    let Context { environment, cancel, output } = context;
    let (search, cache) =
        (search(&args.toolchain, environment), cache_dir(&args.cache.dir, environment));
    for (index, listed) in survey(&search, &cache, cancel)?.iter().enumerate() {
        output.message("toolchain", &toolchains::message(listed));
        if index > 0 {
            output.text("");
        }
        print(listed, output);
    }
    output.text("");
    output.text(&format!("kernel: {}", landlock()));
    library(context)
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

/// Shows the libMIOpen that is asked which kernels problems want.
fn library(context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let found = Library::installed(&MIOPEN, environment.rocm_path.as_deref());
    output.text("");
    match found {
        Ok(library) => miopen::print(&library, None, output)?,
        Err(LibraryError::NotInstalled { .. }) => output.text(
            "libMIOpen: none is installed; `gfxpack miopen --miopen debian:sid` fetches Debian's",
        ),
        Err(error) => output.warn(&in_full(&error)),
    }
    Ok(())
}

fn print(listed: &ToolchainReport, output: &Output) {
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
    let processors = toolchains::processors(listed, language);
    if processors.is_empty() {
        return "nothing".to_owned();
    }
    let name =
        |(gfx, supplied): &(&str, bool)| format!("{gfx}{}", if *supplied { "*" } else { "" });
    processors.iter().map(name).collect::<Vec<_>>().join(" ")
}
