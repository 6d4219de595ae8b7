//! Overrides from the environment: MIOpen's variables, and those of ROCm's
//! driver library.

use std::collections::BTreeMap;

use gfxpack_model::{TargetId, processors};

use super::kinds::{Detection, Device, Source};
use super::name::{self, parse_name};
use crate::environment::Environment;

/// MIOpen's own overrides.
///
/// Source: ROCm/MIOpen 2d1fd997a, `TargetProperties::Init`, `Handle::GetMaxComputeUnits`.
pub(super) struct Overrides {
    pub(super) target_id: Option<TargetId>,
    pub(super) compute_units: Option<u32>,
}

impl Overrides {
    pub(super) fn read(environment: &Environment, notes: &mut Vec<String>) -> Self {
        let set = |name| environment.value(name).map(|value| value.to_string_lossy());
        let target_id = set("MIOPEN_DEVICE_ARCH").and_then(|text| {
            let parsed = parse_name(&text);
            if parsed.is_none() {
                notes.push(format!("MIOPEN_DEVICE_ARCH `{text}` names no gfx processor; ignored"));
            }
            parsed
        });
        let compute_units = set("MIOPEN_DEVICE_CU").and_then(|text| {
            let parsed = text.parse().ok();
            if !parsed.is_some_and(|count| (0..=name::MAX_COMPUTE_UNITS).contains(&count)) {
                notes.push(format!(
                    "MIOPEN_DEVICE_CU `{text}` is no count of compute units; ignored"
                ));
                return None;
            }
            parsed.filter(|&count| count > 0)
        });
        Self { target_id, compute_units }
    }

    /// Overrides every device, as MIOpen does. Adds a device if none was found
    /// and the environment names one.
    pub(super) fn apply(self, detection: &mut Detection) {
        if let Some(target_id) = self.target_id {
            if detection.devices.is_empty() {
                detection.notes.push(
                    "MIOPEN_DEVICE_ARCH names the device, but not its compute units: \
                     set MIOPEN_DEVICE_CU too"
                        .to_owned(),
                );
                detection.devices.push(Device::named(target_id.clone(), None));
            }
            for device in &mut detection.devices {
                if device.target_id != target_id {
                    detection.notes.push(format!(
                        "MIOPEN_DEVICE_ARCH takes {} for {target_id}",
                        device.target_id
                    ));
                    device.target_id = target_id.clone();
                }
                device.source = Source::Environment;
            }
        }
        if let Some(count) = self.compute_units {
            for device in &mut detection.devices {
                if device.compute_units != Some(count) {
                    detection
                        .notes
                        .push(format!("MIOPEN_DEVICE_CU takes {} for @{count}", device.target()));
                    device.compute_units = Some(count);
                }
            }
        }
    }
}

/// The overrides by ROCm's driver library, which the HIP runtime obeys itself.
///
/// Source: ROCm/ROCR-Runtime, `topology_sysfs_get_node_props`.
pub(super) struct Driver {
    gfx_version: Option<TargetId>,
    /// By KFD node.
    of_node: BTreeMap<u32, TargetId>,
    xnack: bool,
}

impl Driver {
    pub(super) fn read(environment: &Environment, notes: &mut Vec<String>) -> Self {
        let mut read = |name: &str, text: &str, whom: &str| {
            let parsed = name::from_dotted_version(text);
            notes.push(match &parsed {
                Some(id) => format!("{name} takes {whom} for {id}"),
                None => format!("{name} `{text}` is no version as 10.3.0; ignored"),
            });
            parsed
        };
        let all = "HSA_OVERRIDE_GFX_VERSION";
        let version = environment.value(all).map(|value| value.to_string_lossy());
        let gfx_version = version.and_then(|text| read(all, &text, "every device"));
        let of_node = environment.node_overrides.iter().filter_map(|(node, text)| {
            Some((*node, read(&format!("{all}_{node}"), text, &format!("KFD node {node}"))?))
        });
        let of_node = of_node.collect();
        let xnack = environment.value("HSA_XNACK").is_some_and(|value| value == "1");
        Self { gfx_version, of_node, xnack }
    }

    /// The device that ROCm would report for this hardware, if that or what it is to be taken for is
    /// known. `node` is the number that the kernel driver gave it.
    pub(super) fn target_id(
        &self,
        node: Option<u32>,
        hardware: Option<TargetId>,
    ) -> Option<TargetId> {
        let own = node.and_then(|node| self.of_node.get(&node));
        let id = own.or(self.gfx_version.as_ref()).cloned().or(hardware)?;
        let xnack = self.xnack && processors::by_name(id.processor()).is_some_and(|p| p.xnack);
        Some(if xnack { id.with_features(None, Some(true)) } else { id })
    }
}
