//! Detects the GPUs of this machine, as MIOpen would name them. The HIP runtime
//! is tried first, then the kernel driver, then the PCI bus; the environment
//! overrides all of them.

mod kfd;
pub(crate) mod kinds;
pub(crate) mod name;
mod overrides;
mod pci;

use std::path::PathBuf;

use gfxpack_model::in_full;

use crate::environment::Environment;
use crate::hip::{Hip, HipError, LIBRARY_NAMES};

pub use kinds::{Detection, Device, Source};
pub use name::parse_name;
use overrides::{Driver, Overrides};

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
    /// The variables that override what the hardware says.
    pub environment: Environment,
    /// Which HIP runtime library to use.
    pub hip: HipLibrary,
    /// Root of sysfs: `/sys`, or a copy from another machine.
    pub sysfs: PathBuf,
}

impl Inputs {
    /// The inputs for this machine's hardware and these variables.
    pub fn from_environment(environment: &Environment) -> Self {
        Self {
            environment: environment.clone(),
            hip: HipLibrary::Installed,
            sysfs: PathBuf::from("/sys"),
        }
    }
}

impl Default for Inputs {
    /// No variable set, this machine's sysfs, the installed HIP runtime.
    fn default() -> Self {
        Self::from_environment(&Environment::default())
    }
}

/// Finds the GPUs, from the first of HIP, KFD and PCI that has any.
///
/// Without a GPU, or a way to find out, the result has notes; this is not an
/// error. Loading the HIP runtime runs its code in this process. It stays
/// loaded.
pub fn detect(inputs: &Inputs) -> Detection {
    let mut detection = Detection::default();
    let overrides = Overrides::read(&inputs.environment, &mut detection.notes);
    if let Overrides { target_id: Some(target_id), compute_units: Some(count) } = &overrides {
        // The environment gives everything; the hardware is not needed.
        detection.devices.push(Device::named(target_id.clone(), Some(*count)));
        detection.notes.push(format!(
            "MIOPEN_DEVICE_ARCH and MIOPEN_DEVICE_CU say {}; the hardware was not asked",
            detection.devices[0].target()
        ));
        return detection;
    }
    from_hip(&inputs.hip, &mut detection);
    if detection.devices.is_empty() {
        let driver = Driver::read(&inputs.environment, &mut detection.notes);
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
