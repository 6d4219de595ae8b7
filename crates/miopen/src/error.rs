//! Why a library can't be asked.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::Target;

use gfxpack_stock_library::{ElfError, ProbeError};

/// Why a library can't be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// Kernels depend on the number of compute units, which is not given.
    #[error("failed to ask for `{0}`: it has no compute-unit count")]
    ComputeUnits(Target),
    /// Libraries that libMIOpen needs are missing.
    #[error("failed to find what libMIOpen needs: {}", .sonames.join(", "))]
    MissingLibraries {
        /// Their sonames.
        sonames: Vec<String>,
    },
    /// The library needs functions that no stand-in has.
    #[error("this libMIOpen needs functions that gfxpack can't replace: {}", .symbols.join(", "))]
    MissingSymbols {
        /// Their names.
        symbols: Vec<String>,
    },
    /// The library can't be read or loaded.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The library to preload into MIOpenDriver is not beside the probe.
    #[error("failed to find `{path}`, which MIOpenDriver is run with")]
    NoPreload {
        /// The expected path.
        path: PathBuf,
    },
    /// The probe ended again and again, not because of a problem.
    #[error("the probe ended by itself {0} times")]
    Unstable(usize),
    /// The library loads, but does not look kernels up as any known version does.
    #[error("failed to have libMIOpen compute a first, small problem for {target}: {reason}")]
    SelfTest {
        /// The device.
        target: Target,
        /// What happened instead.
        reason: String,
    },
    /// A database can't be read.
    #[error("failed to read the database `{path}`")]
    Database {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// None of the given kernel databases is for the target.
    #[error("failed to find a kernel database that `{target}` reads among those given")]
    NoKernelDatabase {
        /// The target.
        target: Target,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl From<ElfError> for AskError {
    fn from(error: ElfError) -> Self {
        Self::Probe(error.into())
    }
}

impl AskError {
    /// The error for a file or directory that can't be written.
    pub(crate) fn scratch(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| ProbeError::scratch(path)(source).into()
    }

    /// Whether the library may be asked for another target all the same.
    #[must_use]
    pub fn is_of_target(&self) -> bool {
        matches!(
            self,
            Self::SelfTest { .. } | Self::Unstable(_) | Self::Probe(ProbeError::Load { .. })
        )
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::ComputeUnits(target) => {
                format!("write {target}@COUNT, with the count that rocminfo reports")
            }
            Self::MissingLibraries { .. } => {
                "unpack these libraries into the same tree, or install them".to_owned()
            }
            Self::MissingSymbols { .. }
            | Self::Probe(ProbeError::MissingFunction { .. })
            | Self::SelfTest { .. } => {
                "this version of MIOpen is not supported yet; use another one".to_owned()
            }
            Self::Probe(ProbeError::Start { .. } | ProbeError::OtherVersion { .. }) => {
                "install gfxpack-miopen-probe of the same version beside gfxpack".to_owned()
            }
            Self::NoPreload { .. } => {
                "it comes with gfxpack's packages, and `cargo build` makes it beside gfxpack: copy it \
                 too"
                .to_owned()
            }
            Self::Probe(ProbeError::Load { .. }) => {
                "check that it is an undamaged libMIOpen for this machine, and that the libraries it \
                 needs are there (`ldd` lists them)"
                    .to_owned()
            }
            Self::Unstable(_) => {
                "try again with fewer --jobs, as memory may be short; if that changes nothing, use \
                 another libMIOpen"
                    .to_owned()
            }
            Self::Probe(ProbeError::Scratch { .. }) => {
                "make room on that disk, or choose a directory that you may write to with \
                 --cache-dir"
                    .to_owned()
            }
            Self::Database { .. } => {
                "check that it is undamaged, and that this user may read it".to_owned()
            }
            Self::NoKernelDatabase { target } => {
                let exact = target.kdb_file_name();
                let device_wide = format!("{}.kdb", target.id().db_id());
                if exact == device_wide {
                    format!("give a kdb called {exact}, as MIOpen looks for it")
                } else {
                    format!(
                        "give a kdb called {exact}, as MIOpen looks for it, or {device_wide}, which \
                         it reads if there is no {exact}"
                    )
                }
            }
            Self::Probe(_) => {
                "give a libMIOpen.so, or the directory of a ROCm, as /opt/rocm".to_owned()
            }
            Self::Cancelled => return None,
        })
    }
}

impl From<AskError> for gfxpack_model::Error {
    fn from(error: AskError) -> Self {
        use gfxpack_model::ErrorKind::{Internal, Interrupted, Usage};
        let kind = match error {
            AskError::Cancelled => Interrupted,
            AskError::ComputeUnits(_)
            | AskError::NoKernelDatabase { .. }
            | AskError::NoPreload { .. } => Usage,
            _ => Internal,
        };
        let made = match error.hint() {
            Some(hint) => Self::new(kind, &error, hint),
            None => Self::without_hint(kind, &error),
        };
        made.caused_by(error)
    }
}
