//! Why a job has no object.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a job failed. Only one of these reasons is a refusal: the compiler ran to its end and
/// reported an error. What the store calls refusals are the failures of which the kernel itself is
/// the fault. The object store keeps failures in this form.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The compiler reported an error, with this exit code.
    #[error("the compiler refused it (exit code {0})")]
    Refused(i32),
    /// The compiler was ended by this signal.
    #[error("the compiler crashed (signal {0})")]
    Crashed(i32),
    /// It did not end within the time limit.
    #[error("the compiler was stopped after {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Its command line is longer than this system allows.
    #[error("the compiler can't be started: its arguments are too long for this system")]
    TooLong,
    /// It reported success but wrote nothing.
    #[error("the compiler reported success and wrote no object")]
    NoOutput,
    /// Its output is no code object.
    #[error("the compiler wrote something that is no code object: {0}")]
    NoCodeObject(String),
    /// It read this file, which is not among the sources. A relative path starts at the directory
    /// of the sources.
    #[error("it reads `{}`, which is not among the sources: {}", .0.display(), how_to_add(.0))]
    Reads(PathBuf),
    /// It read this path, which leads below `/proc`.
    #[error(
        "it reads `{}`, which is below /proc and differs from process to process: remove that from \
         the kernel, or from the script that starts the compiler",
        .0.display()
    )]
    ReadsProc(PathBuf),
    /// It read a file of its sources by a path elsewhere too, or a file elsewhere that may be one of
    /// its sources.
    #[error(
        "it reads `{}`, which is also its source `{}`, or a copy of that: let it include only one \
         of the two",
        path.display(),
        own.display()
    )]
    ReadsByOtherName {
        /// The path elsewhere.
        path: PathBuf,
        /// The file among the sources, by its path there.
        #[serde(rename = "source")]
        own: PathBuf,
    },
    /// Its compiler also searches this include directory on its own account.
    #[error(
        "`{}` is one of the compiler's own include directories, which it searches last: remove it \
         from the kernel's include directories",
        .0.display()
    )]
    Searches(PathBuf),
    /// It wrote, or tried to write, to this path outside its own directory.
    #[error(
        "the compiler tried to write `{}`, outside its own directory: if a wrapper such as ccache \
         does that, give the compiler itself",
        .0.display()
    )]
    Writes(PathBuf),
    /// The object is for another target than the one asked for.
    #[error("the object is for {found}, not for {expected}")]
    WrongTarget {
        /// The target that was asked for.
        expected: String,
        /// The target of the object.
        found: String,
    },
}

impl FailureKind {
    /// A one-word name for messages that programs read.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Crashed(_) => "crashed",
            Self::TimedOut(_) => "timeout",
            Self::TooLong => "too-long",
            Self::NoOutput => "no-output",
            Self::NoCodeObject(_) => "no-code-object",
            Self::Reads(_) | Self::ReadsProc(_) | Self::ReadsByOtherName { .. } => "reads-outside",
            Self::Searches(_) => "include-dir-of-compiler",
            Self::Writes(_) => "writes-outside",
            Self::WrongTarget { .. } => "wrong-target",
        }
    }
}

/// What to do about a file that is not among the sources.
fn how_to_add(path: &Path) -> &'static str {
    if path.is_absolute() {
        "put the file among them, or allow its directory by --allow-read DIR"
    } else {
        "put the file below their directory, or into an include directory, and name it without `..`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_read_outside_says_what_to_do() {
        let reads = |path: &str| FailureKind::Reads(path.into());
        let by_other_name =
            FailureKind::ReadsByOtherName { path: "/x/a.h".into(), own: "inc/a.h".into() };
        for (kind, what, todo) in [
            (reads("/opt/a.h"), "it reads `/opt/a.h`, which is not among", "--allow-read DIR"),
            (reads("../a.h"), "it reads `../a.h`, which is not among", "into an include directory"),
            (FailureKind::ReadsProc("/proc/cpuinfo".into()), "below /proc", "remove that"),
            (by_other_name, "`/x/a.h`, which is also its source `inc/a.h`", "only one of the two"),
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
