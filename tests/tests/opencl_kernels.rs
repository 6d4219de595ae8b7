//! Runs every variant of every OpenCL C kernel in the built-in library on the CPU and compares it
//! with plain Rust.
//!
//! One test for each kernel key that the manifest expands to, named after it:
//! `cargo test -p gfxpack-tests --test opencl_kernels -- softmax.cl` runs
//! those of one source. The list comes from the manifest itself, so a new
//! source, variant or kernel without a reference fails.

mod opencl;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use libtest_mimic::{Arguments, Trial};

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    // PoCL would leave its compiled kernels in the user's cache, and take
    // them from there the next time.
    let cache = tempfile::tempdir().context("failed to create a directory for PoCL's cache")?;
    // SAFETY: no thread but this one runs yet.
    #[expect(unsafe_code, reason = "PoCL takes its settings from the environment")]
    unsafe {
        std::env::set_var("POCL_CACHE_DIR", cache.path());
    }
    let trials = opencl::keys()?.into_iter().map(|key| {
        Trial::test(key.name(), move || {
            opencl::check(&key).map_err(|error| format!("{error:#}").into())
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    Ok(conclusion.exit_code())
}
