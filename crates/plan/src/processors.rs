//! The AMD GPU processors that ROCm knows: names, ELF machine numbers,
//! features, and what a person would call the hardware.

/// One processor (gfx target without features) that the tools know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The gfx name, as `gfx90a`.
    pub name: &'static str,
    /// `EF_AMDGPU_MACH` in the low byte of an ELF code object's `e_flags`.
    ///
    /// Source: LLVM, `AMDGPUUsage`, "ELF header", table of `EF_AMDGPU_MACH` values.
    pub mach: u32,
    /// Whether target IDs of this processor may carry `:xnack+` or `:xnack-`.
    pub xnack: bool,
    /// Whether target IDs of this processor may carry `:sramecc+` or `:sramecc-`.
    pub sramecc: bool,
    /// The architecture's family, as `CDNA 2`.
    pub family: &'static str,
    /// Compute units of the products sold, as HIP counts them, ascending.
    pub compute_units: &'static [u32],
    /// Product names, shortened where a series shares one.
    pub products: &'static [&'static str],
    /// PCI device IDs (vendor 1002) where public, ascending.
    pub pci_ids: &'static [u16],
}

const fn p(
    name: &'static str,
    mach: u32,
    (xnack, sramecc): (bool, bool),
    family: &'static str,
    compute_units: &'static [u32],
    products: &'static [&'static str],
    pci_ids: &'static [u16],
) -> Processor {
    Processor { name, mach, xnack, sramecc, family, compute_units, products, pci_ids }
}

const NONE: (bool, bool) = (false, false);
const XNACK: (bool, bool) = (true, false);
const BOTH: (bool, bool) = (true, true);

/// Every known processor, ordered by name length and then by name.
pub const PROCESSORS: &[Processor] = &[
    p("gfx803", 0x2a, NONE, "GCN 3", &[], &[], &[]),
    p("gfx900", 0x2c, XNACK, "GCN 5", &[56, 64], &["Radeon RX Vega 56", "Radeon RX Vega 64"], &[0x687f]),
    p("gfx902", 0x2d, XNACK, "GCN 5", &[], &[], &[]),
    p("gfx904", 0x2e, XNACK, "GCN 5", &[], &[], &[]),
    p("gfx906", 0x2f, BOTH, "GCN 5.1", &[60, 64], &["Radeon Instinct MI50", "Radeon Instinct MI60", "Radeon VII"], &[0x66a0, 0x66a1, 0x66af]),
    p("gfx908", 0x30, BOTH, "CDNA 1", &[120], &["Instinct MI100"], &[0x738c]),
    p("gfx909", 0x31, XNACK, "GCN 5", &[], &[], &[]),
    p("gfx90a", 0x3f, BOTH, "CDNA 2", &[104, 110], &["Instinct MI210", "Instinct MI250", "Instinct MI250X"], &[0x7408, 0x740c, 0x740f]),
    p("gfx90c", 0x32, XNACK, "GCN 5", &[], &[], &[]),
    p("gfx940", 0x40, BOTH, "CDNA 3", &[], &[], &[]),
    p("gfx941", 0x4b, BOTH, "CDNA 3", &[], &[], &[]),
    p("gfx942", 0x4c, BOTH, "CDNA 3", &[228, 304], &["Instinct MI300A", "Instinct MI300X"], &[0x74a0, 0x74a1]),
    p("gfx950", 0x4f, BOTH, "CDNA 4", &[], &[], &[]),
    p("gfx1010", 0x33, XNACK, "RDNA 1", &[], &[], &[]),
    p("gfx1011", 0x34, XNACK, "RDNA 1", &[], &[], &[]),
    p("gfx1012", 0x35, XNACK, "RDNA 1", &[], &[], &[]),
    p("gfx1013", 0x42, XNACK, "RDNA 1", &[], &[], &[]),
    p("gfx1030", 0x36, NONE, "RDNA 2", &[30, 36, 40], &["Radeon RX 6800"], &[0x73bf]),
    p("gfx1031", 0x37, NONE, "RDNA 2", &[], &[], &[]),
    p("gfx1032", 0x38, NONE, "RDNA 2", &[], &[], &[]),
    p("gfx1033", 0x39, NONE, "RDNA 2", &[], &[], &[]),
    p("gfx1034", 0x3e, NONE, "RDNA 2", &[], &[], &[]),
    p("gfx1035", 0x3d, NONE, "RDNA 2", &[], &[], &[]),
    p("gfx1036", 0x45, NONE, "RDNA 2", &[], &[], &[]),
    p("gfx1100", 0x41, NONE, "RDNA 3", &[], &[], &[]),
    p("gfx1101", 0x46, NONE, "RDNA 3", &[], &[], &[]),
    p("gfx1102", 0x47, NONE, "RDNA 3", &[], &[], &[]),
    p("gfx1103", 0x44, NONE, "RDNA 3", &[], &[], &[]),
    p("gfx1150", 0x43, NONE, "RDNA 3.5", &[], &[], &[]),
    p("gfx1151", 0x4a, NONE, "RDNA 3.5", &[], &[], &[]),
    p("gfx1152", 0x55, NONE, "RDNA 3.5", &[], &[], &[]),
    p("gfx1153", 0x58, NONE, "RDNA 3.5", &[], &[], &[]),
    p("gfx1200", 0x48, NONE, "RDNA 4", &[], &[], &[]),
    p("gfx1201", 0x4e, NONE, "RDNA 4", &[], &[], &[]),
];

/// The processor of that name, if known.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Processor> {
    PROCESSORS.iter().find(|processor| processor.name == name)
}

/// The processor with that `EF_AMDGPU_MACH`, if known.
#[must_use]
pub fn by_mach(mach: u32) -> Option<&'static Processor> {
    PROCESSORS.iter().find(|processor| processor.mach == mach)
}
