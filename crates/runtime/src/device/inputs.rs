//! All that the detection of devices depends on.

use std::path::PathBuf;

use crate::environment::Environment;

/// Which HIP runtime library is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HipLibrary {
    /// The one that is loaded already or that the dynamic loader finds; see
    /// [`Hip::installed`](crate::hip::Hip::installed).
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
    /// Root of sysfs: `/sys`, or a copy from another machine.
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
