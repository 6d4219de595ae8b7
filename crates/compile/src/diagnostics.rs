//! Judges a compiler's output: either the kernel is wrong, or something went wrong around it. Only
//! a failure of the first kind may be kept.

use gfxpack_process::was_cut;

use crate::failure_kind::FailureKind;

/// The exit code of compilers that find an error in a source.
///
/// Source: LLVM, clang/tools/driver/cc1_main.cpp and cc1as_main.cpp,
/// lld/ELF/Driver.cpp; hipcc.pl, which hands it on.
const REFUSED_EXIT_CODE: i32 = 1;

/// Messages of errors that name a place in a source, but mean that a file could not be read or
/// changed meanwhile.
///
/// Source: LLVM, clang/include/clang/Basic/DiagnosticCommonKinds.td and
/// DiagnosticLexKinds.td, `err_cannot_open_file`, `err_file_modified`,
/// `err_pp_file_not_found`, `err_pp_error_opening_file`;
/// llvm/lib/MC/MCParser/AsmParser.cpp, `parseDirectiveInclude`,
/// `parseDirectiveIncbin`.
const OF_FILES: [&str; 9] = [
    "file not found",
    "could not find",
    "cannot open",
    "could not open",
    "error opening",
    "error reading",
    "modified since",
    "out of memory",
    "no space left",
];

/// Errors of a kernel that name no line of its source: it exceeds a resource limit, or does not
/// define a symbol. The beginning of each message, and a later part of it.
///
/// Source: LLVM, llvm/include/llvm/IR/DiagnosticInfo.h,
/// `DiagnosticInfoUnsupported`, `DiagnosticInfoResourceLimit`;
/// lld/ELF/Relocations.cpp, `reportUndefinedSymbol`.
const OF_THE_WHOLE: [(&str, &str); 3] = [
    ("error: <unknown>:0:0: ", ""),
    ("error: ", ") exceeds limit ("),
    ("ld.lld: error: undefined ", "symbol: "),
];

/// Whether the kernel itself is wrong, so that its job would fail again as long as its inputs stay
/// the same. In doubt, the answer is no: the compiler may have crashed, been killed, or run out of
/// something.
pub(crate) fn is_kernels_fault(kind: &FailureKind, output: &str) -> bool {
    match kind {
        FailureKind::WrongTarget { .. } => true,
        FailureKind::Refused(REFUSED_EXIT_CODE) => !was_cut(output) && blames_kernel(output),
        _ => false,
    }
}

/// Whether the output has errors, and all of them are about the kernel.
fn blames_kernel(output: &str) -> bool {
    let mut errors = output.lines().filter(|line| line.to_ascii_lowercase().contains("error:"));
    let of_the_whole = |line: &str| {
        OF_THE_WHOLE
            .iter()
            .any(|(begin, then)| line.strip_prefix(begin).is_some_and(|rest| rest.contains(then)))
    };
    let mut some = false;
    let all = errors.all(|line| {
        let names_kernel = names_place(line) || of_the_whole(line);
        some |= names_kernel;
        (names_kernel || is_sum(line)) && !is_about_files(line)
    });
    all && some
}

/// Whether an error names the place in a source where it is.
pub(crate) fn names_place(line: &str) -> bool {
    let Some(at) = line.to_ascii_lowercase().find("error:") else { return false };
    let before = line[..at].trim_end().trim_end_matches("fatal").trim_end();
    before.strip_suffix(':').is_some_and(|place| place.ends_with(|c: char| c.is_ascii_digit()))
}

/// Whether an error only summarizes those before it.
fn is_sum(line: &str) -> bool {
    line == "fatal error: too many errors emitted, stopping now [-ferror-limit=]"
        || line.ends_with(" command failed with exit code 1 (use -v to see invocation)")
}

fn is_about_files(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    OF_FILES.iter().any(|text| line.contains(text))
}

/// The signal that ended the compiler behind a driver, which itself exits: a compiler that ran out
/// of memory did not refuse the kernel. `None` for a crash, which is the compiler's own fault.
///
/// Source: LLVM, `llvm/lib/Support/Unix/Program.inc` and clang's
/// `Compilation::ExecuteCommand`, which print the text of `strsignal`.
pub(crate) fn killed(output: &str) -> Option<i32> {
    let of = |name: &str| output.contains(&format!("unable to execute command: {name}"));
    if of("Killed") {
        Some(9)
    } else if of("Terminated") {
        Some(15)
    } else {
        None
    }
}

