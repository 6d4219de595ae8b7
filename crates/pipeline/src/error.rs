//! The errors that end a run, what the user can do about them, and whose fault
//! they are.

use std::fmt::Display;
use std::io;
use std::path::Path;

use gfxpack_compile::CompileError;
use gfxpack_debian::DebianError;
use gfxpack_harvest::HarvestError;
use gfxpack_kdb::{CopyError, ReadError, WriteError};
use gfxpack_miopen::{
    AskError, ElfError, LibraryError, NetworkError, ProblemError, ProblemsError, SourcesError,
};
pub use gfxpack_model::in_full;
use gfxpack_package::repository::RepositoryError;
use gfxpack_package::signing::SigningError;
use gfxpack_package::verify::VerifyError;
use gfxpack_plan::InputError;
use gfxpack_plan::stored::{StoredError, WriteError as PlanWriteError};
use gfxpack_process::{FileError, SystemToolError, io_hint};
use gfxpack_toolchain::ToolchainError;

use self::ErrorKind::{Internal, Interrupted, Usage};
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
    /// A shard is done, but some kernels could not be compiled. Running it again
    /// gives the same result.
    ShardIncomplete = 42,
    /// Not all that was asked for could be made: kernels are missing that could not
    /// be compiled or found, or MIOpen failed on problems.
    Incomplete = 100,
    /// A file or the cache did not pass verification, two
    /// kdbs differ, or something is wrong on this machine.
    Unsound = 101,
    /// The run was stopped by a signal.
    Interrupted = 130,
}

/// An error that ends a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the pipeline or a command itself.
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
    /// Compiling failed as a whole.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// No toolchain, or one that fails.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// An error of another crate, with its kind and hint.
    #[error("{error}")]
    Other {
        /// Whose fault it is.
        kind: ErrorKind,
        /// What the user can do about it.
        hint: Option<String>,
        /// What is wrong, with its causes.
        #[source]
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Whose fault an error is, and what the user can do about it.
type ErrorKindAndHint = (ErrorKind, Option<String>);

/// An error in the command line or an input.
pub fn usage(message: impl ToString, hint: impl ToString) -> Error {
    Error::new(ErrorKind::Usage, message, hint)
}

/// The error for a file that did not pass verification.
pub fn unsound(what: impl Display) -> Error {
    let hint = "build the file again, or replace it";
    Error::new(ErrorKind::Unsound, format!("failed to verify {what}"), hint)
}

/// The error for kernels that could not be compiled or found, although none may
/// be missing. `reasons` says where to find the reasons. `packages` says that
/// packages were to be made; none were.
pub fn incomplete(failed: usize, total: usize, reasons: &str, packages: bool) -> Error {
    let no_package = if packages { "; no package was made" } else { "" };
    let hint = match packages {
        _ if failed == total => reasons.to_owned(),
        true => format!("{reasons}; --allow-partial makes packages without these kernels"),
        false => {
            format!(
                "{reasons}; the other kernels are in the kdbs; with --allow-partial the exit code \
                 is 0"
            )
        }
    };
    let message = format!("failed to build {failed} of {}{no_package}", counted(total, "kernel"));
    Error::new(ErrorKind::Incomplete, message, hint)
}

/// Returns an error if a library could not be asked for all problems or plans.
/// `total` is their number, as text.
pub(crate) fn check_all_asked(failed: usize, total: &str, hint: &str) -> Result {
    if failed == 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Incomplete, format!("failed to ask for {failed} of {total}"), hint))
}

/// The error for a panic, which has been reported already.
pub fn defect() -> Error {
    let hint = "please report it with the output above";
    Error::new(ErrorKind::Internal, "failed because of a defect in gfxpack", hint)
}

/// The error for a file that could not be read or written; `action` is a verb.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let error = FileError::io(action, path);
    move |source| error(source).into()
}

