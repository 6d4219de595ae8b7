//! Reasons why a kdb did not provide a kernel.

use std::path::PathBuf;
use std::sync::Arc;

use gfxpack_kdb::{KdbErrorKind, ReadError};
use gfxpack_model::TargetId;
use gfxpack_model::code_object::{CodeObjectError, spelled};

use crate::lookup::Layer;
use crate::trust::Untrusted;

/// A kdb that did not provide the kernel.
#[derive(Debug)]
#[non_exhaustive]
pub struct Miss {
    /// Whether it is an installed kdb or the user's.
    pub layer: Layer,
    /// The kdb.
    pub file: PathBuf,
    /// The reason.
    pub reason: MissReason,
}

/// Why a kdb did not provide a kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MissReason {
    /// There is no such file.
    #[error("failed to find the file")]
    NoFile,
    /// The file does not hold the key.
    #[error("failed to find the kernel in the file")]
    NoKernel,
    /// The file as a whole can't be used. It is opened again once it has
    /// changed.
    #[error("failed to use the file")]
    Unreadable(#[source] Arc<ReadError>),
    /// The user's file was not a kdb. It is kept under another name, and the
    /// next kernel starts a new one.
    #[error("failed to use the file, which is now `{}`", kept_as.display())]
    MovedAside {
        /// Its new path.
        kept_as: PathBuf,
        /// What was wrong with it.
        source: ReadError,
    },
    /// Somebody else may have written the file.
    #[error("failed to trust the file")]
    Untrusted(#[source] Untrusted),
    /// The file has the key, but the kernel is damaged.
    #[error("failed to use the kernel that the file holds")]
    Damaged(#[source] ReadError),
    /// The file has the key, with bytes that are not a code object.
    #[error("failed to use the kernel that the file holds")]
    NoCodeObject(#[source] CodeObjectError),
    /// The file has the key, with code for other devices.
    #[error("failed to use the kernel that the file holds: its code is for {}", spelled(.0))]
    OtherTarget(Vec<TargetId>),
}

impl MissReason {
    pub(crate) fn of(error: ReadError) -> Self {
        match error.kind() {
            KdbErrorKind::Absent => Self::NoFile,
            KdbErrorKind::Row | KdbErrorKind::RowLimit | KdbErrorKind::RowIndex => {
                Self::Damaged(error)
            }
            _ => Self::Unreadable(Arc::new(error)),
        }
    }

    /// The reason in machine-readable output: `no-kernel`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoFile => "no-file",
            Self::NoKernel => "no-kernel",
            reason if reason.is_busy() => "busy",
            Self::Unreadable(_) => "unreadable",
            Self::MovedAside { .. } => "moved-aside",
            Self::Untrusted(_) => "untrusted",
            Self::Damaged(_) => "damaged",
            Self::NoCodeObject(_) => "no-code-object",
            Self::OtherTarget(_) => "other-target",
        }
    }

    /// Whether something is wrong; false if the file or kernel simply does not
    /// exist.
    pub fn is_fault(&self) -> bool {
        !matches!(self, Self::NoFile | Self::NoKernel)
    }

    /// Whether others have the file locked.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Unreadable(error) if error.kind() == KdbErrorKind::Busy)
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoFile => "install the kernel package of this GPU",
            Self::NoKernel => "add the key to what the package is built from, and build it again",
            reason if reason.is_busy() => {
                "find the program that keeps it locked; the kernel is compiled meanwhile"
            }
            Self::Unreadable(error) => error.hint(),
            Self::Damaged(error) => error.hint(),
            Self::MovedAside { .. } => {
                "no action needed; remove the old file when you have no use for it"
            }
            Self::Untrusted(error) => error.hint(),
            Self::NoCodeObject(_) | Self::OtherTarget(_) => {
                "`gfxpack kdb verify` lists all that is wrong; install the package again"
            }
        }
    }
}
