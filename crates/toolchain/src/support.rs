//! What a toolchain can build, and which releases could build the rest.

use std::collections::BTreeSet;

use gfxpack_model::{Error, Language, processors};

use crate::toolchain::Toolchain;

/// The newest clang in Debian 12 that works with its HIP headers.
const DEBIAN_CLANG: u32 = 19;

/// The first releases that build for a processor, LLVM's major version and ROCm's; `None` for
/// processors that every supported release knows and for unknown ones.
///
/// Source: LLVM release notes, "Changes to the AMDGPU backend"; ROCm release
/// notes, "Supported GPUs", and the ISA files of its device libraries.
fn first_support(processor: &str) -> Option<(u32, &'static str)> {
    Some(match processor {
        "gfx940" => (15, "5.2"),
        "gfx941" | "gfx942" => (17, "6.0"),
        "gfx950" => (20, "6.4"),
        "gfx1036" => (15, "5.2"),
        "gfx1100" | "gfx1101" | "gfx1102" | "gfx1103" => (15, "5.3"),
        "gfx1150" | "gfx1151" => (17, "6.1"),
        "gfx1152" => (19, "6.3"),
        "gfx1153" => (20, "6.4"),
        "gfx1200" | "gfx1201" => (18, "6.3"),
        _ => return None,
    })
}

impl Toolchain {
    /// Whether this toolchain builds for a processor: its compiler knows it, which is enough for
    /// assembly, and its device libraries do.
    pub(crate) fn builds(&self, processor: &str, languages: &BTreeSet<Language>) -> bool {
        let isa = processor.strip_prefix("gfx").unwrap_or(processor);
        let needs_libs = languages.iter().any(|language| *language != Language::Assembly);
        self.processors.contains(processor) && (!needs_libs || self.isas.contains(isa))
    }
}

/// The error that none of the toolchains builds for a processor, with the releases that would. Each
/// toolchain is listed with the compiler's output if it was tried.
pub(crate) fn unbuildable(
    processor: &str,
    languages: &BTreeSet<Language>,
    toolchains: &[(Toolchain, Option<&str>)],
    errors: &[Error],
    given: bool,
) -> Error {
    let mut reasons: Vec<String> = Vec::new();
    for (toolchain, diagnostics) in toolchains {
        let reason = why_not(processor, toolchain, *diagnostics);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.extend(errors.iter().map(ToString::to_string));
    let others = if given {
        "; leave out the options that name one to use all that is installed"
    } else {
        ""
    };
    let remedy = match first_support(processor) {
        Some((llvm, rocm)) if llvm <= DEBIAN_CLANG => format!(
            "LLVM {llvm} and ROCm {rocm} are the first that build for {processor}: install one (Debian 12: \
             apt-get install clang-{DEBIAN_CLANG} lld-{DEBIAN_CLANG} hipcc; AMD's packages: hip-dev, in \
             /opt/rocm), or give it with --hipcc, --rocm-path or --clang{others}"
        ),
        Some((llvm, rocm)) => format!(
            "ROCm {rocm} (LLVM {llvm}) is the first that builds for {processor}: install it from AMD's packages \
             (hip-dev, in /opt/rocm) or a newer suite of your distribution (hipcc), or give it with \
             --hipcc, --rocm-path or --clang{others}"
        ),
        None if processors::by_name(processor).is_none() => format!(
            "no `{processor}` is known: `gfxpack targets` lists all processors; if it is a new one, install a \
             newer hipcc, or give one with --hipcc{others}"
        ),
        None => format!(
            "`gfxpack targets --toolchains` lists what was found and what each builds; for {processor} install a \
             newer hipcc, or give one with --hipcc{others}"
        ),
    };
    let language = languages.iter().next().copied().unwrap_or(Language::Hip);
    let reasons = reasons.join("; ");
    let message = format!("failed to find a way to build {language} for `{processor}`: {reasons}");
    Error::usage(message, remedy)
}

/// Why a toolchain does not build for a processor; `diagnostics` is the compiler's output, if it
/// was tried.
fn why_not(processor: &str, toolchain: &Toolchain, diagnostics: Option<&str>) -> String {
    // The same clang may have several names.
    let clang = std::fs::canonicalize(&toolchain.clang);
    let clang = clang.as_deref().unwrap_or(&toolchain.clang).display();
    let compiler = format!("clang {} (`{clang}`)", toolchain.clang_version);
    match diagnostics {
        Some(diagnostics) => {
            format!("{compiler} does not go with its headers and libraries: {diagnostics}")
        }
        None if !toolchain.processors.contains(processor) => {
            format!("{compiler} does not know it")
        }
        None => format!(
            "{compiler} knows it, but the device libraries in `{}` have no oclc_isa_version_{}.bc",
            toolchain.installed_libs.display(),
            processor.trim_start_matches("gfx")
        ),
    }
}
