//! What a compiler is told for one kernel: the options MIOpen adds after the
//! key was formed, and what makes the bytes independent of where they are made.

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::key::Language;
use crate::location::Problem;
use crate::processors;
use crate::target::TargetId;
use crate::words::Words;

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

/// Options that a key may carry, by how they begin: macros, relative include
/// directories, warnings, code generation. All others could write files, read
/// files that no digest covers, or change what is made.
const ALLOWED_STARTS: &[&str] = &[
    "-D",
    "-U",
    "-W",
    "-f",
    "-m",
    "-O",
    "-cl-",
    "-std=",
    "--std=",
    "-g",
    "-pedantic",
    "-nogpu",
    "-I",
];
/// What begins like an allowed option and is none.
const FORBIDDEN_STARTS: &[&str] = &[
    "-Wl,",
    "-Wp,",
    "-fplugin",
    "-fpass-plugin",
    "-fmodule",
    "-fprofile",
    "-fsave-",
    "-fcrash-",
    "-ftime-",
    "-foptimization-record",
    "-fdebug-",
    "-ffile-",
    "-fuse-ld",
    "-fsyntax-only",
    "-fembed",
    "-fdump",
    "-femit",
    "-fdepfile",
    "-fdiagnostics",
    "-march=",
    "-mllvm=",
    "-mlinker",
    "-gpu",
    "-gsplit",
    "-gmodules",
    "-gcc",
    "-Ofast-",
    "-Ob",
    // These write the command with this build's paths into the object.
    "-frecord-",
    "-grecord-",
    // These read files or write them.
    "-fapi-notes",
    "-fauto-profile",
    "-fbuild-session",
    "-fcoverage",
    "-fcs-profile",
    "-fexperimental-sanitize",
    "-fimplicit-module",
    "-fmemory-profile",
    "-fprebuilt",
    "-fproc-stat-report",
    "-frandomize-layout-seed-file",
    "-fsanitize-blacklist",
    "-fsanitize-ignorelist",
    "-fsanitize-system",
    "-fstack-usage",
    "-ftest-coverage",
    "-fthinlto",
    "-fxray",
];
/// Options that are allowed as they are; more of them would be another option.
const ALLOWED_WHOLE: &[&str] = &["-w"];
/// Options of two words: the first, and how the second may begin.
const PAIRS: &[(&str, &[&str])] =
    &[("-mllvm", &["-", "--"]), ("-Xclang", &["-target-feature", "+", "-", "-f", "-m"])];
/// Arguments of `-mllvm` and `-Xclang` that reach for files.
const FORBIDDEN_SECONDS: &[&str] = &[
    "-load",
    "--load",
    "-plugin",
    "-add-plugin",
    "-mlink",
    "-include",
    "-o",
    "-dependency",
    "-fmodule",
    "-emit",
    "-dump",
    "-stats-file",
    "-pass-remarks-output",
    "-info-output-file",
    "-fplugin",
    "-fpass-plugin",
];

/// Splits the options of a key into words, dropping `-mcpu=`, which gfxpack
/// gives in the language's own way.
///
/// # Errors
/// [`Problem::Options`] for an unclosed quote, [`Problem::ForbiddenOption`]
/// for an option that would change what is made rather than how, or that
/// touches files which no digest covers.
pub fn words(options: &str) -> Result<Words, Problem> {
    let words = split(options).ok_or_else(|| Problem::Options(options.to_owned()))?;
    let forbidden = |word: &str| Err(Problem::ForbiddenOption(word.to_owned()));
    let begins = |word: &str, starts: &[&str]| starts.iter().any(|start| word.starts_with(start));
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        // Nearly all words of nearly all keys.
        let symbol = word.strip_prefix("-Wa,-defsym,");
        if word.starts_with("-D") || symbol.is_some_and(|symbol| !symbol.contains([',', '-'])) {
            continue;
        }
        if let Some((first, starts)) = PAIRS.iter().find(|(first, _)| *first == word) {
            let second = rest.next().unwrap_or_default();
            if !begins(second, starts) || begins(second, FORBIDDEN_SECONDS) {
                return forbidden(&format!("{first} {second}"));
            }
            continue;
        }
        let include = word.strip_prefix("-I");
        let outside = include.is_some_and(|dir| dir.is_empty() || dir.starts_with('/'));
        let assembler = word.strip_prefix("-Wa,").is_some_and(|parts| {
            let known = ["-defsym", "--defsym", "-mattr=", "-g"];
            parts.split(',').any(|part| part.starts_with('-') && !begins(part, &known))
        });
        if ALLOWED_WHOLE.contains(&word) {
            continue;
        }
        if !begins(word, ALLOWED_STARTS) || begins(word, FORBIDDEN_STARTS) || outside || assembler {
            return forbidden(word);
        }
    }
    if words.iter().any(|word| word.starts_with("-mcpu=")) {
        return Ok(words.iter().filter(|word| !word.starts_with("-mcpu=")).collect());
    }
    Ok(words)
}

