//! What keeps a command from being run.

use std::io;
use std::path::PathBuf;

use gfxpack_process::StartError;
use gfxpack_toolchain::ToolchainError;

/// Why a command could not be run. That a compiler refuses a source is no such
/// thing: see [`crate::Run::end`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The toolchain can't be used, or not any more.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// A program could not be started or waited for.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A file could not be read or written.
    #[error("failed to {action} `{path}`")]
    Io {
        /// `read`, `write`, `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Someone asked to stop.
    #[error("failed to finish: interrupted")]
    Interrupted,
}

impl LaunchError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
