//! Errors of finding, probing, identifying and running a toolchain.

use std::path::PathBuf;

use gfxpack_model::{Error, Language};
use gfxpack_process::StartError;

/// Why there is no toolchain, or it could not be run. A compiler that refuses a source is no such
/// error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolchainError {
    /// No hipcc anywhere.
    #[error("failed to find hipcc")]
    NoHipcc,
    /// A given program does not exist or can't be run.
    #[error("failed to find `{0}`: it is no executable file")]
    NoProgram(PathBuf),
    /// The hipcc that the environment names does not exist or can't be run.
    #[error("failed to find `{0}`, which HIPCC names: it is no executable file")]
    NoPreferredHipcc(PathBuf),
    /// A given prefix is no directory.
    #[error("failed to find the ROCm installation `{0}`: it is no directory")]
    NoRocm(PathBuf),
    /// A given directory of device libraries contains none.
    #[error("failed to find device libraries in `{0}`: it holds no bitcode")]
    NoBitcode(PathBuf),
    /// A program could not be started or waited for.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A program's output is not as expected.
    #[error("failed to probe `{program}`: {reason}")]
    Probe {
        /// The program.
        program: PathBuf,
        /// The problem, with the program's output.
        reason: String,
    },
    /// No directory with the device libraries' bitcode.
    #[error("failed to find ROCm's device libraries")]
    NoDeviceLibs,
    /// The compiler links other device libraries than those given.
    #[error("failed to use the device libraries in `{given}`: hipcc takes `{used}`")]
    OtherDeviceLibs {
        /// The given directory.
        given: PathBuf,
        /// The directory that hipcc would link.
        used: PathBuf,
    },
    /// The compiler changed while it was used.
    #[error("failed to trust what was compiled: the toolchain's `{file}` changed meanwhile")]
    Changed {
        /// One of its files, as its digest names it, or a path: that of a missing file, or of the
        /// directory with supplied constants.
        file: String,
    },
    /// No toolchain builds for a processor.
    #[error("failed to find a way to build {language} for `{processor}`: {reason}")]
    Unbuildable {
        /// The processor.
        processor: String,
        /// The language that was asked for.
        language: Language,
        /// What is missing, with the compiler's name and version.
        reason: String,
        /// What could build it.
        remedy: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] Error),
    /// The user asked to stop.
    #[error("failed to finish: interrupted")]
    Interrupted,
}

impl ToolchainError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::NoHipcc => {
                "install it (Debian, Ubuntu: apt-get install hipcc; Fedora: dnf install hipcc; \
                 AMD's packages: hip-dev, in /opt/rocm), or give its path with --hipcc, or a clang \
                 with --clang"
            }
            Self::NoProgram(_) => {
                "check the path, and that the program is installed and may be run"
            }
            Self::NoPreferredHipcc(_) => "correct HIPCC, or unset it",
            Self::NoRocm(_) => {
                "give --rocm-path the directory that holds bin, include and lib: /opt/rocm"
            }
            Self::NoBitcode(_) => {
                "give --device-libs the directory that holds ockl.bc: /opt/rocm/amdgcn/bitcode"
            }
            Self::Start(_) => {
                "check that the program is there and may be run, and that memory is left"
            }
            Self::Probe { .. } => {
                "run it by hand to see what it says; --hipcc and --clang choose another"
            }
            Self::NoDeviceLibs => {
                "install them (Debian, Ubuntu: apt-get install rocm-device-libs), or give their \
                 directory with --device-libs"
            }
            Self::OtherDeviceLibs { .. } => {
                "this hipcc looks for its own; use --clang with --device-libs"
            }
            Self::Changed { .. } => {
                "wait until the installation is complete and run again; what was compiled before \
                 the change is kept"
            }
            Self::Unbuildable { remedy, .. } => remedy,
            Self::File(error) => error.hint().unwrap_or_default(),
            Self::Interrupted => "run the same command again: what is built already is kept",
        };
        hint.to_owned()
    }
}

impl From<ToolchainError> for gfxpack_model::Error {
    fn from(error: ToolchainError) -> Self {
        let (kind, hint) = (
            match error {
                ToolchainError::Interrupted => gfxpack_model::ErrorKind::Interrupted,
                ToolchainError::NoHipcc
                | ToolchainError::NoProgram(_)
                | ToolchainError::NoPreferredHipcc(_)
                | ToolchainError::NoRocm(_)
                | ToolchainError::NoBitcode(_)
                | ToolchainError::NoDeviceLibs
                | ToolchainError::Unbuildable { .. } => gfxpack_model::ErrorKind::Usage,
                _ => gfxpack_model::ErrorKind::Internal,
            },
            error.hint(),
        );
        Self::new(kind, &error, hint).caused_by(error)
    }
}
