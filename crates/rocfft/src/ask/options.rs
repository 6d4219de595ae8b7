//! Options of asking.

use std::path::Path;

use gfxpack_stock_library::{Library, Product};

/// librocfft.
pub static ROCFFT: Product = Product {
    name: "librocfft",
    file: "librocfft.so",
    soname: "librocfft.so.0",
    function: "rocfft_plan_create",
    option: "--rocfft",
    package: "librocfft0",
    companions: &[],
    databases_package: None,
    driver: None,
    databases: &[],
    // The version is known only after it was started.
    version: |_| None,
    version_of_tree: |_| None,
};

/// Options of asking.
#[derive(Clone, Copy)]
pub struct AskOptions<'a> {
    /// The library.
    pub library: &'a Library,
    /// The program that loads it, which comes with gfxpack.
    pub probe: &'a Path,
    /// The directory for temporary files if they can't be in memory.
    pub scratch: &'a Path,
    /// The processor without features: `gfx90a`.
    pub arch: &'a str,
    /// Its compute units. Kernels do not depend on them, only how they are launched.
    pub compute_units: u32,
    /// Called again and again; asking ends if it returns true.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// Where a library looks kernels up before it compiles them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledCache<'a> {
    /// Nowhere.
    Nothing,
    /// In this file.
    File(&'a Path),
    /// In its own directory, as by default.
    Own,
}
