//! The format of the manifest: targets, files and packages, by names relative to
//! its directory.

use std::path::{Component, Path, PathBuf};

use gfxpack_model::{Target, processors};
use gfxpack_package::Written;
use serde::{Deserialize, Serialize};

use crate::build::MissingKernel;
use crate::kdb_inputs::KdbInputs;
use crate::kernel_library::ProblemsFact;
use crate::text::{counted, if_any, joined};

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
    /// Kernels that the kdb lacks.
    pub missing: Vec<MissingKernel>,
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

impl KdbEntry {
    /// The GPU, and how many of the kernels that lists of problems or plans want are in the kdb.
    pub(super) fn notes(&self) -> Vec<String> {
        let id = self.target.id();
        let products = processors::by_name(id.processor()).map_or(&[][..], |known| known.products);
        let products = if_any(products.len(), |_| format!(": {}", joined(products)));
        let mut notes = vec![format!("for {}{products}", self.target)];
        let library = self.inputs.library();
        let mut lists: Vec<&ProblemsFact> = Vec::new();
        lists.extend(library.miopen.iter().flat_map(|facts| &facts.problems));
        lists.extend(library.rocfft.iter().flat_map(|facts| &facts.plans));
        let without = library.miopen.as_ref().map_or(0, |facts| facts.without_source.len());
        let skipped = library.skipped.get(&self.target).copied().unwrap_or_default();
        let lacking = (self.missing.len() + without) as u64 + skipped;
        if !lists.is_empty() {
            let names = joined(lists.iter().map(|list| list.name()));
            let extent = match lacking {
                _ if library.only_missing => "some kernels".to_owned(),
                0 => "every kernel".to_owned(),
                lacking => format!("all but {}", counted(lacking, "kernel")),
            };
            notes.push(format!("{extent} of {names}"));
        }
        notes
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(more: serde_json::Value) -> KdbEntry {
        let sha256 = "0".repeat(64);
        let mut entry = json!({
            "target": "gfx90a@104", "gfx": "gfx90a_104", "kernels": 3, "packages": [],
            "kdb": { "file": "kdb/gfx90a68.kdb", "size": 1, "sha256": sha256 },
            "missing": [],
            "library": { "asked": {
                "version": "3.4.0", "origin": "installed", "sha256": sha256, "uses": "search",
                "databases": [],
                "problems": [{ "file": "resnet50.txt", "problems": 2, "sha256": sha256 }],
            } },
        });
        let library = &mut entry["library"];
        for (name, value) in more.as_object().unwrap() {
            let place =
                if name == "without_source" { &mut library["asked"] } else { &mut *library };
            place[name] = value.clone();
        }
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn notes_have_the_number_of_kernels_of_the_lists_that_are_lacking() {
        let key = json!({ "kernel_name": "a.cl.o", "kernel_args": "" });
        for (more, extent) in [
            (json!({}), "every kernel"),
            (json!({ "without_source": [key] }), "all but 1 kernel"),
            (json!({ "skipped": { "gfx90a@104": 2, "gfx906": 5 } }), "all but 2 kernels"),
            (
                json!({ "skipped": { "gfx90a@104": 2 }, "without_source": [key] }),
                "all but 3 kernels",
            ),
            (json!({ "only_missing": true }), "some kernels"),
        ] {
            let notes = entry(more).notes();
            assert!(notes[0].starts_with("for gfx90a"), "{notes:?}");
            assert_eq!(notes[1..], [format!("{extent} of resnet50")]);
        }
    }
}
