//! What a package's bill of materials is made of.

use gfxpack_model::Target;
use gfxpack_model::package::{Content, PackageSpec};
use gfxpack_package::sbom::{Checksums, Making};

use crate::error::{self, Result};
use crate::outputs::FileRecords;

/// What the bill of material of a package says, but for its archives: those
/// of earlier runs are known only when the directory's manifest is written.
pub(crate) struct Bill {
    /// The target of the package; none for a family's.
    pub(crate) target: Option<Target>,
    pub(crate) spec: PackageSpec,
    pub(crate) making: Making,
    /// SHA-256 of the spec's files, without those that are in memory.
    pub(crate) contents: Vec<String>,
    /// Those of the spec's files, if they had to be made anyway.
    pub(crate) checksums: Option<Vec<Checksums>>,
}

/// SHA-256 of the files that a spec names, in its order, without those that are
/// in memory.
pub(crate) fn contents(spec: &PackageSpec, records: &FileRecords<'_>) -> Result<Vec<String>> {
    let mut contents = Vec::new();
    for file in &spec.files {
        if let Content::File(path) = &file.content {
            contents.push(records.described(path).map_err(error::io("read", path))?.sha256);
        }
    }
    Ok(contents)
}

/// The checksums of a spec's files, of which the [`contents`] are known.
pub(crate) fn checksums(spec: &PackageSpec, contents: &[String]) -> Result<Vec<Checksums>> {
    let mut known = contents.iter().cloned();
    let of_file = |content: &Content| match content {
        Content::Bytes(_) => Checksums::from_content(content, None),
        Content::File(_) => Checksums::from_content(content, known.next()),
    };
    let checksums = spec.files.iter().map(|file| &file.content).map(of_file);
    Ok(checksums.collect::<std::result::Result<_, _>>()?)
}
