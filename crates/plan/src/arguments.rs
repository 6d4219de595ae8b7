//! What a compiler is told for one kernel: the options MIOpen adds after the
//! key was formed, and what makes the bytes independent of where they are made.

use serde::{Deserialize, Serialize};

use crate::key::Language;
use crate::location::Problem;
use crate::processors;
use crate::target::TargetId;

/// Which program runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// The `hipcc` driver.
    Hipcc,
    /// The `clang` that belongs to it.
    Clang,
}

/// What the arguments depend on besides the job itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompilerFacts {
    /// Runs the HIP jobs; the other languages are clang's.
    pub hip_program: Program,
    /// HIP's major, minor and patch version, where it is known.
    pub hip_version: Option<[u32; 3]>,
}

/// In planned arguments: the directory of the device libraries. Where it
/// lies is not part of a job's identity, what it holds is.
pub const DEVICE_LIBS: &str = "{device-libs}";
/// In planned arguments: the directory that holds HIP's `include`.
pub const ROCM: &str = "{rocm}";

/// Options that would replace what gfxpack itself asks for: the output, the
/// stage of compilation, the target, or files from outside the job's digest.
const FORBIDDEN: &[&str] =
    &["-o", "-c", "-E", "-S", "-M", "-MD", "-MMD", "-MF", "-MT", "-fsyntax-only", "-v", "-###"];
const FORBIDDEN_STARTS: &[&str] = &[
    "@",
    "--offload-arch",
    "--cuda-gpu-arch",
    "-save-temps",
    "--save-temps",
    "-fplugin",
    "-emit-",
    "-fmodule",
    "--rocm-",
    "--hip-",
    "-B",
    "--config",
    "-print",
    "--print",
    "-march=",
];

/// Splits the options of a key into words, dropping `-mcpu=`, which gfxpack
/// gives in the language's own way.
///
/// # Errors
/// [`Problem::Options`] for an unclosed quote, [`Problem::ForbiddenOption`]
/// for an option that would change what is made rather than how.
pub fn words(options: &str) -> Result<Vec<String>, Problem> {
    let words = shlex::split(options).ok_or_else(|| Problem::Options(options.to_owned()))?;
    let forbidden = words.iter().find(|word| {
        FORBIDDEN.contains(&word.as_str())
            || FORBIDDEN_STARTS.iter().any(|start| word.starts_with(start))
    });
    match forbidden {
        Some(word) => Err(Problem::ForbiddenOption(word.clone())),
        None => Ok(words.into_iter().filter(|word| !word.starts_with("-mcpu=")).collect()),
    }
}

/// The target that a job of that language compiles for, in a kdb of `id`.
///
/// Assembly states in its text whether it reserves registers for XNACK, and
/// a kdb without `_xnack` in its name serves devices with XNACK off: so
/// assembly without a stated setting is assembled for "off", as MIOpen does
/// on such a device. Compiled languages stay at "any", which runs on both.
#[must_use]
pub fn compile_target(language: Language, id: &TargetId) -> TargetId {
    let has_xnack = processors::by_name(id.processor()).is_some_and(|processor| processor.xnack);
    if language == Language::Assembly && has_xnack && id.xnack().is_none() {
        id.clone().with_features(id.sramecc(), Some(false))
    } else {
        id.clone()
    }
}

/// Processors whose buffer atomic add returns the old value.
///
/// Source: LLVM, `GCNSubtarget` feature `atomic-fadd-rtn-insts`; gfx940 and
/// its successors carry it too.
fn atomic_fadd_returns(processor: &str) -> bool {
    processor == "gfx90a" || processor.starts_with("gfx94") || processor.starts_with("gfx95")
}

