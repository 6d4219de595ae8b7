//! A compiler's arguments for one kernel: the options that MIOpen adds after it has formed the key,
//! and options that make the object independent of the directory of the build.

use std::collections::HashMap;

use gfxpack_model::compiler::{CompilerFacts, DEVICE_LIBS, Program, ROCM};
use gfxpack_model::{Error, Language, TargetId, processors};

use crate::clock::Clock;
use crate::options;

/// The longest argument that a program can be given: one byte less than the kernel allows with the
/// NUL behind it, whatever the size of its pages.
///
/// Source: Linux, include/uapi/linux/binfmts.h, `MAX_ARG_STRLEN`.
const MAX_ARG_BYTES: usize = (128 << 10) - 1;
/// The limit for all arguments with their pointers: far below what programs take with the usual
/// stack limit, counted twice.
///
/// Source: Linux, fs/exec.c, `bprm_stack_limits`.
const MAX_ARGS_BYTES: usize = 512 << 10;
/// The same for a HIP job. hipcc passes its command to a shell as one argument, which also contains
/// its other arguments.
const MAX_HIPCC_ARGS_BYTES: usize = MAX_ARG_BYTES - (16 << 10);
/// The bytes that an argument takes besides its text.
const ARG_OVERHEAD: usize = 16;
/// With `-g`, the object would otherwise contain the directory of the build.
pub(crate) const COMPILATION_DIR: &str = "-ffile-compilation-dir=.";

/// Splits the options of a key into arguments. Drops `-mcpu=`, which gfxpack adds in the form of
/// the language, and repeated definitions of a macro: MIOpen's immediate mode asks for each kernel
/// with the options of the data type twice, which gives the same object.
///
/// # Errors
/// For an unclosed quote, for an option that keys may not carry, and for options
/// that are too long for a program.
pub fn parse(language: Language, options: &str) -> Result<Vec<String>, Error> {
    let args = split(options).ok_or_else(|| {
        Error::usage(
            format!("failed to split options `{options}` into words"),
            "close the quote; a word can't begin with #",
        )
    })?;
    let all: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut rest = &all[..];
    while !rest.is_empty() {
        let count = options::known(rest).ok_or_else(|| {
            let named = rest[..options::rejected(rest)].join(" ");
            forbidden(&shortened(&named))
        })?;
        rest = &rest[count..];
    }
    // The text of a source shows which files it asks for; a macro of this kind would hide it.
    if let Some(asking) = all.iter().find(|arg| arg.contains("__has_")) {
        return Err(Error::usage(
            format!("failed to take option `{}`: it may ask for files", shortened(asking)),
            "ask in the source, by its own `#if __has_include(…)`",
        ));
    }
    check_length(language, &all)?;
    let mut kept = without_repetitions(&all);
    kept.retain(|arg| !arg.starts_with("-mcpu="));
    Ok(kept.into_iter().map(str::to_owned).collect())
}

/// Drops definitions of macros that change nothing: the same definition came before, and the macro
/// was neither redefined nor undefined since.
///
/// Source: ISO/IEC 9899:2018, 6.10.3, paragraph 2; clang,
/// lib/Frontend/InitPreprocessor.cpp, `InitializePreprocessor`: each argument is
/// a line, in the order of the arguments.
fn without_repetitions<'a>(args: &[&'a str]) -> Vec<&'a str> {
    // Arguments that may continue in the next line, or spell a name in another way.
    let odd = |arg: &&str| ["??", "/*", "R\"", "\\", "\n"].iter().any(|part| arg.contains(part));
    if args.iter().any(odd) {
        return args.to_vec();
    }
    let mut latest: HashMap<&str, &str> = HashMap::new();
    let changes = |arg: &&&'a str| {
        let text = arg.strip_prefix("-D").or_else(|| arg.strip_prefix("-U"));
        // The name ends here, as in `A =1` and `A x`.
        let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let name = text.and_then(|text| text.split(ends).next());
        name.is_none_or(|name| latest.insert(name, arg) != Some(arg))
    };
    args.iter().filter(changes).copied().collect()
}

