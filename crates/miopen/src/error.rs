//! Why a library can't be asked.

use std::io;
use std::path::PathBuf;

use gfxpack_model::Target;

use crate::elf::ElfError;

/// Why a library can't be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// Kernels depend on the number of compute units, and it is not given.
    #[error("failed to claim a device of `{0}`: it has no compute-unit count")]
    ComputeUnits(Target),
    /// The library can't be read.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// Libraries that libMIOpen needs are not there.
    #[error("failed to find what libMIOpen needs: {}", .sonames.join(", "))]
    MissingLibraries {
        /// Their sonames.
        sonames: Vec<String>,
    },
    /// The library wants functions that no stand-in has.
    #[error("failed to stand in for all that libMIOpen wants: {}", .symbols.join(", "))]
    MissingSymbols {
        /// Their names.
        symbols: Vec<String>,
    },
    /// The library does not have a function that is called.
    #[error("failed to find `{function}` in libMIOpen")]
    MissingFunction {
        /// Its name.
        function: String,
    },
    /// The library can't be loaded.
    #[error("failed to load libMIOpen: {reason}")]
    Load {
        /// What the dynamic loader or the library says.
        reason: String,
    },
    /// The probe can't be started.
    #[error("failed to start `{probe}`")]
    Start {
        /// The probe.
        probe: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// What is preloaded into MIOpenDriver is not beside the probe.
    #[error("failed to find `{path}`, which MIOpenDriver is run with")]
    NoPreload {
        /// Where it should be.
        path: PathBuf,
    },
    /// The probe is one of another version of gfxpack.
    #[error("failed to use `{probe}`: it belongs to gfxpack {version}")]
    ProbeVersion {
        /// The probe.
        probe: PathBuf,
        /// Its version.
        version: String,
    },
    /// The probe died again and again without a problem to blame.
    #[error("the probe ended by itself {0} times")]
    Unstable(usize),
    /// The library loads, but does not ask for what every version asks for.
    #[error("libMIOpen did not ask for `{expected}` in a first, small problem: {reason}")]
    SelfTest {
        /// The kernel that it should have asked for.
        expected: &'static str,
        /// What it did instead.
        reason: String,
    },
    /// A temporary file can't be written.
    #[error("failed to write `{path}`")]
    Scratch {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A database can't be read.
    #[error("failed to read the database `{path}`")]
    Database {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A kernel database for the target is not among those given.
    #[error("failed to find a kernel database that `{target}` reads among those given")]
    NoKernelDatabase {
        /// The target.
        target: Target,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl AskError {
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
            Self::MissingSymbols { .. } | Self::MissingFunction { .. } | Self::SelfTest { .. } => {
                "this version of MIOpen is not supported yet; use another one".to_owned()
            }
            Self::Start { .. } | Self::ProbeVersion { .. } => {
                "install gfxpack-miopen-probe of the same version beside gfxpack".to_owned()
            }
            Self::NoPreload { .. } => {
                "it comes with gfxpack's packages, and `cargo build` makes it beside gfxpack: copy it \
                 too"
                .to_owned()
            }
            Self::NoKernelDatabase { target } => format!(
                "MIOpen reads {} on such a device, and only where that is missing {}.kdb",
                target.kdb_file_name(),
                target.id().db_id()
            ),
            _ => return None,
        })
    }
}
