//! Errors of several places.

use std::io;
use std::path::Path;

use gfxpack_model::{Error, ErrorKind};

/// What is not installed, as the cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No hipcc anywhere.
    #[error("failed to find hipcc")]
    Hipcc,
    /// No directory with the device libraries' bitcode.
    #[error("failed to find ROCm's device libraries")]
    DeviceLibs,
}

impl From<Missing> for Error {
    fn from(missing: Missing) -> Self {
        let hint = match missing {
            Missing::Hipcc => {
                "install it (Debian, Ubuntu: apt-get install hipcc; Fedora: dnf install hipcc; \
                 AMD's packages: hip-dev, in /opt/rocm), or give its path with --hipcc, or a clang \
                 with --clang"
            }
            Missing::DeviceLibs => {
                "install them (Debian, Ubuntu: apt-get install rocm-device-libs), or give their \
                 directory with --device-libs"
            }
        };
        Self::usage(missing, hint).caused_by(missing)
    }
}

/// The error of a file of a toolchain, or of one that is made for it: never the user's own path.
pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::io(action, path)(source).of_kind(ErrorKind::Internal)
}