/// Checks that the arguments are not too long for the programs that get them.
fn check_length(language: Language, args: &[&str]) -> Result<(), Error> {
    if let Some(arg) = args.iter().find(|arg| arg.len() > MAX_ARG_BYTES) {
        let what = format!("option `{}`: it has", shortened(arg));
        return Err(too_long(&what, arg.len(), MAX_ARG_BYTES));
    }
    // Source: hipcc.pl, which puts a backslash before all other characters.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+,./".contains(&byte);
    let (size, limit): (usize, _) = match language {
        Language::Hip => {
            let escaped = |byte: u8| if plain(byte) { 1 } else { 2 };
            let size = |arg: &&str| 1 + arg.bytes().map(escaped).sum::<usize>();
            (args.iter().map(size).sum(), MAX_HIPCC_ARGS_BYTES)
        }
        Language::OpenclC | Language::Assembly => {
            (args.iter().map(|arg| arg.len() + ARG_OVERHEAD).sum(), MAX_ARGS_BYTES)
        }
    };
    if size > limit { Err(too_long("the options: they take", size, limit)) } else { Ok(()) }
}

fn too_long(what: &str, size: usize, limit: usize) -> Error {
    Error::usage(
        format!("failed to accept {what} {size} bytes, the limit is {limit}"),
        "no program can be started with so much; put it into a header",
    )
}

/// Checks that a compiler takes the paths of a source and its include directories for paths: `-`
/// begins an option, and `@file` names a file with further arguments.
pub(crate) fn check_paths(main: &str, include_dirs: &[String]) -> Result<(), Error> {
    let mut paths = include_dirs.iter().map(String::as_str).chain([main]);
    paths.find(|path| path.starts_with(['-', '@'])).map_or(Ok(()), |path| {
        Err(Error::usage(
            format!("failed to accept the path `{path}`: a compiler would take it for an option"),
            "give what it begins with a name that begins with neither `-` nor `@`",
        ))
    })
}

fn forbidden(option: &str) -> Error {
    Error::usage(
        format!("failed to accept option `{option}`: it is not one of those that a key may carry"),
        "take it out: options may set macros, include directories below the source's, warnings \
         and code generation, as docs/options.md lists them; target, output and other files are \
         gfxpack's to choose",
    )
}

/// The beginning of a text of any length.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Checks options that a person wrote, as [`parse`] does, and that they name no processor: it would
/// be part of the key but have no effect.
pub(crate) fn check_written(language: Language, options: &str) -> Result<(), Error> {
    parse(language, options)?;
    let all = split(options).unwrap_or_default();
    match all.iter().find(|arg| arg.starts_with("-mcpu")) {
        Some(arg) => Err(forbidden(arg)),
        None => Ok(()),
    }
}

/// Splits options into arguments as MIOpen's compiler calls do: at blanks, with quotes. `#`, which
/// begins a comment in a shell, is an ordinary character here.
fn split(options: &str) -> Option<Vec<String>> {
    // No argument of a program has this character.
    const NUMBER_SIGN: &str = "\0";
    if options.contains(NUMBER_SIGN) {
        return None;
    }
    if !options.contains(['"', '\'', '\\']) {
        return Some(options.split_ascii_whitespace().map(str::to_owned).collect());
    }
    let args = shlex::split(&options.replace('#', NUMBER_SIGN))?;
    Some(args.iter().map(|arg| arg.replace(NUMBER_SIGN, "#")).collect())
}

