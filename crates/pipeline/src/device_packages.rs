//! Which packages are for the devices of a machine.

use gfxpack_model::package_name;
use gfxpack_package::{PackageManager, one_for_each};
use gfxpack_runtime::device::Device;

use crate::error::Result;

/// The packages that may serve a device, the one for exactly its compute units
/// first; one where these are not known.
pub fn candidates(device: &Device, template: &str) -> Vec<String> {
    let targets = device.targets();
    targets.iter().map(|target| package_name::for_target(template, target)).collect()
}

/// One package for each device: the first of its candidates that the system's package manager
/// knows, else the last, which is for any number of compute units. `alone` is called where there
/// is no package manager to ask.
///
/// # Errors
/// Where the package manager does not answer.
pub fn preferred(devices: &[Vec<String>], alone: impl FnOnce()) -> Result<Vec<Vec<String>>> {
    let known = match PackageManager::installed() {
        Some(manager) => one_for_each(devices, |name| manager.knows(name, &[]))?,
        None => {
            alone();
            vec![None; devices.len()]
        }
    };
    let chosen = devices.iter().zip(known).map(|(names, known)| match known {
        Some(name) => vec![name],
        None => names[names.len() - 1..].to_vec(),
    });
    Ok(chosen.collect())
}
