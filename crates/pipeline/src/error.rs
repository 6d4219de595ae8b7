//! What ends a run, what the user can do about it, and whose fault it is.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_compile::{CompileError, ManifestError};
use gfxpack_debian::DebianError;
use gfxpack_harvest::HarvestError;
use gfxpack_kdb::{CopyError, ReadError, WriteError};
use gfxpack_miopen::{AskError, LibraryError, NetworkError, ProblemsError, SourcesError};
use gfxpack_model::KernelKey;
use gfxpack_package::repository::RepositoryError;
use gfxpack_package::signing::SigningError;
use gfxpack_package::verify::VerifyError;
use gfxpack_plan::InputError;
use gfxpack_plan::shard::Shard;
use gfxpack_plan::stored::{StoredError, WriteError as PlanWriteError};
use gfxpack_process::{FileError, io_hint};
use gfxpack_toolchain::ToolchainError;

use crate::merge_error::MergeError;
use crate::text::{counted, key_in_words};

/// The result of a step of the pipeline.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whose fault an error is, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The command line or an input is wrong.
    Usage,
    /// A file does not have the kernel that was asked for.
    NotFound,
    /// Kernels are missing that could not be compiled or found, or MIOpen failed on
    /// problems.
    Refused,
    /// A shard is done, and has kernels that could not be compiled.
    ShardRefused,
    /// A file did not pass verification.
    Unsound,
    /// The run was stopped.
    Interrupted,
    /// gfxpack or the machine failed.
    Internal,
}