/// Checks options that a person wrote as [`words`] does, and that they name no
/// processor: it would stand in the key, and not count.
///
/// # Errors
/// As [`words`].
pub(crate) fn check_written(options: &str) -> Result<(), Problem> {
    words(options)?;
    let all = split(options).unwrap_or_default();
    match all.iter().find(|word| word.starts_with("-mcpu")) {
        Some(word) => Err(Problem::ForbiddenOption(word.to_owned())),
        None => Ok(()),
    }
}

/// Words as MIOpen's own compiler calls split them: at blanks, with quotes.
/// To a shell, `#` begins a comment; here it is a letter.
fn split(options: &str) -> Option<Words> {
    if options.contains(['"', '\'', '\\']) {
        let comment = options.split_ascii_whitespace().any(|word| word.starts_with('#'));
        if comment {
            None
        } else {
            Some(shlex::split(options)?.iter().map(String::as_str).collect())
        }
    } else {
        Some(options.split_ascii_whitespace().collect())
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

/// Processors for which composable-kernel sources are told that buffer atomic
/// add returns a float.
///
/// Source: ROCm/MIOpen 2d1fd997a, `support_amd_buffer_atomic_fadd`.
fn atomic_fadd_returns(processor: &str) -> bool {
    processor.starts_with("gfx908")
}

/// The code object version that the release of HIP writes with its own
/// compiler. Another clang's default may be a version that the device
/// libraries do not know; Debian's clang 19 even writes version 5 and links
/// the device libraries' part for version 4.
///
/// Source: ROCm 6.0 release notes, code object version 5 as the default.
fn code_object_version(facts: &CompilerFacts) -> u32 {
    if facts.hip_version.is_some_and(|[major, ..]| major >= 6) { 5 } else { 4 }
}

/// The arguments of one job, run in the directory that holds the staged
/// source; the output (`-o`) is the executor's to add.
///
/// Source: ROCm/MIOpen 2d1fd997a, hip_build_utils.cpp (HIP),
/// hipoc_program.cpp (OpenCL C), `AmdgcnAssemble` (assembly).
#[must_use]
pub fn arguments(
    language: Language,
    words: &Words,
    id: &TargetId,
    facts: &CompilerFacts,
    main: &str,
    include_dirs: &[String],
    clock: &Clock,
) -> (Program, Words) {
    let mut args = Words::default();
    let mut add = |more: &[&str]| more.iter().for_each(|word| args.push(word));
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
                add(&[&format!("-mcode-object-version={}", code_object_version(facts))]);
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
    add(&["-ffile-compilation-dir=."]);
    for dir in include_dirs {
        add(&[&format!("-I{dir}")]);
    }
    args.extend(words);
    args.extend(clock.words(language));
    args.push(main);
    args.shrink_to_fit();
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
        let (dirs, clock) = (["i0".to_owned()], Clock::at(0));
        let (program, args) =
            arguments(language, &words, &id.parse().unwrap(), &facts, "k", &dirs, &clock);
        expected.assert_eq(&format!("{program:?} {}", args.iter().collect::<Vec<_>>().join(" ")));
    }

    #[test]
    fn each_language_gets_miopens_options() {
        check(
            Language::Hip,
            " -DA=1 -mcpu=gfx906 -std=c++14",
            "gfx908:xnack+",
            expect![
                "Hipcc --offload-arch=gfx908:xnack+ --cuda-device-only --no-gpu-bundle-output -fuse-cuid=none -c -O3 -Wno-everything -Wno-unused-command-line-argument -DHIP_PACKAGE_VERSION_FLAT=5002021153 -DCK_AMD_BUFFER_ATOMIC_FADD_RETURNS_FLOAT=1 -ffile-compilation-dir=. -Ii0 -DA=1 -std=c++14 -Wno-builtin-macro-redefined -U__DATE__ -D__DATE__=\"Jan  1 1970\" -D__TIME__=\"00:00:00\" -D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\" k"
            ],
        );
        check(
            Language::OpenclC,
            "  -DA=1  -DB",
            "gfx906",
            expect![
                "Clang -target amdgcn-amd-amdhsa -x cl -mcpu=gfx906 --rocm-device-lib-path={device-libs} -Wno-everything -mcode-object-version=4 -D__AMD__=1 -O3 -cl-kernel-arg-info -cl-denorms-are-zero -cl-std=CL2.0 -mllvm -amdgpu-early-inline-all -mllvm -amdgpu-internalize-symbols -ffile-compilation-dir=. -Ii0 -DA=1 -DB -Wno-builtin-macro-redefined -U__DATE__ -D__DATE__=\"Jan  1 1970\" -D__TIME__=\"00:00:00\" -D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\" k"
            ],
        );
        check(
            Language::Assembly,
            " -Wa,-defsym,n=1",
            "gfx906",
            expect![
                "Clang -x assembler -target amdgcn--amdhsa -mcpu=gfx906:xnack- -ffile-compilation-dir=. -Ii0 -Wa,-defsym,n=1 k"
            ],
        );
        let clang = |major| {
            let hip_version = Some([major, 2, 0]);
            let facts = CompilerFacts { hip_program: Program::Clang, hip_version };
            let id = "gfx942".parse().unwrap();
            let (program, args) =
                arguments(Language::Hip, &Words::default(), &id, &facts, "k", &[], &Clock::at(0));
            format!("{program:?} {}", args.iter().collect::<Vec<_>>().join(" "))
        };
        expect!["Clang -x hip --rocm-path={rocm} --hip-device-lib-path={device-libs} --hip-version=5.2.0 -mcode-object-version=4 -mllvm -amdgpu-early-inline-all=true -mllvm -amdgpu-function-calls=false --offload-arch=gfx942 --cuda-device-only --no-gpu-bundle-output -fuse-cuid=none -c -O3 -Wno-everything -Wno-unused-command-line-argument --std=c++17 -DHIP_PACKAGE_VERSION_FLAT=5002000000 -ffile-compilation-dir=. -Wno-builtin-macro-redefined -U__DATE__ -D__DATE__=\"Jan  1 1970\" -D__TIME__=\"00:00:00\" -D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\" k"].assert_eq(&clang(5));
        assert!(clang(6).contains(" -mcode-object-version=5 "));
        let gfx1030 = "gfx1030".parse().unwrap();
        assert_eq!(compile_target(Language::Assembly, &gfx1030).to_string(), "gfx1030");
    }

    #[test]
    fn options_that_change_what_is_made_are_refused() {
        let refused = [
            "-o x",
            "-ox",
            "@file",
            "-DX --offload-arch=gfx906",
            "-save-temps=cwd",
            "-S",
            "-I/usr",
            "-I /usr",
            "-Wa,-I/usr",
            "-MJ x",
            "-MFx",
            "-ftime-trace=x",
            "--serialize-diagnostics x",
            "-Xclang -load",
            "-Xclang -mlink-builtin-bitcode",
            "-fpass-plugin=x",
            "-include x",
            "-mllvm -info-output-file=x",
            "-mllvm",
            "other.cpp",
            "#",
            "-DA=1 # x",
            "-Wp,-MD,x",
            "-working-directory=/x",
            "-frecord-command-line",
            "-g -grecord-command-line",
            "-fsanitize-ignorelist=/x",
        ];
        for options in refused {
            assert!(matches!(words(options), Err(Problem::ForbiddenOption(_))), "{options}");
        }
        assert!(matches!(words("-DA=\"x"), Err(Problem::Options(_))));
        assert!(matches!(words("-DA=\"x\" #-DB"), Err(Problem::Options(_))));
        assert_eq!(words(" -DA=\"x y\" -mcpu=gfx906").unwrap(), Words::from_iter(["-DA=x y"]));
        let taken = "-O3 -std=c++14 -Iinc -mllvm --amdgpu-spill-vgpr-to-agpr=0 -Wno-all -Xclang \
                     -target-feature -Xclang +sramecc -mcumode -Wa,-defsym,n=1 -DA#B -ffast-math -g -w";
        assert_eq!(
            words(taken).unwrap().iter().collect::<Vec<_>>().join(" "),
            taken.split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }
}
