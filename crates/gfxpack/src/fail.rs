//! What ended a command, and how that is reported: what failed, why, and what
//! to do about it.

use std::process::ExitCode;

use gfxpack_harvest::HarvestError;
use gfxpack_kdb::CopyError;
use gfxpack_miopen::NetworkError;
use gfxpack_package::repository::RepositoryError;
use gfxpack_package::verify::VerifyError;
use gfxpack_pipeline::error::Error;
pub(crate) use gfxpack_pipeline::error::in_full;
use gfxpack_pipeline::exit_code::{
    self, INTERNAL, INTERRUPTED, NOT_FOUND, REFUSED, UNSOUND, USAGE,
};
use gfxpack_plan::shard::ranges;

use crate::args::{Common, MessageFormat};
use crate::output::{Output, counted};

/// The result of a command.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// What ended a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A step of the pipeline failed.
    #[error(transparent)]
    Pipeline(Error),
    /// Layers of models whose problems are not known.
    #[error("failed to resolve {}", counted(*.0, "layer"))]
    Unresolved(usize),
    /// All shards are done, and some kernels could not be compiled.
    #[error("failed to compile {}; all shards are done", counted(*.0, "kernel"))]
    ShardsRefused(usize),
    /// Nothing runs any more, and shards are missing.
    #[error("failed to finish {} of {count} shards: {}", .missing.len(), ranges(.missing))]
    ShardsMissing { missing: Vec<u32>, count: u32 },
    /// Verification found something, and it is known what helps.
    #[error("failed to verify {what}")]
    Unverified { what: String, hint: String },
    /// Something is wrong in performance or find databases.
    #[error("failed to verify {0}")]
    Faulty(String),
    /// Two kdbs differ, and the user wanted to know.
    #[error("the kdbs differ: {}", counted(*.0, "difference"))]
    Differ(u64),
    /// A repair could not save all rows.
    #[error("failed to save {what} of `{file}`")]
    Lost { file: String, what: String, hint: &'static str },
    /// A panic, which has reported itself already.
    #[error("failed because of a defect in gfxpack")]
    Defect,
    /// No file has the kernel that was looked up.
    #[error("failed to find {key} for {target}")]
    NotFound {
        /// Name and arguments, in words.
        key: String,
        target: String,
        /// Whether an installed kdb has it that MIOpen does not open.
        hidden: bool,
    },
    /// The machine is not as it should be.
    #[error("found {} on this machine", counted(*.0, "problem"))]
    Unwell(usize),
    /// No package of kernels was found for this machine.
    #[error("failed to find a package for {targets}")]
    NoPackage {
        targets: String,
        /// Whether a directory of packages was given.
        given: bool,
    },
    /// No GPU was found that packages could be for.
    #[error("failed to find an AMD GPU in this machine")]
    NoGpu,
    /// Objects of the cache were damaged.
    #[error("failed to verify the cache: {} were damaged, and are removed", counted(*.0, "object"))]
    Damaged(usize),
    /// The cache is in use.
    #[error("failed to evict from the cache: a build is using it")]
    InUse,
    /// A network is not known or its table is wrong.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Logs or databases could not be read.
    #[error(transparent)]
    Harvest(#[from] HarvestError),
    /// kdbs could not be copied or merged.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A repository could not be made.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// Packages or repositories could not be looked at.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Tuning databases could not be merged.
    #[error(transparent)]
    TuningMerge(#[from] gfxpack_tuning::MergeError),
    /// The pins of Debian's packages could not be written.
    #[error(transparent)]
    Debian(#[from] gfxpack_debian::DebianError),
    /// A libMIOpen is no library that can be read.
    #[error(transparent)]
    Elf(#[from] gfxpack_miopen::ElfError),
    /// A process of our own said what is no problem.
    #[error(transparent)]
    Problem(#[from] gfxpack_miopen::ProblemError),
    /// Signals could not be handled.
    #[error("failed to handle signals")]
    Signals(#[from] ctrlc::Error),
}

/// What the pipeline knows fails here as it fails there.
macro_rules! from_pipeline {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Pipeline(error.into())
            }
        })*
    };
}

from_pipeline!(
    Error,
    gfxpack_compile::CompileError,
    gfxpack_compile::ManifestError,
    gfxpack_kdb::ReadError,
    gfxpack_kdb::WriteError,
    gfxpack_miopen::AskError,
    gfxpack_miopen::LibraryError,
    gfxpack_miopen::ProblemsError,
    gfxpack_package::Error,
    gfxpack_package::signing::SigningError,
    gfxpack_plan::InputError,
    gfxpack_process::SystemToolError,
    gfxpack_process::FileError,
    gfxpack_toolchain::ToolchainError,
    gfxpack_tuning::ReadError,
    serde_json::Error,
    gfxpack_miopen::SourcesError,
);

/// An error in the command line or an input.
pub(crate) fn usage(message: impl ToString, hint: impl ToString) -> Failure {
    gfxpack_pipeline::error::usage(message, hint).into()
}

/// A file that could not be read or written.
pub(crate) fn io(
    action: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> Failure {
    let error = gfxpack_pipeline::error::io(action, path);
    move |source| error(source).into()
}

/// What clap says of a command line, or the help that was asked for.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let json = arguments.iter().any(|argument| argument == "--message-format=json")
        || arguments.windows(2).any(|pair| pair == ["--message-format", "json"]);
    if error.use_stderr() && json {
        let message = error.to_string().trim_start_matches("error: ").trim().to_owned();
        let common = Common { message_format: MessageFormat::Json, ..Common::default() };
        Output::new(&common).error(&[message], Some("see --help"), USAGE);
    } else {
        error.print().ok();
    }
    ExitCode::from(if error.use_stderr() { USAGE } else { exit_code::SUCCESS })
}

impl Failure {
    /// The exit code.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Pipeline(error) => error.kind().exit_code(),
            Self::Unresolved(_) => REFUSED,
            Self::ShardsRefused(_) => exit_code::SHARD_REFUSED,
            Self::NotFound { .. } | Self::NoPackage { .. } | Self::NoGpu => NOT_FOUND,
            Self::Unverified { .. }
            | Self::Faulty(_)
            | Self::Differ(_)
            | Self::Lost { .. }
            | Self::Unwell(_)
            | Self::Damaged(_) => UNSOUND,
            Self::Network(NetworkError::Table { .. })
            | Self::Harvest(HarvestError::Temporary { .. })
            | Self::Copy(CopyError::Write(_))
            | Self::TuningMerge(gfxpack_tuning::MergeError::Write(_))
            | Self::ShardsMissing { .. }
            | Self::Defect
            | Self::InUse
            | Self::Debian(_)
            | Self::Elf(_)
            | Self::Problem(_)
            | Self::Signals(_) => INTERNAL,
            Self::Harvest(HarvestError::Interrupted)
            | Self::Copy(CopyError::Read(gfxpack_kdb::ReadError::Interrupted { .. })) => {
                INTERRUPTED
            }
            Self::Repository(error) if !error.is_usage() => INTERNAL,
            Self::Verify(error) if !error.is_usage() => INTERNAL,
            Self::Network(_)
            | Self::Harvest(_)
            | Self::Copy(_)
            | Self::TuningMerge(_)
            | Self::Repository(_)
            | Self::Verify(_) => USAGE,
        }
    }

    /// What the user can do about it.
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Pipeline(error) => return error.hint(),
            Self::Unverified { hint, .. } => hint.clone(),
            Self::Network(error) => error.hint(),
            Self::Harvest(error) => error.hint().to_owned(),
            Self::Copy(error) => error.hint().to_owned(),
            Self::TuningMerge(error) => error.hint(),
            Self::Repository(error) => error.hint(),
            Self::Verify(error) => error.hint(),
            Self::Debian(_) | Self::Elf(_) | Self::Problem(_) | Self::Signals(_) => return None,
            other => other.fixed_hint()?.to_owned(),
        })
    }

    /// The hint of an outcome that always has the same.
    fn fixed_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unresolved(_) => "each is named above, with what would resolve it",
            Self::ShardsRefused(_) => gfxpack_pipeline::error::SHARD_REFUSED_HINT,
            Self::ShardsMissing { .. } => {
                "submit again: only what is missing runs; the logs say what happened"
            }
            Self::Faulty(_) => "each finding above says what is wrong, and where",
            Self::Differ(_) => "each is listed above",
            Self::Lost { hint, .. } => hint,
            Self::Defect => "please report it with the output above",
            Self::NotFound { hidden: true, .. } => {
                "`gfxpack doctor` counts what the smaller kdb hides; --for runtime asks for programs \
                 with gfxpack's runtime"
            }
            Self::NotFound { .. } => {
                "`gfxpack explain` with the same arguments shows the nearest keys"
            }
            Self::NoPackage { given: true, .. } => {
                "the directory given with --from has none: build it with `gfxpack dist`"
            }
            Self::NoPackage { .. } => {
                "add a repository that has one, give a directory of packages with --from, \
                 or build it with `gfxpack dist`"
            }
            Self::NoGpu => {
                "`gfxpack doctor` tells why none was found; for another machine's GPU, \
                 have the package manager install its package by name"
            }
            Self::Unwell(_) => "each problem above says what to do",
            Self::Damaged(_) => {
                "the next build compiles them anew; if it happens again, check the disk"
            }
            Self::InUse => {
                "run it again when the build is done, or let builds do it with --cache-size"
            }
            _ => return None,
        })
    }
}

/// Reports the failure and gives the exit code.
pub(crate) fn report(failure: &Failure, output: &Output) -> ExitCode {
    let code = failure.exit_code();
    let messages = match failure {
        Failure::Pipeline(Error::Inputs(errors)) => {
            errors.iter().map(ToString::to_string).collect()
        }
        other => vec![in_full(other)],
    };
    output.error(&messages, failure.hint().as_deref(), code);
    ExitCode::from(code)
}