impl Error {
    /// An error with this message and hint.
    pub fn new(kind: ErrorKind, message: impl ToString, hint: impl ToString) -> Self {
        Self::Message { kind, message: message.to_string(), hint: Some(hint.to_string()) }
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Message { kind, .. } | Self::Other { kind, .. } => *kind,
            Self::Inputs(_) | Self::Compile(CompileError::ForeignSource(_)) => Usage,
            Self::Compile(CompileError::Interrupted) => Interrupted,
            Self::Toolchain(error) | Self::Compile(CompileError::Toolchain(error)) => {
                toolchain_kind(error)
            }
            Self::Compile(_) => Internal,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Message { hint, .. } | Self::Other { hint, .. } => hint.clone(),
            Self::Inputs(errors) => errors.first().map(InputError::hint),
            Self::Compile(error) => Some(error.hint().to_string()),
            Self::Toolchain(error) => Some(error.hint()),
        }
    }
}

/// A kind of error with a hint.
fn kind_and_hint(kind: ErrorKind, hint: impl ToString) -> ErrorKindAndHint {
    (kind, Some(hint.to_string()))
}

fn usage_if(is_usage: bool) -> ErrorKind {
    if is_usage { Usage } else { Internal }
}

/// Declares the errors of other crates that end a run, each with its kind and hint.
macro_rules! error_kinds {
    ($($error:ty, |$it:ident| $kind_and_hint:expr;)*) => {
        $(impl From<$error> for Error {
            fn from($it: $error) -> Self {
                let (kind, hint): ErrorKindAndHint = $kind_and_hint;
                Self::Other { kind, hint, error: Box::new($it) }
            }
        })*
    };
}

error_kinds! {
    InputError, |error| kind_and_hint(Usage, error.hint());
    FileError, |error| kind_and_hint(usage_if(error.is_usage()), error.hint());
    SystemToolError, |error| kind_and_hint(usage_if(error.is_usage()), error.hint());
    HarvestError, |error| kind_and_hint(harvest_kind(&error), error.hint());

    // Stock libraries.
    LibraryError, |error| kind_and_hint(library_kind(&error), error.hint());
    DebianError, |error| kind_and_hint(Internal, error.hint());
    ElfError, |_error| kind_and_hint(Internal, UNREADABLE_LIBRARY);
    SourcesError, |error| match &error {
        SourcesError::Write { source, .. } => kind_and_hint(Internal, io_hint(source)),
        _ => kind_and_hint(Internal, UNREADABLE_LIBRARY),
    };
    NetworkError, |error| kind_and_hint(Usage, error.hint());
    ProblemError, |error| kind_and_hint(Internal, error.hint());
    ProblemsError, |error| kind_and_hint(problems_kind(&error), error.hint());
    AskError, |error| (ask_kind(&error), error.hint());
    gfxpack_rocfft::ListError, |error| kind_and_hint(Usage, error.hint());
    gfxpack_rocfft::AskError, |error| {
        let is_cancelled = matches!(error, gfxpack_rocfft::AskError::Cancelled);
        (if is_cancelled { Interrupted } else { Internal }, error.hint().map(str::to_owned))
    };

    // Stored plans.
    StoredError, |error| kind_and_hint(Usage, error.hint());
    PlanWriteError, |error| match &error {
        PlanWriteError::Input(error) => kind_and_hint(Internal, error.hint()),
        PlanWriteError::Io(error) => kind_and_hint(Internal, io_hint(error)),
        _ => (Internal, None),
    };
    shlex::QuoteError, |_error| {
        kind_and_hint(Internal, "a shell script can't hold a NUL byte: take it out of the options")
    };
    serde_json::Error, |_error| (Internal, None);

    // Files of kernels and of parameters.
    ReadError, |error| kind_and_hint(read_kind(&error), error.hint());
    WriteError, |error| kind_and_hint(Internal, error.hint());
    CopyError, |error| kind_and_hint(copy_kind(&error), error.hint());
    gfxpack_rocfft::ReadError, |error| kind_and_hint(Usage, error.hint());
    gfxpack_rocfft::WriteError, |error| kind_and_hint(Internal, error.hint());
    gfxpack_tuning::ReadError, |error| kind_and_hint(Usage, error.hint());
    gfxpack_tuning::MergeError, |error| {
        let is_usage = !matches!(error, gfxpack_tuning::MergeError::Write { .. });
        kind_and_hint(usage_if(is_usage), error.hint())
    };

    // Packages.
    SigningError, |error| kind_and_hint(usage_if(error.is_usage()), error.hint());
    RepositoryError, |error| kind_and_hint(usage_if(error.is_usage()), error.hint());
    VerifyError, |error| kind_and_hint(usage_if(error.is_usage()), error.hint());
    gfxpack_package::Error, |error| package_kind_and_hint(&error);
}

