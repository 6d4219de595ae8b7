//! Which packages are for the devices of a machine.

use gfxpack_model::{Target, package_name};
use gfxpack_package::{PackageManager, one_for_each};

use crate::error::Result;

/// The packages that may serve a device of this target: first the one for exactly its compute
/// units, if their number is known, then the one for any number.
pub fn candidates(target: &Target, template: &str) -> Vec<String> {
    let targets = target.with_device_wide();
    targets.iter().map(|target| package_name::for_target(template, target)).collect()
}

/// One package for each device: the first of its candidates that the system's package manager
/// knows, else the last, which is for any number of compute units. `warn` gets a message if no
/// package manager knows one.
///
/// # Errors
/// If the package manager does not answer.
pub fn preferred(devices: &[Vec<String>], warn: impl Fn(&str)) -> Result<Vec<Vec<String>>> {
    let manager = PackageManager::installed();
    let known = match &manager {
        Some(manager) => one_for_each(devices, |name| manager.knows(name, &[]))?,
        None => {
            warn("there is no apt, zypper or dnf to ask which packages there are");
            vec![None; devices.len()]
        }
    };
    let chosen = devices.iter().zip(known).map(|(names, known)| match known {
        Some(name) => vec![name],
        None => {
            if manager.is_some() {
                warn(&format!(
                    "the package manager knows no package `{}`: add a repository that has one, or \
                     build it with `gfxpack dist`",
                    names.join("` and no `")
                ));
            }
            names[names.len() - 1..].to_vec()
        }
    });
    Ok(chosen.collect())
}
