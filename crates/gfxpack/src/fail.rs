//! The exit codes, and how an error is told: what failed, why, and what to
//! do about it.

use std::fmt;
use std::process::ExitCode;

use gfxpack_compile::{CompileError, ManifestError};
use gfxpack_debian::DebianError;
use gfxpack_harvest::HarvestError;
use gfxpack_kdb::{CopyError, ReadError, WriteError};
use gfxpack_miopen::{AskError, LibraryError, NetworkError, ProblemsError};
use gfxpack_model::TargetError;
use gfxpack_package::repository::RepositoryError;
use gfxpack_package::signing::SigningError;
use gfxpack_package::verify::VerifyError;
use gfxpack_plan::InputError;
use gfxpack_plan::shard::{Shard, ranges};
use gfxpack_plan::stored::StoredError;
use gfxpack_process::{FileError, SystemToolError, io_hint, is_no_such_path};
use gfxpack_toolchain::ToolchainError;

use crate::args::{Common, MessageFormat};
use crate::output::{Output, counted};
use crate::shards::MergeError;

/// Something went wrong in gfxpack or on the machine.
const INTERNAL: u8 = 1;
/// The user's command line or input is wrong.
const USAGE: u8 = 2;
/// A lookup found no kernel, or `install` no package.
const NOT_FOUND: u8 = 3;
/// A shard is done and some of its kernels were refused: running it again
/// gives the same.
const SHARD_REFUSED: u8 = 42;
/// Kernels could not be compiled.
const REFUSED: u8 = 100;
/// A kdb did not pass verification, or something is wrong on this machine.
const UNSOUND: u8 = 101;
/// Stopped by a signal.
const INTERRUPTED: u8 = 130;