/// The target that a job of this language compiles for, in a kdb for `id`.
///
/// Assembly states in its text whether it reserves registers for XNACK, and a kdb without `_xnack`
/// in its name serves devices with XNACK off. So assembly without a stated setting is assembled for
/// "off", as MIOpen does on such a device. Compiled languages use "any", which runs on both.
pub fn compile_target(language: Language, id: &TargetId) -> TargetId {
    let has_xnack = processors::by_name(id.processor()).is_some_and(|processor| processor.xnack);
    if language == Language::Assembly && has_xnack && id.xnack().is_none() {
        id.clone().with_features(id.sramecc(), Some(false))
    } else {
        id.clone()
    }
}

/// Processors for which a macro tells composable-kernel sources that buffer atomic add returns a
/// float.
///
/// Source: ROCm/MIOpen 2d1fd997a, `support_amd_buffer_atomic_fadd`.
fn atomic_fadd_returns(processor: &str) -> bool {
    processor.starts_with("gfx908")
}

/// The code object version that this release of HIP writes with its own compiler. Another clang's
/// default may be a version that the device libraries do not know; Debian's clang 19 even writes
/// version 5 and links the device libraries' part for version 4.
///
/// Source: ROCm 6.0 release notes, code object version 5 as the default.
fn code_object_version(facts: &CompilerFacts) -> u32 {
    if facts.hip_version.is_some_and(|[major, ..]| major >= 6) { 5 } else { 4 }
}

