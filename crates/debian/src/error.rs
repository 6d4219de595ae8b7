//! Errors of fetching packages.

use std::io;
use std::path::Path;

use gfxpack_model::{Error, ErrorKind};

/// Why a package could not be fetched, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum DebianError {
    /// The mirror does not have the file.
    NotFound(Error),
    /// The file does not have the expected digest.
    Digest(Error),
    /// Another mirror or network may do, or the same one later.
    Unreachable(Error),
    /// It fails on this machine, whatever the mirror, or the user stopped it.
    Here(Error),
    /// There is no curl.
    NoCurl(Error),
    /// Anything else.
    Other(Error),
}

impl DebianError {
    /// Whether the same request may work with another mirror or network, or later.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }

    /// Whether the file has been removed from the archive since it was named.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::Digest(_))
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let message = format!("failed to {action} `{}`", path.display());
            let hint = "make room on that disk, or choose another by --cache-dir";
            Self::Here(Error::internal(message, hint).caused_by(source))
        }
    }

    pub(crate) fn not_found(url: &str) -> Self {
        let hint = "name another mirror by GFXPACK_DEBIAN_MIRROR, or another suite";
        Self::NotFound(Error::usage(format!("`{url}` does not exist"), hint))
    }

    pub(crate) fn unreachable(url: &str, source: io::Error) -> Self {
        let hint = "check the network and its proxy, or name another mirror by \
                    GFXPACK_DEBIAN_MIRROR; without a network, give a library that is here, as \
                    --miopen PATH, or kernels of your own, as --manifest FILE";
        let error = Error::internal(format!("failed to fetch `{url}`"), hint);
        Self::Unreachable(error.caused_by(source))
    }

    /// No mirror was given, and none of apt's sources does: their addresses, and why not.
    pub(crate) fn no_mirror(tried: &[(String, String)]) -> Self {
        let tried: Vec<_> = tried.iter().map(|(url, why)| format!("`{url}`: {why}")).collect();
        let tried =
            if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) };
        Self::Unreachable(Error::internal(
            format!("found no mirror of Debian's archive{tried}"),
            "name one by GFXPACK_DEBIAN_MIRROR=URL; without a network, give a library that is \
             here, as --miopen PATH, or kernels of your own, as --manifest FILE",
        ))
    }

    pub(crate) fn digest(url: &str) -> Self {
        let message = format!("`{url}` is not what the archive promises: its SHA-256 differs");
        Self::Digest(Error::new(ErrorKind::Unsound, message, CHANGING))
    }

    /// The list of a suite is not as it should be.
    pub(crate) fn format(url: &str, reason: impl std::fmt::Display) -> Self {
        Self::Other(Error::internal(format!("failed to read `{url}`: {reason}"), CHANGING))
    }

    pub(crate) fn interrupted() -> Self {
        let hint = "run it again: what is fetched is kept";
        let message = "interrupted while fetching packages";
        Self::Here(Error::new(ErrorKind::Interrupted, message, hint))
    }
}

/// What to do about a mirror whose files do not fit together.
pub(crate) const CHANGING: &str =
    "the mirror may be changing: try again later, or name another by GFXPACK_DEBIAN_MIRROR";

impl From<DebianError> for Error {
    fn from(error: DebianError) -> Self {
        match error {
            DebianError::NotFound(error)
            | DebianError::Digest(error)
            | DebianError::Unreachable(error)
            | DebianError::Here(error)
            | DebianError::NoCurl(error)
            | DebianError::Other(error) => error,
        }
    }
}
