//! GPUs, and where what is known of them comes from.

use std::fmt;

use gfxpack_model::{Target, TargetId};

/// Where the facts about a device come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// `MIOPEN_DEVICE_ARCH` names it, whatever is built in.
    Environment,
    /// The HIP runtime library, which is what MIOpen asks.
    Hip,
    /// The kernel driver's topology below `/sys/class/kfd`.
    Kfd,
    /// The PCI device ID alone: the compute units are not known.
    Pci,
}

impl Source {
    /// The source in machine-readable output: `kfd`.
    #[must_use]
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
    /// Processor and features, as `gfx90a:sramecc+:xnack-`. A feature whose
    /// state the source does not tell is "any".
    pub target_id: TargetId,
    /// Compute units as MIOpen counts them: from gfx10 on, work-group
    /// processors of two. `None` where the source does not tell.
    pub compute_units: Option<u32>,
    /// Where the two above come from.
    pub source: Source,
    /// Its product name, if it is known.
    pub name: Option<String>,
    /// Its place on the PCI bus, as `0000:03:00.0`.
    pub pci: Option<String>,
}

impl Device {
    /// What MIOpen looks for on this device; device-wide where the count of
    /// compute units is not known.
    #[must_use]
    pub fn target(&self) -> Target {
        Target::new(self.target_id.clone(), self.compute_units)
    }

    /// The targets of the kdbs that serve this device, the one MIOpen asks
    /// first standing first: exactly its compute units, then device-wide.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let exact = self.target();
        let wide = Target::new(self.target_id.clone(), None);
        if exact == wide { vec![wide] } else { vec![exact, wide] }
    }
}

/// As `gfx90a:sramecc+:xnack-@104  gfx90a68.kdb gfx90a.kdb  Instinct MI210,
/// 0000:c7:00.0 (HIP runtime)`.
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

/// What was found, and what stood in the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detection {
    /// The GPUs in the source's own order, which for HIP is that of its
    /// device numbers.
    pub devices: Vec<Device>,
    /// Sentences for people: what could not be asked, what was overridden.
    pub notes: Vec<String>,
    /// The HIP runtime library that was asked, with its version where it
    /// tells one: `libamdhip64.so.6 (6.3.42134)`.
    pub hip: Option<String>,
}