/// The arguments of a job before and after the options of its key. The job runs in the directory of
/// the staged source; the executor adds the output (`-o`).
///
/// Source: ROCm/MIOpen 2d1fd997a, hip_build_utils.cpp (HIP),
/// hipoc_program.cpp (OpenCL C), `AmdgcnAssemble` (assembly).
pub fn around_options(
    language: Language,
    options: &[String],
    id: &TargetId,
    facts: &CompilerFacts,
    main: &str,
    include_dirs: &[String],
    clock: &Clock,
) -> (Program, [Vec<String>; 2]) {
    let mut before: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| before.extend(more.iter().map(|&arg| arg.to_owned()));
    let id = compile_target(language, id).to_string();
    let program = match language {
        Language::Hip => facts.hip_program,
        Language::OpenclC | Language::Assembly => Program::Clang,
    };
    match language {
        Language::Hip => add_for_hip(&mut add, program, options, &id, facts),
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
    add(&[COMPILATION_DIR]);
    for dir in include_dirs {
        add(&[&format!("-I{dir}")]);
    }
    let after = clock.definitions(language).iter().cloned().chain([main.to_owned()]).collect();
    (program, [before, after])
}

/// Adds the arguments that HIP takes before a key's options.
fn add_for_hip(
    add: &mut dyn FnMut(&[&str]),
    program: Program,
    options: &[String],
    id: &str,
    facts: &CompilerFacts,
) {
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
    if !options.iter().any(|arg| arg.starts_with("-std=") || arg.starts_with("--std=")) {
        add(&["--std=c++17"]);
    }
    if let Some([major, minor, patch]) = facts.hip_version {
        let flat =
            u64::from(major) * 1_000_000_000 + u64::from(minor) * 1_000_000 + u64::from(patch);
        add(&[&format!("-DHIP_PACKAGE_VERSION_FLAT={flat}")]);
    }
    if atomic_fadd_returns(id.split(':').next().unwrap_or_default()) {
        add(&["-DCK_AMD_BUFFER_ATOMIC_FADD_RETURNS_FLOAT=1"]);
    }
}

/// The arguments of a kernel without options, include directories and clock, for trying a
/// toolchain.
pub fn plain(
    language: Language,
    id: &TargetId,
    facts: &CompilerFacts,
    main: &str,
) -> (Program, Vec<String>) {
    let (program, around) = around_options(language, &[], id, facts, main, &[], &Clock::at(0));
    (program, around.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(language: Language, options: &str, id: &str, expected: Expect) {
        let facts = CompilerFacts { hip_program: Program::Hipcc, hip_version: Some([5, 2, 21153]) };
        let options = parse(language, options).unwrap();
        let (dirs, clock) = (["gfxpack-include-0".to_owned()], Clock::at(0));
        let (program, [before, after]) =
            around_options(language, &options, &id.parse().unwrap(), &facts, "k", &dirs, &clock);
        let args = [before, options, after].concat();
        expected.assert_eq(&format!("{program:?} {}", args.join(" ")));
    }

    #[test]
    fn each_language_gets_miopens_options() {
        check(
            Language::Hip,
            " -DA=1 -mcpu=gfx906 -std=c++14",
            "gfx908:xnack+",
            expect![
                "Hipcc --offload-arch=gfx908:xnack+ --cuda-device-only --no-gpu-bundle-output -fuse-cuid=none -c -O3 -Wno-everything -Wno-unused-command-line-argument -DHIP_PACKAGE_VERSION_FLAT=5002021153 -DCK_AMD_BUFFER_ATOMIC_FADD_RETURNS_FLOAT=1 -ffile-compilation-dir=. -Igfxpack-include-0 -DA=1 -std=c++14 -Wno-builtin-macro-redefined -U__DATE__ -D__DATE__=\"Jan  1 1970\" -D__TIME__=\"00:00:00\" -D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\" k"
            ],
        );
        check(
            Language::OpenclC,
            "  -DA=1  -DB",
            "gfx906",
            expect![
                "Clang -target amdgcn-amd-amdhsa -x cl -mcpu=gfx906 --rocm-device-lib-path={device-libs} -Wno-everything -mcode-object-version=4 -D__AMD__=1 -O3 -cl-kernel-arg-info -cl-denorms-are-zero -cl-std=CL2.0 -mllvm -amdgpu-early-inline-all -mllvm -amdgpu-internalize-symbols -ffile-compilation-dir=. -Igfxpack-include-0 -DA=1 -DB -Wno-builtin-macro-redefined -U__DATE__ -D__DATE__=\"Jan  1 1970\" -D__TIME__=\"00:00:00\" -D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\" k"
            ],
        );
        check(
            Language::Assembly,
            " -Wa,-defsym,n=1",
            "gfx906",
            expect![
                "Clang -x assembler -target amdgcn--amdhsa -mcpu=gfx906:xnack- -ffile-compilation-dir=. -Igfxpack-include-0 -Wa,-defsym,n=1 k"
            ],
        );
        let clang = |major| {
            let hip_version = Some([major, 2, 0]);
            let facts = CompilerFacts { hip_program: Program::Clang, hip_version };
            let id = "gfx942".parse().unwrap();
            let (program, args) = plain(Language::Hip, &id, &facts, "k");
            format!("{program:?} {}", args.join(" "))
        };
        expect!["Clang -x hip --rocm-path={rocm} --hip-device-lib-path={device-libs} --hip-version=5.2.0 -mcode-object-version=4 -mllvm -amdgpu-early-inline-all=true -mllvm -amdgpu-function-calls=false --offload-arch=gfx942 --cuda-device-only --no-gpu-bundle-output -fuse-cuid=none -c -O3 -Wno-everything -Wno-unused-command-line-argument --std=c++17 -DHIP_PACKAGE_VERSION_FLAT=5002000000 -ffile-compilation-dir=. -Wno-builtin-macro-redefined -U__DATE__ -D__DATE__=\"Jan  1 1970\" -D__TIME__=\"00:00:00\" -D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\" k"].assert_eq(&clang(5));
        assert!(clang(6).contains(" -mcode-object-version=5 "));
        let gfx1030 = "gfx1030".parse().unwrap();
        assert_eq!(compile_target(Language::Assembly, &gfx1030).to_string(), "gfx1030");
    }

    #[test]
    fn a_definition_that_changes_nothing_is_dropped() {
        let check = |options: &str, kept: &str| {
            let args = parse(Language::Hip, options).unwrap();
            assert_eq!(args.join(" "), kept, "{options}");
        };
        check(" -DA=1 -DB -O2 -DA=1 -DB -mcpu=gfx906", "-DA=1 -DB -O2");
        for all_count in [
            "-DA=1 -DA=2 -DA=1",
            "-DA=1 -UA -DA=1",
            "-DA=1 -DAB=1 -DA",
            "-DA(x)=x -DA=1 -DA(x)=x",
            "-O2 -DA=1 -O2",
            "-I. -I.",
            // The second definition is a part of `B`, and keeps `C` from being defined.
            "-DA=1 -DB=??/ -DA=1 -DC=1",
            "-DA=1 -DB=/* -DA=1 -DC=*/",
        ] {
            check(all_count, all_count);
        }
        // A name also ends at a blank.
        check("-DA=1 \"-DA =2\" -DA=1", "-DA=1 -DA =2 -DA=1");
        check("-DA=1 \"-UA x\" -DA=1", "-DA=1 -UA x -DA=1");
    }

    #[test]
    fn options_are_split_as_a_shell_does_and_checked_one_by_one() {
        let parse = |options| parse(Language::OpenclC, options).map_err(|it| it.to_string());
        let forbidden = |named| Err(forbidden(named).to_string());
        for (options, named) in
            [("-o x", "-o"), ("-DA=1 # x", "#"), ("-DA -mllvm -stats", "-mllvm -stats")]
        {
            assert_eq!(parse(options), forbidden(named), "{options}");
        }
        let fault = parse("-DA=\"x").unwrap_err();
        assert_eq!(fault, "failed to split options `-DA=\"x` into words");
        assert_eq!(parse("-DA=\"x\" #-DB"), forbidden("#-DB"));
        assert_eq!(parse(" -DA=\"x y\" -mcpu=gfx906").unwrap(), ["-DA=x y"]);
        assert_eq!(parse("-D'A=1 # x' -DB").unwrap(), ["-DA=1 # x", "-DB"]);
        let taken = "-O3 -mllvm --amdgpu-spill-vgpr-to-agpr=0 -DB=#C";
        let all: Vec<&str> = taken.split_whitespace().collect();
        assert_eq!(parse(taken).unwrap(), all);
    }

    #[test]
    fn options_that_are_too_long_for_a_program_are_refused() {
        let define = |letter: &str, size: usize| format!(" -DA={}", letter.repeat(size - 4));
        let check = |language, options: &str| {
            parse(language, options).map(|args| args.len()).map_err(|it| it.to_string())
        };
        let long = check(Language::OpenclC, &define("x", MAX_ARG_BYTES + 1)).unwrap_err();
        assert!(long.starts_with("failed to accept option `-DA=xx") && long.len() < 1000, "{long}");
        assert!(long.contains(&format!("it has {} bytes", MAX_ARG_BYTES + 1)), "{long}");
        let are_too_long = |checked: Result<usize, String>| {
            let fault = checked.unwrap_err();
            assert!(fault.starts_with("failed to accept the options: they take "), "{fault}");
        };
        assert_eq!(check(Language::OpenclC, &define("x", MAX_ARG_BYTES)), Ok(1));
        let many = |count| -> String {
            ["x", "y", "x", "y", "x", "y"][..count].iter().map(|x| define(x, 100_000)).collect()
        };
        assert_eq!(check(Language::Assembly, " -DA=x -UA"), Ok(2));
        assert_eq!(check(Language::OpenclC, &many(5)), Ok(5));
        are_too_long(check(Language::OpenclC, &many(6)));
        assert_eq!(check(Language::Hip, &many(1)), Ok(1));
        are_too_long(check(Language::Hip, &many(2)));
        // hipcc puts a backslash before each of them.
        are_too_long(check(Language::Hip, &define("(", 80_000)));
        assert_eq!(
            check(Language::OpenclC, &" -D1".repeat(100_000)),
            Err(forbidden("-D1").to_string())
        );
    }
}