/// What to do about a libMIOpen whose parts can't be read.
const UNREADABLE_LIBRARY: &str =
    "check that the libMIOpen is undamaged and may be read, or fetch it again";

fn toolchain_kind(error: &ToolchainError) -> ErrorKind {
    match error {
        ToolchainError::Interrupted => Interrupted,
        ToolchainError::NoHipcc
        | ToolchainError::NoProgram(_)
        | ToolchainError::NoPreferredHipcc(_)
        | ToolchainError::NoRocm(_)
        | ToolchainError::NoBitcode(_)
        | ToolchainError::NoDeviceLibs
        | ToolchainError::Unbuildable { .. } => Usage,
        _ => Internal,
    }
}

fn problems_kind(error: &ProblemsError) -> ErrorKind {
    match error {
        ProblemsError::File(HarvestError::Interrupted) => Interrupted,
        _ => Usage,
    }
}

fn ask_kind(error: &AskError) -> ErrorKind {
    match error {
        AskError::Cancelled => Interrupted,
        AskError::ComputeUnits(_)
        | AskError::NoKernelDatabase { .. }
        | AskError::NoPreload { .. } => Usage,
        _ => Internal,
    }
}

fn library_kind(error: &LibraryError) -> ErrorKind {
    match error {
        LibraryError::Debian(DebianError::Interrupted) => Interrupted,
        LibraryError::Debian(DebianError::Signature { .. } | DebianError::Digest { .. }) => {
            ErrorKind::Unsound
        }
        LibraryError::Debian(DebianError::Signing(error)) => usage_if(error.is_usage()),
        LibraryError::Debian(
            DebianError::BadMirror { .. }
            | DebianError::NotFound { .. }
            | DebianError::NoPackage { .. }
            | DebianError::Lock { .. },
        ) => Usage,
        LibraryError::Debian(_) | LibraryError::NoDependency { .. } => Internal,
        _ => Usage,
    }
}

fn harvest_kind(error: &HarvestError) -> ErrorKind {
    match error {
        HarvestError::Interrupted => Interrupted,
        _ => Usage,
    }
}

fn read_kind(error: &ReadError) -> ErrorKind {
    match error {
        ReadError::Interrupted { .. } => Interrupted,
        _ => Usage,
    }
}

fn copy_kind(error: &CopyError) -> ErrorKind {
    match error {
        CopyError::Write(_) => Internal,
        CopyError::Read(error) => read_kind(error),
        _ => Usage,
    }
}

/// Kind and hint of a package that could not be signed are those of the signer.
fn package_kind_and_hint(error: &gfxpack_package::Error) -> ErrorKindAndHint {
    use gfxpack_package::Error as Package;
    match error {
        Package::Sign(cause) => match cause.downcast_ref::<SigningError>() {
            Some(cause) => kind_and_hint(usage_if(cause.is_usage()), cause.hint()),
            None => kind_and_hint(Internal, error.hint()),
        },
        Package::Read { .. } | Package::Write { .. } => kind_and_hint(Internal, error.hint()),
        _ => kind_and_hint(Usage, error.hint()),
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