/// An outcome that has an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Outcome {
    /// The command line or an input is wrong.
    #[error("{message}")]
    Usage { message: String, hint: String },
    /// Several things are wrong in the input.
    #[error("failed to accept the input: {}", counted(.0.len(), "error"))]
    Inputs(Vec<InputError>),
    /// Kernels could not be compiled, and the user did not allow that.
    #[error("failed to compile {failed} of {}{}", counted(*total, "kernel"), if *packages { "; no package was made" } else { "" })]
    Refused {
        failed: usize,
        total: usize,
        /// Where it is told why.
        why: &'static str,
        /// Whether packages were to be made.
        packages: bool,
    },
    /// MIOpen failed on problems, which may want kernels that nobody knows.
    #[error("failed to ask for {failed} of {}", counted(*total, "problem"))]
    ProblemsFailed { failed: usize, total: usize, hint: &'static str },
    /// Layers of models whose problems are not known.
    #[error("failed to resolve {}", counted(*.0, "layer"))]
    Unresolved(usize),
    /// A shard is done, and has kernels that could not be compiled.
    #[error("failed to compile {failed} of {} of shard {shard}", counted(*total, "kernel"))]
    ShardRefused { shard: Shard, failed: usize, total: usize },
    /// The machine failed some of a shard's jobs.
    #[error("failed to run {} of shard {shard}: their compilers were killed", counted(*lost, "job"))]
    ShardLost { shard: Shard, lost: usize },
    /// All shards are done, and some kernels could not be compiled.
    #[error("failed to compile {}; all shards are done", counted(*.0, "kernel"))]
    ShardsRefused(usize),
    /// Nothing runs any more, and shards are missing.
    #[error("failed to finish {} of {count} shards: {}", .missing.len(), ranges(.missing))]
    ShardsMissing { missing: Vec<u32>, count: u32 },
    /// A kdb is known to lack kernels, and the user did not allow that.
    #[error("failed to package `{file}`: {missing} of its kernels could not be compiled")]
    Partial { file: String, missing: usize },
    /// Verification found something.
    #[error("failed to verify {0}")]
    Unsound(String),
    /// The same, and it is known what helps.
    #[error("failed to verify {what}")]
    Unverified { what: String, hint: String },
    /// Something is wrong in performance or find databases.
    #[error("failed to verify {0}")]
    Faulty(String),
    /// Two kdbs differ, and the user wanted to know.
    #[error("failed to find the kdbs equal: {0} differences")]
    Differ(u64),
    /// A repair could not save all rows.
    #[error("failed to save {what} of `{file}`")]
    Lost { file: String, what: String, hint: &'static str },
    /// A panic, which has told itself already.
    #[error("failed because of a defect in gfxpack")]
    Defect,
    /// No file has the kernel that was looked up.
    #[error("failed to find `{key}` for {target}")]
    NotFound { key: String, target: String },
    /// The machine is not as it should be.
    #[error("failed to find this machine in order: {0} problems")]
    Unwell(usize),
    /// No package of kernels was found for this machine.
    #[error("failed to find a package for {targets}")]
    NoPackage {
        targets: String,
        /// Whether a directory of packages was given.
        given: bool,
    },
    /// No GPU was found that packages could be for.
    #[error("failed to find an AMD GPU in this machine to install kernels for")]
    NoGpu,
    /// Objects of the cache were damaged.
    #[error("failed to verify the cache: {0} objects were damaged, and are removed")]
    Damaged(usize),
    /// The cache is in use.
    #[error("failed to evict from the cache: a build is using it")]
    InUse,
    /// There is no place for temporary files.
    #[error("failed to create a temporary directory in `{dir}`")]
    Temporary { dir: String, source: std::io::Error },
    /// The machine does not let us.
    #[error("failed to {action} `{path}`")]
    Io { action: &'static str, path: String, source: std::io::Error },
}

/// An error of the user's making.
pub(crate) fn usage(message: impl fmt::Display, hint: impl fmt::Display) -> anyhow::Error {
    Outcome::Usage { message: message.to_string(), hint: hint.to_string() }.into()
}

/// What a panic comes to.
pub(crate) fn defect() -> anyhow::Error {
    Outcome::Defect.into()
}

/// What clap says of a command line, or the help that was asked for.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let json = words.iter().any(|word| word == "--message-format=json")
        || words.windows(2).any(|pair| pair == ["--message-format", "json"]);
    if error.use_stderr() && json {
        let message = error.to_string().trim_start_matches("error: ").trim().to_owned();
        let common = Common { message_format: MessageFormat::Json, ..Common::default() };
        Output::new(&common).error(&[message], Some("see --help"), USAGE);
    } else {
        error.print().ok();
    }
    ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
}

/// A file that could not be read or written.
pub(crate) fn io(
    action: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> anyhow::Error {
    let path = path.display().to_string();
    move |source| Outcome::Io { action, path, source }.into()
}

/// A directory that goes when it is dropped.
pub(crate) fn temporary_dir() -> anyhow::Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(|source| {
        let dir = tempfile::env::temp_dir().display().to_string();
        Outcome::Temporary { dir, source }.into()
    })
}

/// The exit code and the hint of an error: those of the first error in the
/// chain that has them.
fn classify(error: &anyhow::Error) -> (u8, Option<String>) {
    error
        .chain()
        .find_map(|cause| {
            if let Some(outcome) = cause.downcast_ref::<Outcome>() {
                Some(match outcome {
                    Outcome::Usage { hint, .. } => (USAGE, Some(hint.clone())),
                    Outcome::Inputs(errors) => (USAGE, errors.first().map(InputError::hint)),
                    Outcome::Refused { failed, total, why, .. } if failed == total => {
                        (REFUSED, Some((*why).to_owned()))
                    }
                    Outcome::Refused { why, packages, .. } => {
                        let partial = if *packages {
                            "--allow-partial makes packages without these kernels"
                        } else {
                            "the kdbs hold the others; with --allow-partial that is no failure"
                        };
                        (REFUSED, Some(format!("{why}; {partial}")))
                    }
                    Outcome::ProblemsFailed { hint, .. } => (REFUSED, Some((*hint).to_owned())),
                    Outcome::Unresolved(_) => (
                        REFUSED,
                        Some("each is named above, with what would resolve it".to_owned()),
                    ),
                    Outcome::ShardRefused { .. } | Outcome::ShardsRefused(_) => (
                        SHARD_REFUSED,
                        Some(
                            "do not run it again: the compiler's words are below `failed` in --out; \
                             `gfxpack merge --allow-partial` makes kdbs without these kernels"
                                .to_owned(),
                        ),
                    ),
                    Outcome::ShardLost { .. } => (
                        INTERNAL,
                        Some(
                            "run the shard again, with more memory or fewer --jobs; what is \
                             compiled is kept"
                                .to_owned(),
                        ),
                    ),
                    Outcome::ShardsMissing { .. } => (
                        INTERNAL,
                        Some(
                            "submit again: only what is missing runs; the logs say what happened"
                                .to_owned(),
                        ),
                    ),
                    Outcome::Partial { .. } => (
                        REFUSED,
                        Some(
                            "manifest.json beside it lists them; --allow-partial packages it all the same"
                                .to_owned(),
                        ),
                    ),
                    Outcome::Unsound(_) => {
                        (UNSOUND, Some("build the file again, or replace it".to_owned()))
                    }
                    Outcome::Unverified { hint, .. } => (UNSOUND, Some(hint.clone())),
                    Outcome::Faulty(_) => {
                        (UNSOUND, Some("each finding above says what is wrong, and where".to_owned()))
                    }
                    Outcome::Differ(_) => (UNSOUND, Some("each is listed above".to_owned())),
                    Outcome::Lost { hint, .. } => (UNSOUND, Some((*hint).to_owned())),
                    Outcome::Defect => {
                        (INTERNAL, Some("please report it with what stands above".to_owned()))
                    }
                    Outcome::NotFound { .. } => (
                        NOT_FOUND,
                        Some(
                            "`gfxpack explain` with the same arguments shows the nearest keys"
                                .to_owned(),
                        ),
                    ),
                    Outcome::NoPackage { given, .. } => {
                        let hint = if *given {
                            "the directory given with --from has none: build it with `gfxpack dist`"
                        } else {
                            "add a repository that has one, give a directory of packages with --from, \
                             or build it with `gfxpack dist`"
                        };
                        (NOT_FOUND, Some(hint.to_owned()))
                    }
                    Outcome::NoGpu => (
                        NOT_FOUND,
                        Some(
                            "`gfxpack doctor` tells why none was found; for another machine's GPU, \
                             have the package manager install its package by name"
                                .to_owned(),
                        ),
                    ),
                    Outcome::Unwell(_) => {
                        (UNSOUND, Some("each problem above says what to do".to_owned()))
                    }
                    Outcome::Damaged(_) => (
                        UNSOUND,
                        Some(
                            "the next build compiles them anew; if it happens again, check the disk"
                                .to_owned(),
                        ),
                    ),
                    Outcome::InUse => (
                        INTERNAL,
                        Some(
                            "run it again when the build is done, or let builds do it with \
                             --cache-size"
                                .to_owned(),
                        ),
                    ),
                    Outcome::Temporary { source, .. } => {
                        let hint = match source.kind() {
                            std::io::ErrorKind::StorageFull => "make room on that disk, or set TMPDIR",
                            _ => "set TMPDIR",
                        };
                        let hint = format!("{hint} to a directory that may be written");
                        (INTERNAL, Some(hint))
                    }
                    Outcome::Io { source, .. } if is_no_such_path(source) => {
                        (USAGE, Some(io_hint(source).to_owned()))
                    }
                    Outcome::Io { source, .. } => (INTERNAL, Some(io_hint(source).to_owned())),
                })
            } else if let Some(error) = cause.downcast_ref::<InputError>() {
                Some((USAGE, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<TargetError>() {
                Some((USAGE, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<CompileError>() {
                let code = match error {
                    CompileError::Interrupted => INTERRUPTED,
                    CompileError::Toolchain(error) => toolchain_code(error),
                    _ => INTERNAL,
                };
                Some((code, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<ToolchainError>() {
                Some((toolchain_code(error), Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<ProblemsError>() {
                let interrupted = matches!(error, ProblemsError::File(HarvestError::Interrupted));
                Some((if interrupted { INTERRUPTED } else { USAGE }, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<NetworkError>() {
                let defect = matches!(error, NetworkError::Table { .. });
                Some((if defect { INTERNAL } else { USAGE }, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<AskError>() {
                let code = match error {
                    AskError::Cancelled => INTERRUPTED,
                    AskError::ComputeUnits(_)
                    | AskError::NoKernelDatabase { .. }
                    | AskError::NoPreload { .. } => USAGE,
                    _ => INTERNAL,
                };
                Some((code, error.hint()))
            } else if let Some(error) = cause.downcast_ref::<LibraryError>() {
                Some((library_code(error), Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<MergeError>() {
                Some((if error.is_usage() { USAGE } else { UNSOUND }, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<ManifestError>() {
                Some((USAGE, Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<StoredError>() {
                Some((USAGE, Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<CopyError>() {
                let code = match error {
                    CopyError::Write(_) => INTERNAL,
                    CopyError::Read(ReadError::Interrupted { .. }) => INTERRUPTED,
                    _ => USAGE,
                };
                Some((code, Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<gfxpack_tuning::MergeError>() {
                let unwritten = matches!(error, gfxpack_tuning::MergeError::Write(_));
                let code = if unwritten { INTERNAL } else { USAGE };
                Some((code, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<gfxpack_tuning::ReadError>() {
                Some((USAGE, Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<WriteError>() {
                Some((INTERNAL, Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<HarvestError>() {
                let code = match error {
                    HarvestError::Interrupted => INTERRUPTED,
                    HarvestError::Temporary { .. } => INTERNAL,
                    _ => USAGE,
                };
                Some((code, Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<ReadError>() {
                let interrupted = matches!(error, ReadError::Interrupted { .. });
                let code = if interrupted { INTERRUPTED } else { USAGE };
                Some((code, Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<FileError>() {
                Some((usage_or_internal(error.is_usage()), Some(error.hint().to_owned())))
            } else if let Some(error) = cause.downcast_ref::<SystemToolError>() {
                Some((usage_or_internal(error.is_usage()), Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<SigningError>() {
                Some((usage_or_internal(error.is_usage()), Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<RepositoryError>() {
                Some((usage_or_internal(error.is_usage()), Some(error.hint())))
            } else if let Some(error) = cause.downcast_ref::<VerifyError>() {
                Some((usage_or_internal(error.is_usage()), Some(error.hint())))
            } else {
                let error = cause.downcast_ref::<gfxpack_package::Error>()?;
                use gfxpack_package::Error as Package;
                let code = match error {
                    // Its cause knows better.
                    Package::Sign(_) => return None,
                    Package::Read { .. } | Package::Write { .. } => INTERNAL,
                    _ => USAGE,
                };
                Some((code, Some(error.hint())))
            }
        })
        .unwrap_or((INTERNAL, None))
}

fn usage_or_internal(is_usage: bool) -> u8 {
    if is_usage { USAGE } else { INTERNAL }
}

/// The exit code where there is no toolchain to go on with.
fn toolchain_code(error: &ToolchainError) -> u8 {
    match error {
        ToolchainError::Interrupted => INTERRUPTED,
        ToolchainError::NoHipcc
        | ToolchainError::NoProgram(_)
        | ToolchainError::NoPreferredHipcc(_)
        | ToolchainError::NoRocm(_)
        | ToolchainError::NoBitcode(_)
        | ToolchainError::NoDeviceLibs
        | ToolchainError::Unbuildable { .. } => USAGE,
        _ => INTERNAL,
    }
}

/// The exit code for a libMIOpen that is not to be had.
fn library_code(error: &LibraryError) -> u8 {
    match error {
        LibraryError::Debian(DebianError::Interrupted) => INTERRUPTED,
        LibraryError::Debian(DebianError::Signature { .. } | DebianError::Digest { .. }) => UNSOUND,
        LibraryError::Debian(
            DebianError::BadMirror { .. }
            | DebianError::NotFound { .. }
            | DebianError::NoPackage { .. }
            | DebianError::Lock { .. },
        ) => USAGE,
        LibraryError::Debian(_) | LibraryError::NoDependency { .. } => INTERNAL,
        _ => USAGE,
    }
}

/// An error with its causes, on a line.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // Some libraries repeat their source in their own message.
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        source = cause.source();
    }
    text
}

/// Tells the error and gives the exit code.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> ExitCode {
    let (code, hint) = classify(error);
    let mut messages = Vec::new();
    if let Some(Outcome::Inputs(errors)) = error.downcast_ref::<Outcome>() {
        messages.extend(errors.iter().map(ToString::to_string));
    } else {
        let mut chain: Vec<String> = Vec::new();
        for cause in error.chain().map(ToString::to_string) {
            // Some libraries repeat their source in their own message.
            if !chain.iter().any(|seen| seen.contains(&cause)) {
                chain.push(cause);
            }
        }
        messages.push(chain.join(": "));
    }
    output.error(&messages, hint.as_deref(), code);
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gfxpack_package::read::{self, Kind};

    use super::*;

    #[test]
    fn a_package_that_is_not_handed_over_comes_with_a_hint() {
        let told = |path: &str| {
            let read = read::check(Path::new(path), Kind::Deb, &mut |_, _| Ok(()));
            classify(&VerifyError::from(read.expect_err("no file")).into())
        };
        let (code, hint) = told("/nowhere/x.deb");
        assert_eq!((code, hint.as_deref()), (USAGE, Some("check the path")));
        let (code, hint) = told("/");
        assert_eq!((code, hint.as_deref()), (INTERNAL, Some("check the path")));
    }

    #[test]
    fn who_could_not_sign_says_what_to_do() {
        let cause = SigningError::FileName { path: "x".into() };
        let error = anyhow::Error::from(gfxpack_package::Error::Sign(cause.into()));
        assert_eq!(classify(&error), (USAGE, Some("use a name in UTF-8".to_owned())));
    }
}
