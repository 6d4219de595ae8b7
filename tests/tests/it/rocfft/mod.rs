//! rocFFT's kernel cache with other programs, and with the real librocfft: asks it, and runs it
//! with built kernels.

mod asked;
mod built;
mod foreign;
#[path = "../../../../crates/rocfft/tests/it/support.rs"]
mod support;

use crate::support::miopen::probe;
use gfxpack_rocfft::{AskOptions, AskReport, FftPlan, Kernel, ask};
use gfxpack_stock_library::Library;

fn plans(lines: &[&str]) -> Vec<FftPlan> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

/// The library's answer for plans, and the kernels that it compiles for them.
fn asked(library: &Library, plans: &[FftPlan], arch: &str) -> (AskReport, Vec<Kernel>) {
    let mut kernels = Vec::new();
    let answer = with(library, arch, |options| {
        ask(plans, options, |kernel| {
            kernels.push(kernel);
            Ok(())
        })
    });
    (answer.unwrap_or_else(|error| panic!("{error}: {:?}", error.hint())), kernels)
}

/// Does something with the options for a processor.
fn with<T>(library: &Library, arch: &str, act: impl FnOnce(&AskOptions<'_>) -> T) -> T {
    act(&AskOptions {
        library,
        probe: &probe(),
        scratch: &std::env::temp_dir(),
        arch,
        compute_units: 64,
        cancelled: &|| false,
    })
}
