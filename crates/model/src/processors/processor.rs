//! One processor.

/// One processor (gfx target without features) that the tools know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The gfx name, as `gfx90a`.
    pub name: &'static str,
    /// `EF_AMDGPU_MACH` in the low byte of an ELF code object's `e_flags`.
    ///
    /// Source: LLVM 22, `AMDGPUUsage`, "ELF header", table of `EF_AMDGPU_MACH`
    /// values; `gfx940` and `gfx941`, since removed, as LLVM 15 and 19 have them.
    pub mach: u32,
    /// Whether target IDs of this processor may carry `:xnack+` or `:xnack-`.
    ///
    /// Source: LLVM 22, `AMDGPUUsage`, "Processors", column "Target Features".
    pub xnack: bool,
    /// Whether target IDs of this processor may carry `:sramecc+` or `:sramecc-`.
    ///
    /// Source: as for [`xnack`](Self::xnack).
    pub sramecc: bool,
    /// The architecture's family, as `CDNA 2`.
    pub family: &'static str,
    /// The compute-unit counts of the products sold, as in kdb names;
    /// ascending.
    ///
    /// Up to gfx9 these are compute units. From gfx10 on they are work-group
    /// processors, of two compute units each: HIP counts those, so MIOpen looks
    /// for `gfx1030_40` on a Radeon RX 6900 XT, which is sold with 80. One
    /// device of a product with two dies (MI250) is one die.
    ///
    /// Source: ROCm documentation, "AMD GPU specifications"; for products it
    /// leaves out, AMD GPUOpen `device_info`, `DeviceInfo.cpp`, and published
    /// product specifications. ROCm/MIOpen issue 1999 for the halving.
    pub compute_units: &'static [u32],
    /// Product names, shortened if a series shares one.
    ///
    /// Source: LLVM 22, `AMDGPUUsage`, "Processors"; libdrm, `amdgpu.ids`.
    pub products: &'static [&'static str],
    /// Public PCI device IDs (vendor 1002), ascending.
    ///
    /// An ID that revisions of two processors share is listed for the one that
    /// most of them have: 15d8 and 15dd for gfx902 (gfx909 has them too), 73ff
    /// for gfx1032 (one board has a gfx1031). IDs on which the sources disagree
    /// are left out.
    ///
    /// Source: ROCm/ROCR-Runtime, `libhsakmt/src/topology.c`,
    /// `gfxip_lookup_table`; AMD GPUOpen `device_info`, `DeviceInfo.cpp`; for
    /// what is newer, `pci.ids` and libdrm's `amdgpu.ids`.
    pub pci_ids: &'static [u16],
}

impl Processor {
    /// The compute-unit counts of a part of one device, where it can be divided (the modes DPX, QPX
    /// and CPX of an MI300X or MI355X): HIP shows each part as a device of its own. Ascending.
    ///
    /// Source: ROCm/k8s-device-plugin issue 157; ROCm/rocm-libraries issue 3522.
    #[must_use]
    pub fn partitions(&self) -> &'static [u32] {
        match self.name {
            "gfx942" => &[38, 76, 114, 152],
            "gfx950" => &[32, 64, 128],
            _ => &[],
        }
    }
}
