//! The installation that is checked.

use std::path::{Path, PathBuf};

use gfxpack_kdb::MiopenVersion;
use gfxpack_runtime::explain::entries;
use gfxpack_runtime::{Environment, KdbDirectories, Target};

/// What is checked, and how.
#[derive(Debug, Clone, Copy)]
pub struct InstalledFiles<'a> {
    /// The environment variables that matter at run time.
    pub environment: &'a Environment,
    /// Where kernels are looked for.
    pub directories: &'a KdbDirectories,
    /// The devices that they are for.
    pub targets: &'a [Target],
    /// The versions of MIOpen that are installed.
    pub versions: &'a [MiopenVersion],
    /// Whether every kernel of the devices' kdbs is decoded and hashed.
    pub deep: bool,
}

/// The files in a directory with this extension, sorted.
pub(super) fn files_with_extension(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let files = entries(directory);
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|own| own == extension)).collect();
    files.sort();
    files
}