/// The arguments of one job, run in the directory that holds the staged
/// source; the output (`-o`) is the executor's to add.
///
/// Source: ROCm/MIOpen 2d1fd997a, hip_build_utils.cpp (HIP),
/// hipoc_program.cpp (OpenCL C), `AmdgcnAssemble` (assembly).
#[must_use]
pub fn arguments(
    language: Language,
    words: &[String],
    id: &TargetId,
    facts: &CompilerFacts,
    main: &str,
    include_dirs: &[String],
) -> (Program, Vec<String>) {
    let mut args: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| args.extend(more.iter().map(|&arg| arg.to_owned()));
    let id = compile_target(language, id).to_string();
    let program = match language {
        Language::Hip => facts.hip_program,
        Language::OpenclC | Language::Assembly => Program::Clang,
    };
    match language {
        Language::Hip => {
            if program == Program::Clang {
                add(&["-x", "hip", &format!("--rocm-path={ROCM}")]);
                add(&[&format!("--hip-device-lib-path={DEVICE_LIBS}")]);
                if let Some([major, minor, patch]) = facts.hip_version {
                    add(&[&format!("--hip-version={major}.{minor}.{patch}")]);
                }
                add(&["-mllvm", "-amdgpu-early-inline-all=true"]);
                add(&["-mllvm", "-amdgpu-function-calls=false"]);
            }
            add(&[&format!("--offload-arch={id}"), "--cuda-device-only"]);
            // A compilation-unit id is a hash of absolute paths.
            add(&["--no-gpu-bundle-output", "-fuse-cuid=none", "-c", "-O3", "-Wno-everything"]);
            add(&["-Wno-unused-command-line-argument"]);
            if !words.iter().any(|word| word.starts_with("-std=") || word.starts_with("--std=")) {
                add(&["--std=c++17"]);
            }
            if let Some([major, minor, patch]) = facts.hip_version {
                let flat = u64::from(major) * 1_000_000_000
                    + u64::from(minor) * 1_000_000
                    + u64::from(patch);
                add(&[&format!("-DHIP_PACKAGE_VERSION_FLAT={flat}")]);
            }
            if atomic_fadd_returns(id.split(':').next().unwrap_or_default()) {
                add(&["-DCK_AMD_BUFFER_ATOMIC_FADD_RETURNS_FLOAT=1"]);
            }
        }
        Language::OpenclC => {
            add(&["-target", "amdgcn-amd-amdhsa", "-x", "cl", &format!("-mcpu={id}")]);
            add(&[&format!("--rocm-device-lib-path={DEVICE_LIBS}")]);
            add(&["-Wno-everything", "-mcode-object-version=4", "-D__AMD__=1", "-O3"]);
            add(&["-cl-kernel-arg-info", "-cl-denorms-are-zero", "-cl-std=CL2.0"]);
            add(&["-mllvm", "-amdgpu-early-inline-all", "-mllvm", "-amdgpu-internalize-symbols"]);
        }
        Language::Assembly => {
            add(&["-x", "assembler", "-target", "amdgcn--amdhsa", &format!("-mcpu={id}")]);
        }
    }
    // `-g` would otherwise write the directory of the build into the object.
    add(&["-ffile-compilation-dir=.", "-I."]);
    for dir in include_dirs {
        add(&[&format!("-I{dir}")]);
    }
    args.extend_from_slice(words);
    args.push(main.to_owned());
    (program, args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(language: Language, options: &str, id: &str, expected: Expect) {
        let facts = CompilerFacts { hip_program: Program::Hipcc, hip_version: Some([5, 2, 21153]) };
        let words = words(options).unwrap();
        let dirs = ["i0".to_owned()];
        let (program, args) = arguments(language, &words, &id.parse().unwrap(), &facts, "k", &dirs);
        expected.assert_eq(&format!("{program:?} {}", args.join(" ")));
    }

    #[test]
    fn each_language_gets_miopens_options() {
        check(
            Language::Hip,
            " -DA=1 -mcpu=gfx906 -std=c++14",
            "gfx90a:xnack+",
            expect![
                "Hipcc --offload-arch=gfx90a:xnack+ --cuda-device-only --no-gpu-bundle-output -fuse-cuid=none -c -O3 -Wno-everything -Wno-unused-command-line-argument -DHIP_PACKAGE_VERSION_FLAT=5002021153 -DCK_AMD_BUFFER_ATOMIC_FADD_RETURNS_FLOAT=1 -ffile-compilation-dir=. -I. -Ii0 -DA=1 -std=c++14 k"
            ],
        );
        check(
            Language::OpenclC,
            "  -DA=1  -DB",
            "gfx906",
            expect![
                "Clang -target amdgcn-amd-amdhsa -x cl -mcpu=gfx906 --rocm-device-lib-path={device-libs} -Wno-everything -mcode-object-version=4 -D__AMD__=1 -O3 -cl-kernel-arg-info -cl-denorms-are-zero -cl-std=CL2.0 -mllvm -amdgpu-early-inline-all -mllvm -amdgpu-internalize-symbols -ffile-compilation-dir=. -I. -Ii0 -DA=1 -DB k"
            ],
        );
        check(
            Language::Assembly,
            " -Wa,-defsym,n=1",
            "gfx906",
            expect![
                "Clang -x assembler -target amdgcn--amdhsa -mcpu=gfx906:xnack- -ffile-compilation-dir=. -I. -Ii0 -Wa,-defsym,n=1 k"
            ],
        );
        let gfx1030 = "gfx1030".parse().unwrap();
        assert_eq!(compile_target(Language::Assembly, &gfx1030).to_string(), "gfx1030");
    }

    #[test]
    fn options_that_change_what_is_made_are_refused() {
        for options in ["-o x", "@file", "-DX --offload-arch=gfx906", "-save-temps=cwd", "-S"] {
            assert!(matches!(words(options), Err(Problem::ForbiddenOption(_))), "{options}");
        }
        assert!(matches!(words("-DA=\"x"), Err(Problem::Options(_))));
        assert_eq!(words(" -DA=\"x y\" ").unwrap(), ["-DA=x y"]);
    }
}
