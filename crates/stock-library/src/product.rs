//! What tells one library of ROCm from another.

use std::path::PathBuf;

/// A library of ROCm that can be asked which kernels it would compile.
#[derive(Debug)]
pub struct Product {
    /// What people call it: `libMIOpen`.
    pub name: &'static str,
    /// What its file names begin with: `libMIOpen.so`.
    pub file: &'static str,
    /// What programs load it by: `libMIOpen.so.1`.
    pub soname: &'static str,
    /// A function that no other library defines.
    pub function: &'static str,
    /// The option of the command line that names one.
    pub option: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// Debian's packages that belong to it, taken in the same version.
    pub companions: &'static [&'static str],
    /// The one of these with databases.
    pub databases_package: Option<&'static str>,
    /// A program that belongs to it.
    pub driver: Option<&'static str>,
    /// Where its databases lie, below a root.
    pub databases: &'static [&'static str],
    /// Its version, as its constants tell it.
    pub version: fn(&[u8]) -> Option<String>,
    /// Its version, as the trees tell it that it may lie in.
    pub version_of_tree: fn(&[PathBuf]) -> Option<String>,
}
