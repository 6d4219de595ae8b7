//! The properties of the supported libraries of ROCm.

use std::path::PathBuf;

/// A library of ROCm that can be asked which kernels it would compile.
#[derive(Debug)]
pub struct Product {
    /// Its usual name: `libMIOpen`.
    pub name: &'static str,
    /// The beginning of its file names: `libMIOpen.so`.
    pub file: &'static str,
    /// The name by which programs load it: `libMIOpen.so.1`.
    pub soname: &'static str,
    /// A function that no other library defines.
    pub function: &'static str,
    /// The command-line option for its location.
    pub option: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// Debian's packages that belong to it, used in the same version.
    pub companions: &'static [&'static str],
    /// The package of these with databases.
    pub databases_package: Option<&'static str>,
    /// A program that belongs to it.
    pub driver: Option<&'static str>,
    /// The directories of its databases, below a root.
    pub databases: &'static [&'static str],
    /// Finds its version in its constants.
    pub version: fn(&[u8]) -> Option<String>,
    /// Finds its version in the trees that it may be in.
    pub version_of_tree: fn(&[PathBuf]) -> Option<String>,
}
