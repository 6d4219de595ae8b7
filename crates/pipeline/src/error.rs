//! What ends a run, what the user can do about it, and whose fault it is.

use std::fmt::Display;
use std::io;
use std::path::Path;

use gfxpack_compile::CompileError;
use gfxpack_debian::DebianError;
use gfxpack_harvest::HarvestError;
use gfxpack_kdb::{CopyError, ReadError, WriteError};
use gfxpack_miopen::{AskError, LibraryError, NetworkError, ProblemsError, SourcesError};
use gfxpack_package::repository::RepositoryError;
use gfxpack_package::signing::SigningError;
use gfxpack_package::verify::VerifyError;
use gfxpack_plan::InputError;
use gfxpack_plan::stored::{StoredError, WriteError as PlanWriteError};
use gfxpack_process::{FileError, io_hint};
use gfxpack_toolchain::ToolchainError;

use crate::text::counted;

/// The result of a step of the pipeline.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Whose fault an error is; the numbers are exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ErrorKind {
    /// gfxpack or the machine failed.
    Internal = 1,
    /// The command line or an input is wrong.
    Usage = 2,
    /// There is no such kernel, no package, or no GPU.
    NotFound = 3,
    /// A shard is done, and has kernels that could not be compiled: running it
    /// again gives the same.
    ShardIncomplete = 42,
    /// Not all that was asked for could be made: kernels are missing that could not
    /// be compiled or found, MIOpen failed on problems, or layers of a model are not
    /// resolved.
    Incomplete = 100,
    /// A file or the cache did not pass verification, `kdb repair` lost rows, two
    /// kdbs differ, or something is wrong on this machine.
    Unsound = 101,
    /// The run was stopped by a signal.
    Interrupted = 130,
}

