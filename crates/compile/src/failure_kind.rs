//! Why a job has no object.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a job failed. Only one of these reasons is a refusal: the compiler ran to its end and
/// reported an error. The object store keeps failures in this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The compiler reported an error, with this exit code.
    Refused(i32),
    /// The compiler was ended by this signal.
    Crashed(i32),
    /// It did not end within the time limit.
    TimedOut(Duration),
    /// Its command line is longer than this system allows.
    TooLong,
    /// It reported success but wrote nothing.
    NoOutput,
    /// Its output is no code object.
    NoCodeObject(String),
    /// It read this file, which is not among the sources. A relative path starts at the directory
    /// of the sources.
    Reads(PathBuf),
    /// It read this path, which leads below `/proc`.
    ReadsProc(PathBuf),
    /// It read a file of its sources by a path elsewhere too, or a file elsewhere that may be one of
    /// its sources.
    ReadsByOtherName {
        /// The path elsewhere.
        path: PathBuf,
        /// The file among the sources, by its path there.
        source: PathBuf,
    },
    /// It listed this directory of the sources; the path starts at their own.
    ListsSources(PathBuf),
    /// Its compiler also searches this include directory on its own account.
    Searches(PathBuf),
    /// It looked for this path, of which its stored plan has no complete description.
    NotInPlan(PathBuf),
    /// It wrote, or tried to write, to this path outside its own directory.
    Writes(PathBuf),
    /// Each of this many runs looked for more files among the sources, or read files that had just
    /// changed.
    Endless(usize),
    /// The object is for another target than the one asked for.
    WrongTarget {
        /// The target that was asked for.
        expected: String,
        /// The target of the object.
        found: String,
    },
}

impl FailureKind {
    /// A one-word name for messages that programs read.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Crashed(_) => "crashed",
            Self::TimedOut(_) => "timeout",
            Self::TooLong => "too-long",
            Self::NoOutput => "no-output",
            Self::NoCodeObject(_) => "no-code-object",
            Self::Reads(_)
            | Self::ReadsProc(_)
            | Self::ReadsByOtherName { .. }
            | Self::ListsSources(_) => "reads-outside",
            Self::Searches(_) => "include-dir-of-compiler",
            Self::NotInPlan(_) => "not-in-plan",
            Self::Writes(_) => "writes-outside",
            Self::Endless(_) => "unsettled",
            Self::WrongTarget { .. } => "wrong-target",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "the compiler refused it (exit code {code})"),
            Self::Crashed(signal) => write!(f, "the compiler crashed (signal {signal})"),
            Self::TimedOut(limit) => {
                write!(f, "the compiler was stopped after {} s", limit.as_secs())
            }
            Self::TooLong => f.write_str(
                "the compiler can't be started: its arguments are too long for this system",
            ),
            Self::NoOutput => f.write_str("the compiler reported success and wrote no object"),
            Self::NoCodeObject(reason) => {
                write!(f, "the compiler wrote something that is no code object: {reason}")
            }
            Self::Reads(path) if path.is_absolute() => {
                write!(
                    f,
                    "it reads `{}`, which is not among the sources: put the file among them, or \
                     allow its directory by --allow-read DIR",
                    path.display()
                )
            }
            Self::Reads(path) => {
                write!(
                    f,
                    "it reads `{}`, which is not among the sources: put the file below their \
                     directory, or into an include directory, and name it without `..`",
                    path.display()
                )
            }
            Self::ReadsProc(path) => {
                write!(
                    f,
                    "it reads `{}`, which is below /proc and differs from process to process: \
                     remove that from the kernel, or from the script that starts the compiler",
                    path.display()
                )
            }
            Self::ReadsByOtherName { path, source } => {
                write!(
                    f,
                    "it reads `{}`, which is also its source `{}`, or a copy of that: let it \
                     include only one of the two",
                    path.display(),
                    source.display()
                )
            }
            Self::ListsSources(dir) => {
                write!(
                    f,
                    "a program lists the directory `{}` of the sources, where only the files that \
                     the kernel needs are laid out: let the script that starts the compiler not \
                     list it (Python does, unless it is given -P)",
                    Path::new(".").join(dir).display()
                )
            }
            Self::Searches(dir) => {
                write!(
                    f,
                    "`{}` is one of the compiler's own include directories, which it searches \
                     last: remove it from the kernel's include directories",
                    dir.display()
                )
            }
            Self::NotInPlan(path) => {
                write!(
                    f,
                    "it looks for `{}`, which the stored plan does not hold: build it without \
                     one, or store the plan with a larger --carry, or where fewer than \
                     50,000 files lie beside its sources",
                    path.display()
                )
            }
            Self::Writes(path) => {
                write!(
                    f,
                    "the compiler tried to write `{}`, outside its own directory: if a wrapper \
                     such as ccache does that, give the compiler itself",
                    path.display()
                )
            }
            Self::Endless(rounds) => {
                write!(f, "its files changed, or more of them came, in each of {rounds} runs")
            }
            Self::WrongTarget { expected, found } => {
                write!(f, "the object is for {found}, not for {expected}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_read_outside_says_what_to_do() {
        let reads = |path: &str| FailureKind::Reads(path.into());
        let by_other_name =
            FailureKind::ReadsByOtherName { path: "/x/a.h".into(), source: "inc/a.h".into() };
        for (kind, what, todo) in [
            (reads("/opt/a.h"), "it reads `/opt/a.h`, which is not among", "--allow-read DIR"),
            (reads("../a.h"), "it reads `../a.h`, which is not among", "into an include directory"),
            (FailureKind::ReadsProc("/proc/cpuinfo".into()), "below /proc", "remove that"),
            (by_other_name, "`/x/a.h`, which is also its source `inc/a.h`", "only one of the two"),
            (FailureKind::ListsSources("".into()), "lists the directory `./`", "given -P"),
        ] {
            let text = kind.to_string();
            let (before, after) = text.split_once(": ").expect("what to do");
            assert!(before.contains(what) && after.contains(todo), "{text}");
            assert_eq!(kind.name(), "reads-outside");
        }
        // No option allows these.
        for kind in [reads("../a.h"), FailureKind::ReadsProc("/dev/fd/9".into())] {
            assert!(!kind.to_string().contains("--allow-read"), "{kind}");
        }
    }
}
