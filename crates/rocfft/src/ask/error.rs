//! Errors of asking.

use std::fmt;
use std::io;
use std::path::PathBuf;

use gfxpack_stock_library::{ElfError, ProbeError};

use crate::file::error::ReadError;

/// Why a library can't be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// A file of the probe can't be read.
    #[error("failed to use `{path}`")]
    Scratch {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The library can't be read or loaded.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// It uses a property of the GPU that is not known without one, or contradicts itself.
    #[error("{0}")]
    Library(String),
    /// It has compiled nothing.
    #[error("librocfft asked for no kernel")]
    NoKernel,
    /// The cache that it has written can't be read.
    #[error(transparent)]
    Cache(#[from] ReadError),
    /// The request was cancelled.
    #[error("interrupted")]
    Cancelled,
}

impl From<ElfError> for AskError {
    fn from(error: ElfError) -> Self {
        Self::Probe(error.into())
    }
}

impl AskError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Scratch { .. } | Self::Probe(ProbeError::Scratch { .. }) => {
                "see whether the disk is full, or set TMPDIR to another one"
            }
            Self::Probe(ProbeError::Start { .. } | ProbeError::OtherVersion { .. }) => {
                "the probe comes with gfxpack: install both again"
            }
            Self::Probe(ProbeError::Elf(_)) => {
                "give a librocfft.so, or the directory of a ROCm, as /opt/rocm"
            }
            Self::Library(_) | Self::Probe(_) => {
                "try another librocfft; --rocfft debian:sid is known to work"
            }
            Self::NoKernel => "none of the plans can be created; each is named above",
            Self::Cache(_) => "this is a defect of gfxpack or of the disk",
            Self::Cancelled => return None,
        })
    }
}

/// Why a plan was not created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanFailure {
    /// The library refuses it with this `rocfft_status`.
    Refused(i32),
    /// It takes longer than any useful plan.
    Overdue,
    /// A signal ended the library's process.
    Killed(i32),
    /// The library's process exited with this status.
    Exited(i32),
}

impl fmt::Display for PlanFailure {
    /// A clause with the plan as its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status) => write!(f, "is refused with status {status}"),
            Self::Overdue => f.write_str("takes too long"),
            Self::Killed(signal) => write!(f, "ends librocfft by signal {signal}"),
            Self::Exited(status) => write!(f, "ends librocfft with status {status}"),
        }
    }
}

impl From<AskError> for gfxpack_model::Error {
    fn from(error: AskError) -> Self {
        use gfxpack_model::ErrorKind::{Internal, Interrupted};
        let kind = match error {
            AskError::Cancelled => Interrupted,
            _ => Internal,
        };
        let made = match error.hint() {
            Some(hint) => Self::new(kind, &error, hint),
            None => Self::without_hint(kind, &error),
        };
        made.caused_by(error)
    }
}
