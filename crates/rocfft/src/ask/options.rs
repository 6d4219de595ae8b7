//! Whom to ask, and with what installed.

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
    // It tells the version when it is asked.
    version: |_| None,
    version_of_tree: |_| None,
};

/// Whom to ask for which device.
#[derive(Clone, Copy)]
pub struct AskOptions<'a> {
    /// The library.
    pub library: &'a Library,
    /// The program that loads it, which comes with gfxpack.
    pub probe: &'a Path,
    /// Where temporary files go if none can lie in memory.
    pub scratch: &'a Path,
    /// The processor without features: `gfx90a`.
    pub arch: &'a str,
    /// Its compute units. Kernels do not depend on them, only how they are started.
    pub compute_units: u32,
    /// Asked again and again whether the answer is still wanted.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// Where a library looks kernels up before it compiles them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed<'a> {
    /// Nowhere.
    Nothing,
    /// In this file.
    File(&'a Path),
    /// Where it looks by itself, in its own directory.
    Own,
}
