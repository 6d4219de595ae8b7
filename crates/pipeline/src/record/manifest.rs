//! The format of the manifest: targets, files and packages, by names relative to
//! its directory.

use std::path::{Component, Path, PathBuf};

use gfxpack_model::Target;
use gfxpack_package::Written;
use serde::{Deserialize, Serialize};

use crate::kdb_inputs::KdbInputs;
use crate::ledger::AbsentCounts;

/// The contents of a directory with packages.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) generator: String,
    /// Whether every kernel asked for is in its kdb.
    pub(super) complete: bool,
    /// Sorted by target.
    pub(super) targets: Vec<KdbEntry>,
    /// Packages of families, with their bills of material.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) families: Vec<Package>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) beside: Vec<File>,
}

/// One kdb, with its packages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KdbEntry {
    pub(super) target: Target,
    pub(super) gfx: String,
    pub(super) kernels: u64,
    /// The inputs of the kdb.
    #[serde(flatten)]
    pub(crate) inputs: KdbInputs,
    pub(super) kdb: File,
    pub(super) packages: Vec<Package>,
    /// Bills of material and signatures of the packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) beside: Vec<File>,
    /// Performance and find databases in the packages, by their names in these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tuning: Vec<File>,
    /// How many wanted kernels the kdb does not have, by reason; `kernels.jsonl` lists them.
    #[serde(default, skip_serializing_if = "AbsentCounts::is_empty")]
    pub absent: AbsentCounts,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct File {
    pub(super) file: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Package {
    pub(super) format: String,
    pub(super) name: String,
    pub(super) version: String,
    #[serde(flatten)]
    pub(super) file: File,
    /// The paths at which the package installs the kdb and the databases. Empty
    /// for packages without a kdb.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) installs: Vec<String>,
    /// The packages that a metapackage depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) depends: Vec<String>,
}

impl File {
    pub(super) fn new(written: &Written) -> Self {
        let Written { file_name, size, sha256, .. } = written.clone();
        Self { file: file_name, size, sha256 }
    }
}

/// A name from a manifest as a path, if it stays within the directory.
pub(super) fn within(out: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    (!name.is_empty() && Path::new(name).components().all(plain)).then(|| out.join(name))
}

/// A file of a manifest, if it exists and has the recorded size.
pub(super) fn existing_file(out: &Path, file: &File) -> Option<Written> {
    let path = within(out, &file.file)?;
    (path.metadata().ok()?.len() == file.size).then(|| Written {
        file_name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        path,
        size: file.size,
        sha256: file.sha256.clone(),
    })
}
