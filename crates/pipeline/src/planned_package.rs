//! A package to be written.

use std::path::PathBuf;

use gfxpack_model::Target;
use gfxpack_model::package::PackageSpec;

use tempfile::TempDir;

use crate::build::MadeKdb;

/// A package to be written.
pub(crate) struct Planned<'a> {
    pub(crate) spec: PackageSpec,
    /// The same as a Python package, for kernels that MIOpen reads.
    pub(crate) python: Option<PackageSpec>,
    /// What it was made from, if it holds a kdb.
    pub kdb: Option<&'a MadeKdb>,
    /// The target it is for, if it is one's alone.
    pub target: Option<Target>,
    /// The performance and find databases in it, by their names there.
    pub tuning: Vec<(String, PathBuf)>,
    /// Where the files of families lie that were merged for their packages; the last one has it.
    pub(crate) scratch: Option<TempDir>,
}

impl Planned<'_> {
    /// A package of nothing but the spec.
    pub(crate) fn new(spec: PackageSpec, target: Option<Target>) -> Self {
        Self { spec, python: None, kdb: None, target, tuning: Vec::new(), scratch: None }
    }
}
