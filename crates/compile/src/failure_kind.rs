//! Why a job has no object.

use std::fmt;
use std::path::PathBuf;
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
            Self::Reads(_) => "reads-outside",
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
            Self::Reads(path) if path.starts_with(".") => {
                let dir = path.display();
                write!(f, "a program lists `{dir}`, where only files that are needed are laid out")
            }
            Self::Reads(path) => {
                write!(f, "it reads `{}`, which is not among the sources", path.display())
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
                    "the compiler tried to write `{}`, outside its own directory",
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
