//! Errors of the HIP runtime library.

use gfxpack_model::code_object::CodeObjectError;

/// The names to try, newest first.
pub const LIBRARY_NAMES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];

/// Why a request to the HIP runtime failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HipError {
    /// The loader finds none of [`LIBRARY_NAMES`].
    #[error("failed to find a HIP runtime library")]
    NotInstalled,
    /// The library exists but can't be loaded.
    #[error("failed to load `{library}`")]
    Load {
        /// The library's name or path.
        library: String,
        /// The loader's error.
        source: libloading::Error,
    },
    /// The library lacks a function, so it is not a HIP runtime.
    #[error("failed to find `{symbol}` in `{library}`")]
    Symbol {
        /// The library's name or path.
        library: String,
        /// The function.
        symbol: &'static str,
    },
    /// A call returned an error code.
    #[error("failed to call `{call}` of `{library}`: HIP error {code}")]
    Call {
        /// The library's name or path.
        library: String,
        /// The function.
        call: &'static str,
        /// `hipError_t`.
        code: i32,
    },
    /// A call succeeded with an impossible result.
    #[error("failed to make sense of what `{call}` of `{library}` gives: {what}")]
    Nonsense {
        /// The library's name or path.
        library: String,
        /// The function.
        call: &'static str,
        /// The result.
        what: String,
    },
    /// The bytes to load are not a code object; HIP did not get them.
    #[error("failed to accept the code object")]
    CodeObject(#[source] CodeObjectError),
    /// A kernel's name with a NUL byte in it.
    #[error("failed to accept the kernel name `{0}`: it has a NUL byte in it")]
    KernelName(String),
}

impl HipError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotInstalled => {
                "install ROCm's HIP runtime (package hip-runtime-amd or libamdhip64)"
            }
            Self::Load { .. } | Self::Symbol { .. } | Self::Nonsense { .. } => {
                "see which libamdhip64.so the loader finds (LD_LIBRARY_PATH, ldconfig -p), and \
                 install ROCm's HIP runtime again"
            }
            Self::Call { .. } => {
                "see whether /dev/kfd and /dev/dri/renderD* may be opened: users are in the groups \
                 render and video"
            }
            Self::CodeObject(_) => "`gfxpack kdb verify` checks the kdb that it comes from",
            Self::KernelName(_) => "name the kernel as its source does",
        }
    }
}
