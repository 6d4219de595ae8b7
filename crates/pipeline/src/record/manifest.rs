//! The format of the manifest: targets, files and packages, by names relative to its directory.
//! And bills of material: a bill lists all archives of a package in a directory, whichever run made
//! them.

use std::path::{Component, Path, PathBuf};

use gfxpack_model::Target;
use gfxpack_package::Written;
use gfxpack_package::sbom;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kdb_inputs::KdbInputs;
use crate::ledger::AbsentCounts;
use crate::outputs::Outputs;
use crate::write_packages::{self, BillOfMaterial};

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

/// A file of the directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct File {
    pub(super) file: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

/// A package in one format.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Package {
    /// Its format, as `--format` names it.
    pub format: String,
    /// Its name.
    pub name: String,
    /// Its version and revision.
    pub version: String,
    #[serde(flatten)]
    pub(crate) file: File,
    /// The paths at which the package installs the kdb and the databases. Empty
    /// for packages without a kdb.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) installs: Vec<String>,
    /// The packages that a metapackage depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) depends: Vec<String>,
}

impl File {
    pub(crate) fn new(written: &Written) -> Self {
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

/// The file name of a package's bill, as [`sbom::file_name`] makes it.
pub(super) fn bill_name(package: &Package) -> String {
    format!("{}-{}.spdx.json", package.name, package.version)
}

/// Removes archives that are gone from a bill of an earlier run. `packages` are
/// those that stay.
pub(super) fn trimmed_bill(out: &Path, bill: File, packages: &[Package]) -> File {
    let own = packages.iter().filter(|package| bill_name(package) == bill.file);
    let there: Vec<&str> = own.map(|package| package.file.file.as_str()).collect();
    // If that fails, the bill lists archives that do not exist.
    match sbom::retain(out, &bill.file, &there) {
        Ok(Some(written)) => File::new(&written),
        _ => bill,
    }
}

/// Writes the bill for those of the `packages` that it covers, unless it is up to
/// date.
pub(super) fn write_bill(
    out: &Path,
    bill: &BillOfMaterial,
    packages: &[Package],
    outputs: &Outputs<'_>,
) -> Result<Written> {
    let name = sbom::file_name(&bill.spec);
    let own = packages.iter().filter(|package| bill_name(package) == name);
    let mut archives: Vec<Written> =
        own.filter_map(|package| existing_file(out, &package.file)).collect();
    // Sorted, so that one run gives the same bill as several.
    archives.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    let BillOfMaterial { spec, making, file_digests, checksums, .. } = bill;
    let decides = format!("{spec:?} {file_digests:?} {making:?}");
    let archived = archives.iter().flat_map(|archive| [&archive.file_name, &archive.sha256]);
    let fields = std::iter::once(&decides).chain(archived).map(String::as_bytes);
    let output = outputs.digest_of(&format!("spdx {name}"), fields);
    if let Some(written) = outputs.unchanged(&output) {
        return Ok(Written { path: out.join(&name), ..written });
    }
    let checksums = match checksums {
        Some(checksums) => checksums,
        None => &write_packages::checksums(spec, file_digests)?,
    };
    let written = sbom::write(spec, checksums, &archives, making, out)?;
    outputs.remember(&output, &written);
    Ok(written)
}
