//! GPUs, and the sources of their properties.

use std::fmt;

use gfxpack_model::{Target, TargetId};

/// The source of a device's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// `MIOPEN_DEVICE_ARCH`, whatever hardware is present.
    Environment,
    /// The HIP runtime library, which MIOpen uses too.
    Hip,
    /// The kernel driver's topology below `/sys/class/kfd`.
    Kfd,
    /// Only the PCI device ID: the compute units are not known.
    Pci,
}

impl Source {
    /// The source in machine-readable output: `kfd`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Hip => "hip",
            Self::Kfd => "kfd",
            Self::Pci => "pci",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "environment",
            Self::Hip => "HIP runtime",
            Self::Kfd => "kernel driver",
            Self::Pci => "PCI bus",
        })
    }
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Processor and features, as `gfx90a:sramecc+:xnack-`. A feature that the
    /// source does not report is "any".
    pub target_id: TargetId,
    /// Compute units as MIOpen counts them: from gfx10 on, work-group
    /// processors of two. `None` if the source does not report them.
    pub compute_units: Option<u32>,
    /// The source of the target ID and the compute units.
    pub source: Source,
    /// Its product name, if it is known.
    pub name: Option<String>,
    /// Its PCI address, as `0000:03:00.0`.
    pub pci: Option<String>,
}

impl Device {
    /// One that the environment names.
    pub(super) fn named(target_id: TargetId, compute_units: Option<u32>) -> Self {
        Self { target_id, compute_units, source: Source::Environment, name: None, pci: None }
    }

    /// The target that MIOpen looks for on this device; device-wide if the
    /// count of compute units is not known.
    pub fn target(&self) -> Target {
        Target::new(self.target_id.clone(), self.compute_units)
    }

    /// The targets of the kdbs for this device, in MIOpen's order: exactly its
    /// compute units, then device-wide.
    pub fn targets(&self) -> Vec<Target> {
        self.target().with_device_wide()
    }
}

/// Example: `gfx90a:sramecc+:xnack-@104  gfx90a68.kdb gfx90a.kdb  Instinct
/// MI210, 0000:c7:00.0 (HIP runtime)`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self.targets().iter().map(Target::kdb_file_name).collect();
        write!(f, "{}  {}  ", self.target(), files.join(" "))?;
        match (&self.name, &self.pci) {
            (Some(name), Some(pci)) => write!(f, "{name}, {pci} ")?,
            (Some(one), None) | (None, Some(one)) => write!(f, "{one} ")?,
            (None, None) => {}
        }
        write!(f, "({})", self.source)
    }
}

/// The detected devices, and notes on problems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detection {
    /// The GPUs in the source's own order; for HIP, by device number.
    pub devices: Vec<Device>,
    /// Sentences for people: which sources failed, and what was overridden.
    pub notes: Vec<String>,
    /// The HIP runtime library that was used, with its version if known:
    /// `libamdhip64.so.6 (6.3.42134)`.
    pub hip: Option<String>,
}
