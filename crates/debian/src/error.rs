//! Errors of fetching packages.

use std::io;
use std::path::PathBuf;

use gfxpack_package::signing::SigningError;

/// Why a package could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DebianError {
    /// No Debian mirror was given, and apt's sources have none.
    #[error("found no mirror of Debian's archive{}", reasons(.tried))]
    NoMirror {
        /// Mirrors of apt's sources, and why each of them can't be used.
        tried: Vec<(String, String)>,
    },
    /// The text is neither a URL nor a directory.
    #[error("`{mirror}` is no mirror: it is neither a URL of http, https or file nor a directory")]
    BadMirror {
        /// The text.
        mirror: String,
    },
    /// The mirror does not answer, or the connection breaks again and again.
    #[error("failed to fetch `{url}`")]
    Unreachable {
        /// The URL.
        url: String,
        /// The cause.
        source: io::Error,
    },
    /// The mirror does not have the file.
    #[error("`{url}` does not exist")]
    NotFound {
        /// The URL.
        url: String,
    },
    /// The list of a suite is not signed by Debian.
    #[error("failed to verify `{url}`: {why}")]
    Signature {
        /// The URL.
        url: String,
        /// What is wrong with the signature.
        why: String,
    },
    /// The list of a suite is older than the one that is here.
    #[error("`{url}` is of {date}, older than what was taken before (to go back, remove `{kept}`)")]
    Older {
        /// The URL.
        url: String,
        /// When it was made, as written in it.
        date: String,
        /// The list that is here.
        kept: PathBuf,
    },
    /// Signatures can't be checked here.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The file does not have the expected digest.
    #[error("`{url}` is not what the archive promises: its SHA-256 differs")]
    Digest {
        /// The URL.
        url: String,
    },
    /// The list of a suite is not as it should be.
    #[error("failed to read `{url}`: {reason}")]
    Format {
        /// The URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The package is not in the suite.
    #[error("`{package}` is not in {suite}{}", others(.versions))]
    NoPackage {
        /// The package, with its version if one was requested.
        package: String,
        /// The suite.
        suite: String,
        /// Versions that exist.
        versions: Vec<String>,
    },
    /// The package cannot be unpacked.
    #[error("failed to unpack `{package}`: {reason}")]
    Package {
        /// The file.
        package: String,
        /// What is wrong.
        reason: String,
    },
    /// Debian has no packages for this machine's processor.
    #[error("Debian has no packages for `{architecture}`")]
    Architecture {
        /// The processor.
        architecture: String,
    },
    /// A file could not be read or written.
    #[error("failed to {action} `{path}`")]
    Io {
        /// The failed operation, as a verb.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The list of pinned packages cannot be read.
    #[error("failed to read `{path}` as a list of pinned packages: {reason}")]
    Lock {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The user stopped the program.
    #[error("interrupted while fetching packages")]
    Interrupted,
}

impl DebianError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::NoMirror { .. } => {
                "name one by GFXPACK_DEBIAN_MIRROR=URL; without a network, give \
                 a library that is here, as --miopen PATH, or kernels of your own, as --manifest FILE"
            }
            Self::BadMirror { .. } => {
                "give the address that apt would have, up to `dists`, or a copy's directory"
            }
            Self::Unreachable { .. } => {
                "check the network and its proxy, or name another mirror by GFXPACK_DEBIAN_MIRROR; \
                 without a network, give a library that is here, as --miopen PATH, or kernels of \
                 your own, as --manifest FILE"
            }
            Self::NotFound { .. } => {
                "name another mirror by GFXPACK_DEBIAN_MIRROR, or another suite"
            }
            Self::Signature { .. } => {
                "name another mirror by GFXPACK_DEBIAN_MIRROR; a newer gfxpack knows newer keys"
            }
            Self::Digest { .. } | Self::Format { .. } | Self::Older { .. } => {
                "the mirror may be changing: try again later, or name another by GFXPACK_DEBIAN_MIRROR"
            }
            Self::NoPackage { versions, .. } if versions.is_empty() => {
                "take another suite, debian:sid or debian:experimental"
            }
            Self::NoPackage { .. } => "take one of these versions, or another suite",
            Self::Package { .. } => {
                "please report it: Debian's package is not as it is known to be"
            }
            Self::Architecture { .. } => "give a library that is here, as --miopen PATH",
            Self::Io { .. } => "make room on that disk, or choose another by --cache-dir",
            Self::Lock { .. } => "give a file that `gfxpack miopen --lock` wrote",
            Self::Interrupted => "run it again: what is fetched is kept",
            Self::Signing(error) => return error.hint(),
        };
        fixed.to_owned()
    }

    /// Whether the same request may work with another mirror or network, or later.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoMirror { .. } | Self::Older { .. })
    }

    /// Whether the file has been removed from the archive since it was named.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Digest { .. })
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

fn reasons(tried: &[(String, String)]) -> String {
    let tried: Vec<_> = tried.iter().map(|(url, why)| format!("`{url}`: {why}")).collect();
    if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) }
}

fn others(versions: &[String]) -> String {
    match versions {
        [] => String::new(),
        versions => format!(", which has {}", versions.join(", ")),
    }
}

impl From<DebianError> for gfxpack_model::Error {
    fn from(error: DebianError) -> Self {
        use gfxpack_model::ErrorKind::{Internal, Interrupted, Unsound, Usage};
        let kind = match &error {
            DebianError::Interrupted => Interrupted,
            DebianError::Signature { .. } | DebianError::Digest { .. } => Unsound,
            DebianError::Signing(error) if error.is_usage() => Usage,
            DebianError::BadMirror { .. }
            | DebianError::NotFound { .. }
            | DebianError::NoPackage { .. }
            | DebianError::Lock { .. } => Usage,
            _ => Internal,
        };
        let hint = error.hint();
        Self::new(kind, &error, hint).caused_by(error)
    }
}
