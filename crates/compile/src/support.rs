//! What a found toolchain can build, and what could build the rest.

use std::collections::BTreeSet;

use gfxpack_plan::{Language, TargetId};

use crate::error::CompileError;
use crate::toolchain::Toolchain;

/// What a toolchain can build for one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buildable {
    /// The compiler knows the processor: enough for assembly.
    pub compiler: bool,
    /// The device libraries know it too: HIP and OpenCL C need them.
    pub device_libs: bool,
}

/// The first releases that build for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstSupport {
    /// LLVM's major version.
    pub llvm: u32,
    /// ROCm's version.
    pub rocm: &'static str,
}

/// The first LLVM and ROCm releases that build for a processor; `None` for
/// those that every release in use knows and those that are unknown.
///
/// Source: LLVM release notes, "Changes to the AMDGPU backend"; ROCm release
/// notes, "Supported GPUs", and the ISA files of its device libraries.
#[must_use]
pub fn first_support(processor: &str) -> Option<FirstSupport> {
    let (llvm, rocm) = match processor {
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
    };
    Some(FirstSupport { llvm, rocm })
}

impl Toolchain {
    /// What this toolchain can build for a processor.
    #[must_use]
    pub fn buildable(&self, processor: &str) -> Buildable {
        let isa = processor.strip_prefix("gfx").unwrap_or(processor);
        Buildable {
            compiler: self.processors.contains(processor),
            device_libs: self.isas.contains(isa),
        }
    }

    /// Checks that every language in use can be built for the target.
    ///
    /// # Errors
    /// [`CompileError::Unbuildable`], which names the compiler, its version,
    /// and what could build it.
    pub fn check_buildable(
        &self,
        id: &TargetId,
        languages: &BTreeSet<Language>,
    ) -> Result<(), CompileError> {
        let processor = id.processor();
        let buildable = self.buildable(processor);
        let language = languages.iter().copied().find(|language| {
            !buildable.compiler || (*language != Language::Assembly && !buildable.device_libs)
        });
        let Some(language) = language else { return Ok(()) };
        let compiler = format!("clang {} (`{}`)", self.clang_version, self.clang.display());
        let reason = if buildable.compiler {
            format!(
                "{compiler} knows it, but the device libraries in `{}` have no oclc_isa_version_{}.bc",
                self.device_libs.display(),
                processor.trim_start_matches("gfx")
            )
        } else {
            format!("{compiler} does not know it")
        };
        let remedy = match first_support(processor) {
            Some(first) => format!(
                "ROCm {} (LLVM {}) is the first that builds for {processor}: install a newer hipcc and \
                 rocm-device-libs, or give one with --hipcc or --clang and --device-libs",
                first.rocm, first.llvm
            ),
            None => format!(
                "`gfxpack targets` lists what can be built here; for {processor} install a newer hipcc, or \
                 give one with --hipcc"
            ),
        };
        Err(CompileError::Unbuildable { processor: processor.to_owned(), language, reason, remedy })
    }
}
