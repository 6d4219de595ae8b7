//! All inputs of the detection of devices.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::environment::Environment;

/// Which HIP runtime library to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HipLibrary {
    /// The loaded library, or the one that the dynamic loader finds; see
    /// [`Hip::installed`](crate::hip::Hip::installed).
    #[default]
    Installed,
    /// This file.
    File(PathBuf),
    /// None: only the kernel driver and the PCI bus are used.
    None,
}

/// All inputs of a detection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// `MIOPEN_DEVICE_ARCH`: the name assumed for every device.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `TargetProperties::Init`.
    pub device_arch: Option<String>,
    /// `MIOPEN_DEVICE_CU`: the number of compute units assumed for every
    /// device; 0 is no override.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `Handle::GetMaxComputeUnits`.
    pub device_cu: Option<String>,
    /// `HSA_OVERRIDE_GFX_VERSION`, as `10.3.0`. The HIP runtime obeys it
    /// itself, so it is needed only if that is not used.
    ///
    /// Source: ROCm/ROCR-Runtime, `topology_sysfs_get_node_props`.
    pub hsa_override_gfx_version: Option<String>,
    /// `HSA_OVERRIDE_GFX_VERSION_<node>`: the same for one KFD node, by its number. It counts before
    /// the one for all.
    pub hsa_override_gfx_version_of_node: BTreeMap<u32, String>,
    /// `HSA_XNACK`: `1` turns XNACK on for devices that have it. The HIP
    /// runtime obeys it too.
    pub hsa_xnack: Option<String>,
    /// Which HIP runtime library to use.
    pub hip: HipLibrary,
    /// Root of sysfs: `/sys`, or a copy from another machine.
    pub sysfs: PathBuf,
}

impl Inputs {
    /// The inputs for this machine's hardware and these variables.
    #[must_use]
    pub fn from_environment(environment: &Environment) -> Self {
        let value =
            |name: &str| environment.value(name).map(|value| value.to_string_lossy().into_owned());
        Self {
            device_arch: value("MIOPEN_DEVICE_ARCH"),
            device_cu: value("MIOPEN_DEVICE_CU"),
            hsa_override_gfx_version: value("HSA_OVERRIDE_GFX_VERSION"),
            hsa_override_gfx_version_of_node: environment.node_overrides().clone(),
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
            hsa_override_gfx_version_of_node: BTreeMap::new(),
            hsa_xnack: None,
            hip: HipLibrary::Installed,
            sysfs: PathBuf::from("/sys"),
        }
    }
}
