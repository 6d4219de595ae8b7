//! The device that the stand-ins claim to have.

use std::ffi::CString;
use std::sync::OnceLock;

/// A GPU that is not present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedGpu {
    /// Processor and features, as in HIP's `gcnArchName`: `gfx90a:sramecc+:xnack-`, or the
    /// processor alone.
    pub architecture: CString,
    /// HIP's `multiProcessorCount`: compute units, or work group processors from gfx10 on.
    pub compute_units: u32,
}

static GPU: OnceLock<SimulatedGpu> = OnceLock::new();

/// Claims a device, once for the process. Before that, there is none.
///
/// # Panics
/// If a device was already claimed.
pub fn simulate_gpu(gpu: SimulatedGpu) {
    assert!(GPU.set(gpu).is_ok(), "a device was claimed already");
}

pub(crate) fn gpu() -> Option<&'static SimulatedGpu> {
    GPU.get()
}

impl SimulatedGpu {
    /// The number of lanes of a wavefront: 32 from gfx10 on, 64 before.
    ///
    /// Source: ROCm documentation, "GPU hardware specifications".
    pub fn warp_size(&self) -> u32 {
        let name = self.architecture.as_bytes();
        if [&b"gfx10"[..], b"gfx11", b"gfx12"].iter().any(|family| name.starts_with(family)) {
            32
        } else {
            64
        }
    }

    /// The size in bytes of a compute unit's local data share.
    ///
    /// Source: ROCm documentation, "GPU hardware specifications".
    pub fn shared_memory(&self) -> u32 {
        if self.architecture.as_bytes().starts_with(b"gfx950") { 160 << 10 } else { 64 << 10 }
    }
}
