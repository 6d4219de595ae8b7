//! What a compiler's words say of a kernel: that it is wrong, or that
//! something went wrong around it. Only the first may be kept.

use gfxpack_process::was_cut;

use crate::failure_kind::FailureKind;

/// Programs that are told that a source is wrong exit with this.
///
/// Source: LLVM, clang/tools/driver/cc1_main.cpp and cc1as_main.cpp,
/// lld/ELF/Driver.cpp; hipcc.pl, which hands it on.
const REFUSED: i32 = 1;

/// Words of errors that name a place in a source and say that a file could
/// not be read, or was another one a moment later.
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

/// Errors without a place that tell of the kernel all the same: what it needs
/// more of than there is, and what it does not define. How each begins, and
/// what follows.
///
/// Source: LLVM, llvm/include/llvm/IR/DiagnosticInfo.h,
/// `DiagnosticInfoUnsupported`, `DiagnosticInfoResourceLimit`;
/// lld/ELF/Relocations.cpp, `reportUndefinedSymbol`.
const OF_THE_WHOLE: [(&str, &str); 3] = [
    ("error: <unknown>:0:0: ", ""),
    ("error: ", ") exceeds limit ("),
    ("ld.lld: error: undefined ", "symbol: "),
];

/// Whether the same would be said of this job again, as long as what it reads
/// stays the same. Words that are not known for that are taken for others:
/// of a compiler that crashed, was killed, or ran out of something.
pub(crate) fn lasts(kind: &FailureKind, output: &str) -> bool {
    match kind {
        FailureKind::WrongTarget { .. } => true,
        FailureKind::Refused(REFUSED) => !was_cut(output) && is_of_the_kernel(output),
        _ => false,
    }
}

fn is_of_the_kernel(output: &str) -> bool {
    let mut errors = output.lines().filter(|line| line.to_ascii_lowercase().contains("error:"));
    let of_the_whole = |line: &str| {
        OF_THE_WHOLE
            .iter()
            .any(|(begin, then)| line.strip_prefix(begin).is_some_and(|rest| rest.contains(then)))
    };
    let mut some = false;
    let all = errors.all(|line| {
        let tells = names_place(line) || of_the_whole(line);
        some |= tells;
        (tells || is_sum(line)) && !tells_of_files(line)
    });
    all && some
}

/// Whether an error names the place in a source that it is about.
pub(crate) fn names_place(line: &str) -> bool {
    let Some(at) = line.to_ascii_lowercase().find("error:") else { return false };
    let before = line[..at].trim_end().trim_end_matches("fatal").trim_end();
    before.strip_suffix(':').is_some_and(|place| place.ends_with(|c: char| c.is_ascii_digit()))
}

/// Whether an error only sums up those before it.
fn is_sum(line: &str) -> bool {
    line == "fatal error: too many errors emitted, stopping now [-ferror-limit=]"
        || line.ends_with(" command failed with exit code 1 (use -v to see invocation)")
}

fn tells_of_files(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    OF_FILES.iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compiler_says_of_a_kernel_lasts() {
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
            assert!(lasts(&FailureKind::Refused(1), output), "{output}");
            assert!(!lasts(&FailureKind::Refused(139), output), "{output}");
        }
        let (expected, found) = ("gfx906".to_owned(), "gfx908".to_owned());
        assert!(lasts(&FailureKind::WrongTarget { expected, found }, ""));
    }

    #[test]
    fn what_went_wrong_around_it_does_not() {
        let said = "k.cl:1:1: error: no\n";
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
            let output = format!("{said}{more}\n");
            assert!(!lasts(&FailureKind::Refused(1), &output), "{output}");
        }
        for output in ["", "clang: error: invalid target ID 'x'", "1 error generated."] {
            assert!(!lasts(&FailureKind::Refused(1), output), "{output}");
        }
        for kind in [
            FailureKind::Crashed(11),
            FailureKind::TimedOut(std::time::Duration::from_secs(1)),
            FailureKind::TooLong,
            FailureKind::NoOutput,
            FailureKind::NoCodeObject(String::new()),
        ] {
            assert!(!lasts(&kind, said), "{kind}");
        }
    }
}
