//! Detects the GPUs of this machine, as MIOpen would name them. The HIP runtime
//! is tried first, then the kernel driver, then the PCI bus; the environment
//! overrides all of them.

mod inputs;
mod kfd;
pub(crate) mod kinds;
pub(crate) mod name;
mod overrides;
mod pci;
mod sysfs;

use gfxpack_model::in_full;

use crate::hip::{Hip, HipError, LIBRARY_NAMES};

pub use inputs::{HipLibrary, Inputs};
pub use kinds::{Detection, Device, Source};
pub use name::parse_name;
use overrides::{Driver, Overrides};

/// Finds the GPUs, from the first of HIP, KFD and PCI that has any.
///
/// Without a GPU, or a way to find out, the result has notes; this is not an
/// error. Loading the HIP runtime runs its code in this process. It stays
/// loaded.
#[must_use]
pub fn detect(inputs: &Inputs) -> Detection {
    let mut detection = Detection::default();
    let overrides = Overrides::read(inputs, &mut detection.notes);
    if let Overrides { target_id: Some(target_id), compute_units: Some(count) } = &overrides {
        // The environment gives everything; the hardware is not needed.
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
            detection.notes.push(in_full(&error));
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
                    Err(error) => detection.notes.push(in_full(&error)),
                }
            }
        }
        Err(error) => detection.notes.push(in_full(&error)),
    }
}

#[cfg(test)]
mod tests;
