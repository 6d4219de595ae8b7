//! Runs every variant of every HIP kernel in the built-in library on the CPU and compares it with
//! plain Rust; also assembles every assembly kernel and executes it instruction by instruction.
//!
//! One test for each kernel key that the manifest expands to, named after it:
//! `cargo test -p gfxpack-tests --test hip_kernels -- softmax_hip` runs those
//! of one source. The list comes from the manifest itself, so a new source,
//! variant or kernel without a reference fails.

mod hip;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Arguments, Trial};

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let manifest = hip::manifest()?;
    let workshop = Arc::new(hip::Workshop::open()?);
    let tools = Arc::new(hip::gcn::Tools::find()?);
    let mut trials = Vec::new();
    for key in hip::keys(&manifest)? {
        let workshop = Arc::clone(&workshop);
        trials.push(Trial::test(key.name(), move || {
            hip::check(&workshop, &key).map_err(|error| format!("{error:?}").into())
        }));
    }
    let tools_here = Arc::clone(&tools);
    trials.push(Trial::test("assembly kernels name the parameter that is wrong", move || {
        hip::gcn::check_parameters(&tools_here).map_err(|error| format!("{error:?}").into())
    }));
    for key in hip::gcn::keys(&manifest)? {
        let tools = Arc::clone(&tools);
        trials.push(Trial::test(key.name(), move || {
            hip::gcn::check(&tools, &key).map_err(|error| format!("{error:?}").into())
        }));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    Ok(conclusion.exit_code())
}
