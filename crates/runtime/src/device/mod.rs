//! Which GPUs this machine has, as MIOpen would call them: the HIP runtime is
//! asked first, then the kernel driver, then the PCI bus; the environment
//! overrides all of them.

mod kfd;
mod name;
mod overrides;
mod pci;

use std::fmt;
use std::path::{Path, PathBuf};

use gfxpack_model::{Target, TargetId};

use crate::environment::Environment;
use crate::hip::{Hip, HipError, LIBRARY_NAMES};
use crate::warning::chain;

pub use name::parse_name;
use overrides::{Driver, Overrides};

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
    /// What people call it, where that is told.
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

/// Which HIP runtime library is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HipLibrary {
    /// The one that is loaded already or that the dynamic loader finds; see
    /// [`Hip::installed`].
    #[default]
    Installed,
    /// This file.
    File(PathBuf),
    /// None: only the kernel driver and the PCI bus are asked.
    None,
}

/// All that a detection depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// `MIOPEN_DEVICE_ARCH`: every device is taken for this one.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `TargetProperties::Init`.
    pub device_arch: Option<String>,
    /// `MIOPEN_DEVICE_CU`: every device is taken to have so many compute
    /// units; 0 is no override.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `Handle::GetMaxComputeUnits`.
    pub device_cu: Option<String>,
    /// `HSA_OVERRIDE_GFX_VERSION`, as `10.3.0`. The HIP runtime obeys it by
    /// itself, so it matters where that is not asked.
    ///
    /// Source: ROCm/ROCR-Runtime, `topology_sysfs_get_node_props`.
    pub hsa_override_gfx_version: Option<String>,
    /// `HSA_XNACK`: `1` asks for XNACK on devices that have it. The HIP
    /// runtime obeys this one too.
    pub hsa_xnack: Option<String>,
    /// Which HIP runtime library is asked.
    pub hip: HipLibrary,
    /// Where sysfs is: `/sys`, or a copy of another machine's.
    pub sysfs: PathBuf,
}

impl Inputs {
    /// This machine's hardware, under these variables.
    #[must_use]
    pub fn from_environment(environment: &Environment) -> Self {
        let variables = environment.variables();
        let value = |name: &str| {
            variables.iter().find(|known| known.name == name).and_then(|known| known.value.clone())
        };
        Self {
            device_arch: value("MIOPEN_DEVICE_ARCH"),
            device_cu: value("MIOPEN_DEVICE_CU"),
            hsa_override_gfx_version: value("HSA_OVERRIDE_GFX_VERSION"),
            hsa_xnack: value("HSA_XNACK"),
            ..Self::default()
        }
    }
}

impl Default for Inputs {
    /// No variable set, this machine's sysfs, the installed HIP runtime.
    fn default() -> Self {
        Self {
            device_arch: None,
            device_cu: None,
            hsa_override_gfx_version: None,
            hsa_xnack: None,
            hip: HipLibrary::Installed,
            sysfs: PathBuf::from("/sys"),
        }
    }
}

/// Finds the GPUs. The first of HIP, KFD and PCI that knows any decides.
///
/// That there is none, or no way to find out, is an answer with notes and no
/// error. Loading the HIP runtime runs its code in this process; it stays
/// loaded.
#[must_use]
pub fn detect(inputs: &Inputs) -> Detection {
    let mut detection = Detection::default();
    let overrides = Overrides::read(inputs, &mut detection.notes);
    if let Overrides { target_id: Some(target_id), compute_units: Some(count) } = &overrides {
        // Nothing is left for the hardware to say.
        detection.devices.push(Device {
            target_id: target_id.clone(),
            compute_units: Some(*count),
            source: Source::Environment,
            name: None,
            pci: None,
        });
        detection.notes.push(format!(
            "MIOPEN_DEVICE_ARCH and MIOPEN_DEVICE_CU say {}; the hardware was not asked",
            detection.devices[0].target()
        ));
        return detection;
    }
    from_hip(&inputs.hip, &mut detection);
    if detection.devices.is_empty() {
        let driver = Driver::read(inputs, &mut detection.notes);
        detection.devices = kfd::devices(&inputs.sysfs, &driver, &mut detection.notes);
        if detection.devices.is_empty() {
            detection.devices = pci::devices(&inputs.sysfs, &driver, &mut detection.notes);
        }
    }
    overrides.apply(&mut detection);
    detection
}

fn from_hip(library: &HipLibrary, detection: &mut Detection) {
    let hip = match library {
        HipLibrary::None => return,
        HipLibrary::File(path) => Hip::load(path),
        HipLibrary::Installed => Hip::installed(),
    };
    let hip = match hip {
        Ok(hip) => hip,
        Err(HipError::NotInstalled) => {
            let names = LIBRARY_NAMES.join(", ");
            detection.notes.push(format!("no HIP runtime library is installed (tried {names})"));
            return;
        }
        Err(error) => {
            detection.notes.push(chain(&error));
            return;
        }
    };
    detection.hip = Some(hip.describe());
    match hip.devices() {
        Ok(found) if found.is_empty() => {
            detection.notes.push(format!("{} sees no device", hip.library()));
        }
        Ok(found) => {
            for device in found {
                match device {
                    Ok(device) => detection.devices.push(device),
                    Err(error) => detection.notes.push(chain(&error)),
                }
            }
        }
        Err(error) => detection.notes.push(chain(&error)),
    }
}

/// The text of a small file of sysfs, without the newline at its end.
fn attribute(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    /// sysfs gives a page at most.
    const LIMIT: u64 = 1 << 16;
    let mut text = String::new();
    std::fs::File::open(path)?.take(LIMIT).read_to_string(&mut text)?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// The entries of a directory of sysfs by name, or none.
fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let mut entries: Vec<(String, PathBuf)> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    entries.sort();
    entries
}

#[cfg(test)]
mod tests;
