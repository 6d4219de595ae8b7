//! What can stop a build as a whole. A kernel that a compiler refuses is no
//! such thing: that is data, see [`crate::Failure`].

use std::io;
use std::path::PathBuf;

use gfxpack_model::Language;
use gfxpack_process::StartError;

use crate::remote::RemoteError;

/// Why compiling could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// No hipcc anywhere.
    #[error("failed to find hipcc")]
    NoHipcc,
    /// A program that was named does not exist or can't be run.
    #[error("failed to find `{0}`: it is no executable file")]
    NoProgram(PathBuf),
    /// The hipcc that the environment names does not exist or can't be run.
    #[error("failed to find `{0}`, which HIPCC names: it is no executable file")]
    NoPreferredHipcc(PathBuf),
    /// A prefix that was named is no directory.
    #[error("failed to find the ROCm installation `{0}`: it is no directory")]
    NoRocm(PathBuf),
    /// A directory of device libraries that was named holds none.
    #[error("failed to find device libraries in `{0}`: it holds no bitcode")]
    NoBitcode(PathBuf),
    /// A program could not be started or waited for.
    #[error("failed to run `{program}`")]
    Start {
        /// The program.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A toolchain's program answered something else than expected.
    #[error("failed to probe `{program}`: {reason}")]
    Probe {
        /// The program.
        program: PathBuf,
        /// What was wrong, with the program's words.
        reason: String,
    },
    /// No directory with the device libraries' bitcode.
    #[error("failed to find ROCm's device libraries")]
    NoDeviceLibs,
    /// The compiler links other device libraries than those named.
    #[error("failed to use the device libraries in `{given}`: hipcc takes `{used}`")]
    OtherDeviceLibs {
        /// What was asked for.
        given: PathBuf,
        /// What hipcc would link.
        used: PathBuf,
    },
    /// The compiler was replaced while it was used.
    #[error("failed to trust what was compiled: the toolchain's `{file}` changed meanwhile")]
    ToolchainChanged {
        /// One of its files, as its digest names it, or a path: of what is gone,
        /// or of the directory with supplied constants.
        file: String,
    },
    /// A header was changed again and again while it was read.
    #[error("failed to trust what was compiled: `{0}` changed meanwhile")]
    HeaderChanged(PathBuf),
    /// The toolchain can't build for a processor.
    #[error("failed to find a way to build {language} for `{processor}`: {reason}")]
    Unbuildable {
        /// The processor.
        processor: String,
        /// The language asked for.
        language: Language,
        /// What is missing, with the compiler's name and version.
        reason: String,
        /// What could build it.
        remedy: String,
    },
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
    /// An object of the store was found damaged; it has been dropped.
    #[error("failed to use stored object `{0}`: its bytes are not those that were stored")]
    CorruptObject(gfxpack_model::Digest),
    /// The remote-execution service can't be used.
    #[error(transparent)]
    Remote(RemoteError),
    /// A source file that came with a plan is not the one that was planned
    /// with.
    #[error("failed to trust source `{0}`: it is not the one that the plan was made with")]
    ForeignSource(String),
    /// Someone asked to stop.
    #[error("failed to finish: interrupted")]
    Interrupted,
}

impl From<StartError> for CompileError {
    fn from(StartError { program, source }: StartError) -> Self {
        Self::Start { program, source }
    }
}

impl CompileError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoHipcc => "install it (Debian, Ubuntu: apt-get install hipcc; Fedora: dnf install hipcc; \
                 AMD's packages: hip-dev, in /opt/rocm), or give its path with --hipcc, or a clang with --clang"
                .to_owned(),
            Self::NoProgram(_) => "check the path".to_owned(),
            Self::NoPreferredHipcc(_) => "correct HIPCC, or unset it".to_owned(),
            Self::NoRocm(_) => {
                "give --rocm-path the directory that holds bin, include and lib: /opt/rocm".to_owned()
            }
            Self::NoBitcode(_) => {
                "give --device-libs the directory that holds ockl.bc: /opt/rocm/amdgcn/bitcode".to_owned()
            }
            Self::Start { .. } => "check that the program is there and may be run, and that memory is left".to_owned(),
            Self::Probe { .. } => {
                "run it by hand to see what it says; --hipcc and --clang choose another".to_owned()
            }
            Self::NoDeviceLibs => "install them (Debian, Ubuntu: apt-get install rocm-device-libs), or give \
                 their directory with --device-libs"
                .to_owned(),
            Self::OtherDeviceLibs { .. } => {
                "this hipcc looks for its own; use --clang with --device-libs".to_owned()
            }
            Self::ToolchainChanged { .. } => {
                "wait until the installation is complete and run again; what was compiled in this run is \
                 thrown away"
                    .to_owned()
            }
            Self::HeaderChanged(_) => {
                "wait until nothing changes it any more and run again: what is built already is kept"
                    .to_owned()
            }
            Self::Unbuildable { remedy, .. } => remedy.clone(),
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    "make room on that disk, or choose another directory (--cache-dir, --out); what is built \
                     already is kept"
                        .to_owned()
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "choose a directory that you may write to (--cache-dir, --out)".to_owned()
                }
                _ => "check that the path exists and may be used".to_owned(),
            },
            Self::CorruptObject(_) => "run again: it is compiled anew".to_owned(),
            Self::Remote(RemoteError::Service { hint, .. }) => hint.clone(),
            Self::Remote(_) => "run the same command again: what is built already is kept".to_owned(),
            Self::ForeignSource(_) => {
                "copy the plan again, or make it anew with `gfxpack plan --out`".to_owned()
            }
            Self::Interrupted => "run the same command again: what is built already is kept".to_owned(),
        }
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
