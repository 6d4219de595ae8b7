//! Errors that stop a build as a whole. A job that fails is no such error, see [`crate::Failure`].

use gfxpack_model::{Error, ErrorKind};
use std::sync::OnceLock;

use gfxpack_toolchain::ToolchainError;

use crate::remote_error::RemoteError;

/// Why compiling could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The toolchain can't be used, or can't be used any more.
    #[error(transparent)]
    Toolchain(ToolchainError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] Error),
    /// A stored object was found damaged and has been removed.
    #[error("failed to use stored object `{0}`: its bytes are not those that were stored")]
    CorruptObject(gfxpack_model::Digest),
    /// The remote-execution service can't be used.
    #[error(transparent)]
    Remote(RemoteError),
    /// A source file that came with a plan is missing, or has other content.
    #[error("source `{0}` is missing, or not the one that the plan was made with")]
    ForeignSource(String),
    /// The user asked to stop.
    #[error("failed to finish: interrupted")]
    Interrupted,
}

impl From<ToolchainError> for CompileError {
    fn from(error: ToolchainError) -> Self {
        match error {
            ToolchainError::Interrupted => Self::Interrupted,
            other => Self::Toolchain(other),
        }
    }
}

impl CompileError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::Toolchain(error) => return error.hint(),
            Self::File(error) => error.hint().unwrap_or_default(),
            Self::CorruptObject(_) => "run again: it is compiled anew",
            Self::Remote(RemoteError::Service { hint, .. }) => hint,
            Self::ForeignSource(_) => {
                "copy the plan again, or make it anew with `gfxpack plan --out`"
            }
            Self::Remote(_) | Self::Interrupted => {
                "run the same command again: what is built already is kept"
            }
        };
        hint.to_owned()
    }
}

/// The value of `slot`, made by the first caller; `None` if there is none. If `make` fails, the
/// first caller gets the error, and all others get `None`.
pub(crate) fn get_or_make<T>(
    slot: &OnceLock<Option<T>>,
    make: impl FnOnce() -> Result<Option<T>, CompileError>,
) -> Result<Option<&T>, CompileError> {
    let mut error = None;
    let value = slot.get_or_init(|| {
        make().unwrap_or_else(|fatal| {
            error = Some(fatal);
            None
        })
    });
    error.map_or(Ok(value.as_ref()), Err)
}

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Self {
        let kind = match error {
            CompileError::Toolchain(error) => return error.into(),
            CompileError::File(error) => return error,
            CompileError::ForeignSource(_) => ErrorKind::Usage,
            CompileError::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Internal,
        };
        let hint = error.hint();
        Self::new(kind, &error, hint).caused_by(error)
    }
}