/// Whether a compiler failed because the disk is full, which is not the kernel's fault. An error
/// that names a place in a source is no such failure.
///
/// Source: LLVM, `llvm/lib/Support/raw_ostream.cpp`, `report_fatal_error` of
/// its destructor; clang's `err_fe_unable_to_open_output`; the text of `strerror`.
pub(crate) fn lacks_room(output: &str) -> bool {
    const MESSAGES: [&str; 4] = [
        "No space left on device",
        "Disk quota exceeded",
        "IO failure on output stream",
        "File too large",
    ];
    output.lines().any(|line| {
        let at = line.to_ascii_lowercase().find("error:");
        at.is_some_and(|at| {
            !names_place(line) && MESSAGES.iter().any(|text| line[at..].contains(text))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compiler_finds_wrong_in_a_kernel_is_the_kernels_fault() {
        for output in [
            "k.cl:1:19: error: use of undeclared identifier 'x'\n  1 | x;\n    | ^\n1 error generated.",
            "In file included from k.cpp:1:\n./a.hpp:20:21: error: instruction not supported on this \
             GPU\nfatal error: too many errors emitted, stopping now [-ferror-limit=]\n20 errors \
             generated when compiling for gfx1030.",
            "Included from k.s:44:\nm.inc:34:5: error: Only Gfx9\n    .error \"Only Gfx9\"\n    ^",
            "k.cl:1:1: fatal error: recursion\n",
            "error: local memory (200000) exceeds limit (65536) in function 'k'\n1 error generated.",
            "error: <unknown>:0:0: stack frame size (36000004) exceeds limit (131056) in function 'k'",
            "ld.lld: error: undefined hidden symbol: f\n>>> referenced by k.o:(k)\nclang: error: \
             ld.lld command failed with exit code 1 (use -v to see invocation)",
        ] {
            assert!(is_kernels_fault(&FailureKind::Refused(1), output), "{output}");
            assert!(!is_kernels_fault(&FailureKind::Refused(139), output), "{output}");
        }
        let (expected, found) = ("gfx906".to_owned(), "gfx908".to_owned());
        assert!(is_kernels_fault(&FailureKind::WrongTarget { expected, found }, ""));
    }

    #[test]
    fn what_went_wrong_around_a_kernel_is_not_its_fault() {
        let error = "k.cl:1:1: error: no\n";
        for more in [
            "clang: error: unable to execute command: Segmentation fault",
            "clang: error: unable to execute command: Killed",
            "clang: error: clang frontend command failed with exit code 139 (use -v to see invocation)",
            "LLVM ERROR: out of memory",
            "fatal error: error in backend: IO failure on output stream: No space left on device",
            "k.cl:2:1: fatal error: cannot open file '/usr/include/x.h': Input/output error",
            "k.cl:2:1: fatal error: 'x.h' file not found",
            "k.s:1:10: error: Could not find include file 'gone.inc'",
            "k.cl:2:1: error: file 'x.h' modified since it was first processed",
            "ld.lld: error: failed to write output 'x': Cannot allocate memory",
            "clang: error: no such file or directory: 'k.cl'",
            "[more output was dropped]",
        ] {
            let output = format!("{error}{more}\n");
            assert!(!is_kernels_fault(&FailureKind::Refused(1), &output), "{output}");
        }
        for output in ["", "clang: error: invalid target ID 'x'", "1 error generated."] {
            assert!(!is_kernels_fault(&FailureKind::Refused(1), output), "{output}");
        }
        for kind in [
            FailureKind::Crashed(11),
            FailureKind::TimedOut(std::time::Duration::from_secs(1)),
            FailureKind::TooLong,
            FailureKind::NoOutput,
            FailureKind::NoCodeObject(String::new()),
        ] {
            assert!(!is_kernels_fault(&kind, error), "{kind}");
        }
    }

    #[test]
    fn a_killed_compiler_is_not_a_refusal() {
        let output = |name| format!("clang: error: unable to execute command: {name}\n");
        assert_eq!(killed(&output("Killed")), Some(9));
        assert_eq!(killed(&output("Terminated")), Some(15));
        assert_eq!(killed(&output("Segmentation fault")), None);
        assert_eq!(killed("k.cl:1:1: error: unknown type name\n"), None);
    }

    #[test]
    fn a_full_disk_is_distinguished_from_errors_in_the_source() {
        for output in [
            "fatal error: error in backend: IO failure on output stream: No space left on device",
            "error: unable to open output file 'x.o': 'No space left on device'",
            "ld.lld: error: failed to write output 'x': Disk quota exceeded\n1 error generated.",
            "LLVM ERROR: IO failure on output stream: File too large\n",
        ] {
            assert!(lacks_room(output), "{output}");
        }
        for output in [
            "k.cl:1:2: error: No space left on device\n#error No space left on device\n",
            "k.cl:1:2: fatal error: No space left on device",
            "k.cl:3:5: error: use of undeclared identifier 'x'\n puts(\"No space left on device\");",
            "",
        ] {
            assert!(!lacks_room(output), "{output}");
        }
    }
}