/// What ended a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What the pipeline or a command found out itself.
    #[error("{message}")]
    Message {
        /// Whose fault it is.
        kind: ErrorKind,
        /// What is wrong.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// Several things are wrong in the input.
    #[error("failed to accept the input: {}", counted(.0.len(), "error"))]
    Inputs(Vec<InputError>),
    /// Lists of FFT plans could not be read.
    #[error(transparent)]
    FftPlans(#[from] gfxpack_rocfft::ListError),
    /// rocFFT could not be asked.
    #[error(transparent)]
    RocfftAsk(#[from] gfxpack_rocfft::AskError),
    /// rocFFT's kernel cache could not be read.
    #[error(transparent)]
    RocfftRead(#[from] gfxpack_rocfft::ReadError),
    /// rocFFT's kernel cache could not be written.
    #[error(transparent)]
    RocfftWrite(#[from] gfxpack_rocfft::WriteError),
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
    /// Facts could not be written as JSON.
    #[error("failed to write JSON")]
    Json(#[from] serde_json::Error),
}

/// An error in the command line or an input.
pub fn usage(message: impl ToString, hint: impl ToString) -> Error {
    Error::new(ErrorKind::Usage, message, hint)
}

/// A file that did not pass verification.
pub fn unsound(what: impl Display) -> Error {
    let hint = "build the file again, or replace it";
    Error::new(ErrorKind::Unsound, format!("failed to verify {what}"), hint)
}

/// Kernels that could not be compiled or found, although the user did not allow
/// that; `reasons` says where the reasons are reported. No package was made if
/// `packages` were to be.
pub fn incomplete(failed: usize, total: usize, reasons: &str, packages: bool) -> Error {
    let no_package = if packages { "; no package was made" } else { "" };
    let hint = match packages {
        _ if failed == total => reasons.to_owned(),
        true => format!("{reasons}; --allow-partial makes packages without these kernels"),
        false => {
            format!("{reasons}; the kdbs hold the others; with --allow-partial that is no failure")
        }
    };
    let message = format!("failed to build {failed} of {}{no_package}", counted(total, "kernel"));
    Error::new(ErrorKind::Incomplete, message, hint)
}

/// Makes sure that a library could be asked for all problems or plans; `total`
/// is how many there are, in words.
pub(crate) fn all_asked(failed: usize, total: &str, hint: &str) -> Result {
    if failed == 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Incomplete, format!("failed to ask for {failed} of {total}"), hint))
}

/// A panic, which has reported itself already.
pub fn defect() -> Error {
    let hint = "please report it with the output above";
    Error::new(ErrorKind::Internal, "failed because of a defect in gfxpack", hint)
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
    /// An error that is told in these words.
    pub fn new(kind: ErrorKind, message: impl ToString, hint: impl ToString) -> Self {
        Self::Message { kind, message: message.to_string(), hint: Some(hint.to_string()) }
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.judge().0
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        self.judge().1
    }

    /// Whose fault it is, and what the user can do about it.
    fn judge(&self) -> (ErrorKind, Option<String>) {
        use ErrorKind::{Internal, Usage};

        fn with(kind: ErrorKind, hint: impl ToString) -> (ErrorKind, Option<String>) {
            (kind, Some(hint.to_string()))
        }

        let usage_if = |is_usage| if is_usage { Usage } else { Internal };
        match self {
            Self::Message { kind, hint, .. } => (*kind, hint.clone()),
            Self::Inputs(errors) => (Usage, errors.first().map(InputError::hint)),
            Self::Input(error) => with(Usage, error.hint()),
            Self::Stored(error) => with(Usage, error.hint()),
            Self::Tuning(error) => with(Usage, error.hint()),
            Self::FftPlans(error) => with(Usage, error.hint()),
            Self::RocfftRead(error) => with(Usage, error.hint()),
            Self::RocfftWrite(error) => with(Internal, error.hint()),
            Self::RocfftAsk(error) => (rocfft_ask_kind(error), error.hint().map(str::to_owned)),
            Self::Network(error) => with(Usage, error.hint()),
            Self::Harvest(error) => with(harvest_kind(error), error.hint()),
            Self::KdbCopy(error) => with(copy_kind(error), error.hint()),
            Self::KdbRead(error) => with(read_kind(error), error.hint()),
            Self::KdbWrite(error) => with(Internal, error.hint()),
            Self::TuningMerge(error) => with(tuning_merge_kind(error), error.hint()),
            Self::Repository(error) => with(usage_if(error.is_usage()), error.hint()),
            Self::Verify(error) => with(usage_if(error.is_usage()), error.hint()),
            Self::File(error) => with(usage_if(error.is_usage()), error.hint()),
            Self::Signing(error) => with(usage_if(error.is_usage()), error.hint()),
            Self::Tool(error) => with(usage_if(error.is_usage()), error.hint()),
            Self::Compile(error) => with(compile_kind(error), error.hint()),
            Self::Toolchain(error) => with(toolchain_kind(error), error.hint()),
            Self::Problems(error) => with(problems_kind(error), error.hint()),
            Self::Ask(error) => (ask_kind(error), error.hint()),
            Self::Library(error) => with(library_kind(error), error.hint()),
            Self::Package(error) => {
                let hint = signing_error(error).map_or(error.hint(), SigningError::hint);
                with(package_kind(error), hint)
            }
            Self::Keyring(_) => with(Internal, "please report it: the keys are a part of gfxpack"),
            Self::Sources(SourcesError::Write { source, .. }) => with(Internal, io_hint(source)),
            Self::Sources(_) | Self::Elf(_) => with(
                Internal,
                "check that the libMIOpen is undamaged and may be read, or fetch it again",
            ),
            Self::PlanWrite(PlanWriteError::Input(error)) => with(Internal, error.hint()),
            Self::PlanWrite(PlanWriteError::Io(source)) => with(Internal, io_hint(source)),
            Self::Script(_) => {
                with(Internal, "a shell script can't hold a NUL byte: take it out of the options")
            }
            Self::Debian(error) => with(Internal, error.hint()),
            Self::Problem(error) => with(Internal, error.hint()),
            Self::PlanWrite(_) | Self::Json(_) => (Internal, None),
        }
    }
}

/// What to do about shards with jobs that failed.
pub const SHARD_INCOMPLETE_HINT: &str = "do not run it again: the compiler's output is below `failed` in --out; \
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

fn rocfft_ask_kind(error: &gfxpack_rocfft::AskError) -> ErrorKind {
    match error {
        gfxpack_rocfft::AskError::Cancelled => ErrorKind::Interrupted,
        _ => ErrorKind::Internal,
    }
}

fn tuning_merge_kind(error: &gfxpack_tuning::MergeError) -> ErrorKind {
    match error {
        gfxpack_tuning::MergeError::Write(_) => ErrorKind::Internal,
        _ => ErrorKind::Usage,
    }
}

fn problems_kind(error: &ProblemsError) -> ErrorKind {
    match error {
        ProblemsError::File(HarvestError::Interrupted) => ErrorKind::Interrupted,
        _ => ErrorKind::Usage,
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

fn read_kind(error: &ReadError) -> ErrorKind {
    match error {
        ReadError::Interrupted { .. } => ErrorKind::Interrupted,
        _ => ErrorKind::Usage,
    }
}

fn copy_kind(error: &CopyError) -> ErrorKind {
    match error {
        CopyError::Write(_) => ErrorKind::Internal,
        CopyError::Read(error) => read_kind(error),
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