/// What ended a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line or an input is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What the user can do about it.
        hint: String,
    },
    /// A kdb does not have the key that was asked for.
    #[error("failed to find {} in `{}`", key_in_words(.key), .file.display())]
    NoSuchKernel {
        /// The key.
        key: Box<KernelKey>,
        /// The kdb.
        file: PathBuf,
    },
    /// Several things are wrong in the input.
    #[error("failed to accept the input: {}", counted(.0.len(), "error"))]
    Inputs(Vec<InputError>),
    /// Kernels could not be compiled or found, and the user did not allow that.
    #[error("failed to build {failed} of {}{}", counted(*total, "kernel"), if *packages { "; no package was made" } else { "" })]
    Refused {
        /// Kernels without an object.
        failed: usize,
        /// Kernels in all.
        total: usize,
        /// Where the reasons are reported.
        reasons: &'static str,
        /// Whether packages were to be made.
        packages: bool,
    },
    /// MIOpen failed on problems, which may want kernels that nobody knows.
    #[error("failed to ask for {failed} of {}", counted(*total, "problem"))]
    ProblemsFailed {
        /// Problems without an answer.
        failed: usize,
        /// Problems in all.
        total: usize,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// rocFFT does not create plans.
    #[error("failed to ask for {failed} of {}", counted(*total, "plan"))]
    PlansFailed {
        /// Plans that are not created.
        failed: usize,
        /// Plans in all.
        total: usize,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// Lists of plans could not be read.
    #[error(transparent)]
    Plans(#[from] gfxpack_rocfft::PlansError),
    /// A log of rocFFT's that can't be read.
    #[error(transparent)]
    RocfftLog(#[from] gfxpack_rocfft::LogError),
    /// rocFFT could not be asked.
    #[error(transparent)]
    RocfftAsk(#[from] gfxpack_rocfft::AskError),
    /// rocFFT's kernel cache could not be read.
    #[error(transparent)]
    RocfftRead(#[from] gfxpack_rocfft::ReadError),
    /// rocFFT's kernel cache could not be written.
    #[error(transparent)]
    RocfftWrite(#[from] gfxpack_rocfft::WriteError),
    /// A shard is done, and has kernels that could not be compiled.
    #[error("failed to compile {failed} of {} of shard {shard}", counted(*total, "kernel"))]
    ShardRefused {
        /// The shard.
        shard: Shard,
        /// Kernels without an object.
        failed: usize,
        /// Its kernels in all.
        total: usize,
    },
    /// The machine failed some of a shard's jobs.
    #[error("failed to run {} of shard {shard}: their compilers were killed", counted(*lost, "job"))]
    ShardLost {
        /// The shard.
        shard: Shard,
        /// Jobs that have to run again.
        lost: usize,
    },
    /// A kdb is known to lack kernels, and the user did not allow that.
    #[error("failed to package `{file}`: it lacks {}", counted(*missing, "kernel"))]
    Partial {
        /// The kdb.
        file: String,
        /// Kernels that it lacks.
        missing: usize,
    },
    /// A kdb is damaged.
    #[error("failed to verify {0}")]
    Unsound(String),
    /// Verification found something, and it is known what helps.
    #[error("failed to verify {what}")]
    Unverified {
        /// What did not pass.
        what: String,
        /// What the user can do about it.
        hint: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An input is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Compiling failed as a whole.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// No toolchain, or one that fails.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// Lists of problems could not be read.
    #[error(transparent)]
    Problems(#[from] ProblemsError),
    /// MIOpen could not be asked.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// No libMIOpen to ask.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The keys of Debian's archive are wrong.
    #[error(transparent)]
    Keyring(#[from] gfxpack_debian::SignatureError),
    /// The library's sources could not be read or written.
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// A plan could not be stored.
    #[error(transparent)]
    PlanWrite(#[from] PlanWriteError),
    /// Shards do not fit together.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A shard's manifest is wrong.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A stored plan is wrong.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// A kdb could not be read.
    #[error(transparent)]
    KdbRead(#[from] ReadError),
    /// A kdb could not be written.
    #[error(transparent)]
    KdbWrite(#[from] WriteError),
    /// A tuning database could not be read.
    #[error(transparent)]
    Tuning(#[from] gfxpack_tuning::ReadError),
    /// A package could not be made.
    #[error(transparent)]
    Package(#[from] gfxpack_package::Error),
    /// Nothing could be signed.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// A program of the system failed.
    #[error(transparent)]
    Tool(#[from] gfxpack_process::SystemToolError),
    /// A network is not known, or its table is wrong.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Logs or databases could not be read.
    #[error(transparent)]
    Harvest(#[from] HarvestError),
    /// kdbs could not be copied or merged.
    #[error(transparent)]
    KdbCopy(#[from] CopyError),
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
    Debian(#[from] DebianError),
    /// A libMIOpen is no library that can be read.
    #[error(transparent)]
    Elf(#[from] gfxpack_miopen::ElfError),
    /// A process of our own said what is no problem.
    #[error(transparent)]
    Problem(#[from] gfxpack_miopen::ProblemError),
    /// A path has a character that no script can hold.
    #[error("failed to write an argument into a script")]
    Script(#[from] shlex::QuoteError),
    /// A panic, which has reported itself already.
    #[error("failed because of a defect in gfxpack")]
    Defect,
    /// Facts could not be written as JSON.
    #[error("failed to write JSON")]
    Json(#[from] serde_json::Error),
}

/// An error in the command line or an input.
pub fn usage(message: impl ToString, hint: impl ToString) -> Error {
    Error::Usage { message: message.to_string(), hint: hint.to_string() }
}

/// A file that could not be read or written; `action` is a verb.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let error = FileError::io(action, path);
    move |source| error(source).into()
}

/// An error with its causes, on one line.
pub fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some libraries repeat their source in their own message.
        if !text.contains(&cause_text) {
            text.push_str(&format!(": {cause_text}"));
        }
        source = cause.source();
    }
    text
}

impl Error {
    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage { .. }
            | Self::Inputs(_)
            | Self::Input(_)
            | Self::Manifest(_)
            | Self::Stored(_)
            | Self::Tuning(_) => ErrorKind::Usage,
            Self::NoSuchKernel { .. } => ErrorKind::NotFound,
            Self::Network(_) => ErrorKind::Usage,
            Self::Harvest(error) => harvest_kind(error),
            Self::KdbCopy(error) => copy_kind(error),
            Self::TuningMerge(gfxpack_tuning::MergeError::Write(_)) => ErrorKind::Internal,
            Self::TuningMerge(_) => ErrorKind::Usage,
            Self::Repository(error) if error.is_usage() => ErrorKind::Usage,
            Self::Verify(error) if error.is_usage() => ErrorKind::Usage,
            Self::Refused { .. }
            | Self::ProblemsFailed { .. }
            | Self::PlansFailed { .. }
            | Self::Partial { .. } => ErrorKind::Refused,
            Self::RocfftAsk(gfxpack_rocfft::AskError::Cancelled) => ErrorKind::Interrupted,
            Self::RocfftAsk(_) | Self::RocfftWrite(_) => ErrorKind::Internal,
            Self::Plans(_) | Self::RocfftLog(_) | Self::RocfftRead(_) => ErrorKind::Usage,
            Self::ShardRefused { .. } => ErrorKind::ShardRefused,
            Self::Unsound(_) | Self::Unverified { .. } => ErrorKind::Unsound,
            Self::File(error) if error.is_usage() => ErrorKind::Usage,
            Self::ShardLost { .. }
            | Self::File(_)
            | Self::KdbWrite(_)
            | Self::Keyring(_)
            | Self::Sources(_)
            | Self::PlanWrite(_)
            | Self::Script(_)
            | Self::Repository(_)
            | Self::Verify(_)
            | Self::Debian(_)
            | Self::Elf(_)
            | Self::Problem(_)
            | Self::Defect
            | Self::Json(_) => ErrorKind::Internal,
            Self::Compile(error) => compile_kind(error),
            Self::Toolchain(error) => toolchain_kind(error),
            Self::Problems(ProblemsError::File(HarvestError::Interrupted)) => {
                ErrorKind::Interrupted
            }
            Self::Problems(_) => ErrorKind::Usage,
            Self::Ask(error) => ask_kind(error),
            Self::Library(error) => library_kind(error),
            Self::Merge(error) if error.is_usage() => ErrorKind::Usage,
            Self::Merge(_) => ErrorKind::Unsound,
            Self::KdbRead(ReadError::Interrupted { .. }) => ErrorKind::Interrupted,
            Self::KdbRead(_) => ErrorKind::Usage,
            Self::Package(error) => package_kind(error),
            Self::Signing(error) if error.is_usage() => ErrorKind::Usage,
            Self::Tool(error) if error.is_usage() => ErrorKind::Usage,
            Self::Signing(_) | Self::Tool(_) => ErrorKind::Internal,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Usage { hint, .. } | Self::Unverified { hint, .. } => hint.clone(),
            Self::NoSuchKernel { .. } => NO_SUCH_KERNEL_HINT.to_owned(),
            Self::Inputs(errors) => errors.first()?.hint(),
            Self::Refused { failed, total, reasons, .. } if failed == total => {
                (*reasons).to_owned()
            }
            Self::Refused { reasons, packages: true, .. } => {
                format!("{reasons}; --allow-partial makes packages without these kernels")
            }
            Self::Refused { reasons, .. } => format!(
                "{reasons}; the kdbs hold the others; with --allow-partial that is no failure"
            ),
            Self::ProblemsFailed { hint, .. } | Self::PlansFailed { hint, .. } => {
                (*hint).to_owned()
            }
            Self::Plans(error) => error.hint().to_owned(),
            Self::RocfftLog(error) => error.hint().to_owned(),
            Self::RocfftAsk(error) => return error.hint().map(str::to_owned),
            Self::RocfftRead(error) => error.hint().to_owned(),
            Self::RocfftWrite(error) => error.hint().to_owned(),
            Self::ShardRefused { .. } => SHARD_REFUSED_HINT.to_owned(),
            Self::ShardLost { .. } => {
                "run the shard again, with more memory or fewer --jobs; what is compiled is kept"
                    .to_owned()
            }
            Self::Partial { .. } => {
                "manifest.json beside it lists them; --allow-partial packages it all the same"
                    .to_owned()
            }
            Self::Unsound(_) => "build the file again, or replace it".to_owned(),
            Self::File(error) => error.hint().to_owned(),
            Self::Input(error) => error.hint(),
            Self::Compile(error) => error.hint(),
            Self::Toolchain(error) => error.hint(),
            Self::Problems(error) => error.hint(),
            Self::Ask(error) => return error.hint(),
            Self::Library(error) => error.hint().to_owned(),
            Self::Merge(error) => error.hint(),
            Self::Manifest(error) => error.hint().to_owned(),
            Self::Stored(error) => error.hint().to_owned(),
            Self::KdbRead(error) => error.hint().to_owned(),
            Self::KdbWrite(error) => error.hint().to_owned(),
            Self::Tuning(error) => error.hint(),
            Self::Package(error) => signing_error(error).map_or(error.hint(), SigningError::hint),
            Self::Signing(error) => error.hint(),
            Self::Tool(error) => error.hint(),
            Self::Defect => "please report it with the output above".to_owned(),
            Self::Network(error) => error.hint(),
            Self::Harvest(error) => error.hint().to_owned(),
            Self::KdbCopy(error) => error.hint().to_owned(),
            Self::TuningMerge(error) => error.hint(),
            Self::Repository(error) => error.hint(),
            Self::Verify(error) => error.hint(),
            Self::Keyring(_) => "please report it: the keys are a part of gfxpack".to_owned(),
            Self::Sources(SourcesError::Write { source, .. }) => io_hint(source).to_owned(),
            Self::Sources(_) | Self::Elf(_) => {
                "check that the libMIOpen is undamaged and may be read, or fetch it again"
                    .to_owned()
            }
            Self::PlanWrite(PlanWriteError::Input(error)) => error.hint(),
            Self::PlanWrite(PlanWriteError::Io(source)) => io_hint(source).to_owned(),
            Self::Script(_) => {
                "a shell script can't hold a NUL byte: take it out of the options".to_owned()
            }
            Self::Debian(error) => error.hint().to_owned(),
            Self::Problem(error) => error.hint().to_owned(),
            Self::PlanWrite(_) | Self::Json(_) => return None,
        };
        Some(hint)
    }
}

/// What to do about a key that a kdb does not have.
const NO_SUCH_KERNEL_HINT: &str = "keys are compared byte for byte, leading blanks and ` -mcpu=` \
     included; `gfxpack kdb list --filter TEXT` shows them";

/// What to do about shards that have refused kernels.
pub const SHARD_REFUSED_HINT: &str = "do not run it again: the compiler's output is below `failed` in --out; \
     `gfxpack merge --allow-partial` makes kdbs without these kernels";

fn compile_kind(error: &CompileError) -> ErrorKind {
    match error {
        CompileError::Interrupted => ErrorKind::Interrupted,
        CompileError::Toolchain(error) => toolchain_kind(error),
        _ => ErrorKind::Internal,
    }
}

fn toolchain_kind(error: &ToolchainError) -> ErrorKind {
    match error {
        ToolchainError::Interrupted => ErrorKind::Interrupted,
        ToolchainError::NoHipcc
        | ToolchainError::NoProgram(_)
        | ToolchainError::NoPreferredHipcc(_)
        | ToolchainError::NoRocm(_)
        | ToolchainError::NoBitcode(_)
        | ToolchainError::NoDeviceLibs
        | ToolchainError::Unbuildable { .. } => ErrorKind::Usage,
        _ => ErrorKind::Internal,
    }
}

fn ask_kind(error: &AskError) -> ErrorKind {
    match error {
        AskError::Cancelled => ErrorKind::Interrupted,
        AskError::ComputeUnits(_)
        | AskError::NoKernelDatabase { .. }
        | AskError::NoPreload { .. } => ErrorKind::Usage,
        _ => ErrorKind::Internal,
    }
}

fn library_kind(error: &LibraryError) -> ErrorKind {
    match error {
        LibraryError::Debian(DebianError::Interrupted) => ErrorKind::Interrupted,
        LibraryError::Debian(DebianError::Signature { .. } | DebianError::Digest { .. }) => {
            ErrorKind::Unsound
        }
        LibraryError::Debian(
            DebianError::BadMirror { .. }
            | DebianError::NotFound { .. }
            | DebianError::NoPackage { .. }
            | DebianError::Lock { .. },
        ) => ErrorKind::Usage,
        LibraryError::Debian(_) | LibraryError::NoDependency { .. } => ErrorKind::Internal,
        _ => ErrorKind::Usage,
    }
}

fn harvest_kind(error: &HarvestError) -> ErrorKind {
    match error {
        HarvestError::Temporary { .. } => ErrorKind::Internal,
        HarvestError::Interrupted => ErrorKind::Interrupted,
        _ => ErrorKind::Usage,
    }
}

fn copy_kind(error: &CopyError) -> ErrorKind {
    match error {
        CopyError::Write(_) => ErrorKind::Internal,
        CopyError::Read(ReadError::Interrupted { .. }) => ErrorKind::Interrupted,
        _ => ErrorKind::Usage,
    }
}

/// What the signer said where a package could not be signed.
fn signing_error(error: &gfxpack_package::Error) -> Option<&SigningError> {
    match error {
        gfxpack_package::Error::Sign(cause) => cause.downcast_ref(),
        _ => None,
    }
}

fn package_kind(error: &gfxpack_package::Error) -> ErrorKind {
    use gfxpack_package::Error as Package;
    match error {
        Package::Sign(_) if signing_error(error).is_some_and(SigningError::is_usage) => {
            ErrorKind::Usage
        }
        Package::Sign(_) | Package::Read { .. } | Package::Write { .. } => ErrorKind::Internal,
        _ => ErrorKind::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_could_not_be_signed_fails_as_the_signer_did() {
        let cause = SigningError::Passphrase {
            fingerprint: "363682E7".to_owned(),
            why: "Inappropriate ioctl for device".to_owned(),
        };
        let hint = cause.hint();
        let error = Error::from(gfxpack_package::Error::Sign(Box::new(cause)));
        assert_eq!((error.kind(), error.hint()), (ErrorKind::Usage, Some(hint)));
    }
}
