//! From a probed toolchain to the facts of it that a plan is made with.

use gfxpack_model::Language;
use gfxpack_plan::plan::PlanToolchain;
use gfxpack_toolchain::Toolchain;

/// The facts of a toolchain that a plan is made with.
#[must_use]
pub fn for_plan(toolchain: &Toolchain) -> PlanToolchain {
    PlanToolchain {
        identity: toolchain.identity(),
        digest: toolchain.digest,
        opencl_c: toolchain.digest_for(Language::OpenclC),
        assembly: toolchain.digest_for(Language::Assembly),
        supplied: toolchain.supplied.clone(),
        facts: toolchain.facts(),
    }
}
