//! `targets --toolchains`: lists the compilers that were found, and what each builds.

use gfxpack_compile::landlock_abi;
use gfxpack_model::Language;
use gfxpack_pipeline::toolchains::{self, processors};
use gfxpack_toolchain::ToolchainReport;

use crate::output::Output;

/// Prints all toolchains, in order of preference.
pub(super) fn print(found: &[ToolchainReport], output: &Output) {
    for listed in found {
        output.message("toolchain", &toolchains::message(listed));
        print_one(listed, output);
        output.text("");
    }
    output.text(&format!("kernel: {}", landlock()));
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

fn print_one(listed: &ToolchainReport, output: &Output) {
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
