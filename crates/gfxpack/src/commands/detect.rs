//! `detect`: this machine's GPUs, and the packages to install for them.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_model::{Target, package_name};
use gfxpack_package::{PackageManager, one_for_each};
use gfxpack_runtime::Environment;
use gfxpack_runtime::device::{self, Detection, Device, HipLibrary, Inputs};

use crate::args::{Detect, Hardware, SYSFS, Which};
use crate::fail::{self, Error, ErrorKind, Result};
use crate::output::{Output, message};

/// Prints devices, or the names of packages.
///
/// # Errors
/// If there is no GPU, or the package manager does not answer.
pub(crate) fn run(args: &Detect, output: &Output) -> Result {
    let detection = detect(&args.hardware, &Environment::read())?;
    let packages = packages(&detection.devices, args, output)?;
    for (device, packages) in detection.devices.iter().zip(&packages) {
        message!(output, "device", {
            "target": device.target(), "gfx": device.target_id.processor(),
            "target_id": device.target_id, "compute_units": device.compute_units,
            "source": device.source.name(), "name": device.name, "pci": device.pci,
            "kdbs": device.targets().iter().map(Target::kdb_file_name).collect::<Vec<_>>(),
            "packages": packages,
        });
        if args.packages.is_none() {
            output.text(&device.to_string());
        }
    }
    if args.packages.is_some() {
        let mut printed = BTreeSet::new();
        for name in packages.iter().flatten().filter(|name| printed.insert(name.as_str())) {
            output.text(name);
        }
    }
    if let Some(hip) = &detection.hip
        && output.verbose
    {
        output.info(&format!("asked {hip}"));
    }
    for note in &detection.notes {
        output.note(note);
    }
    if detection.devices.is_empty() { Err(no_gpu(OTHERS)) } else { Ok(()) }
}

/// What to do about packages for GPUs that are not here.
pub(super) const OTHERS: &str =
    "for other machines' GPUs, say which: `gfxpack install --target gfx1100`";

/// The error that there is no GPU for which packages could be installed.
pub(super) fn no_gpu(hint: &str) -> Error {
    let hint = format!("`gfxpack doctor` tells why none was found; {hint}");
    Error::new(ErrorKind::NotFound, "failed to find an AMD GPU in this machine", hint)
}

/// Detects this machine's GPUs, as the command line and the environment demand.
///
/// # Errors
/// If the directory given as sysfs does not exist.
pub(super) fn detect(hardware: &Hardware, environment: &Environment) -> Result<Detection> {
    // A container may have no sysfs, so the default is not checked.
    if hardware.sysfs != Path::new(SYSFS) && !hardware.sysfs.is_dir() {
        return Err(fail::usage(
            format!("failed to find the directory `{}`", hardware.sysfs.display()),
            "give --sysfs a sysfs, or a copy of one",
        ));
    }
    let mut inputs = Inputs::from_environment(environment);
    inputs.sysfs.clone_from(&hardware.sysfs);
    if hardware.no_hip {
        inputs.hip = HipLibrary::None;
    }
    Ok(device::detect(&inputs))
}

/// By device: the names of packages to print.
fn packages(devices: &[Device], args: &Detect, output: &Output) -> Result<Vec<Vec<String>>> {
    let all: Vec<Vec<String>> =
        devices.iter().map(|device| candidates(&device.target(), &args.name_template)).collect();
    Ok(match args.packages {
        None | Some(Which::Both) => all,
        Some(Which::Exact) => all.into_iter().map(|names| names[..1].to_vec()).collect(),
        Some(Which::DeviceWide) => {
            all.into_iter().map(|names| names[names.len() - 1..].to_vec()).collect()
        }
        Some(Which::Preferred) => preferred(&all, output)?,
    })
}

/// The packages that may serve a device of this target: first the one for exactly its compute
/// units, if their number is known, then the one for any number.
pub(super) fn candidates(target: &Target, template: &str) -> Vec<String> {
    let targets = target.with_device_wide();
    targets.iter().map(|target| package_name::for_target(template, target)).collect()
}

/// One package for each device: the first of its candidates that the system's package manager
/// knows, else the last, which is for any number of compute units. Warns if no package
/// manager knows one.
fn preferred(devices: &[Vec<String>], output: &Output) -> Result<Vec<Vec<String>>> {
    let manager = PackageManager::installed();
    let known = match &manager {
        Some(manager) => one_for_each(devices, |name| manager.knows(name, &[]))?,
        None => {
            output.warn("there is no apt, zypper or dnf to ask which packages there are");
            vec![None; devices.len()]
        }
    };
    let chosen = devices.iter().zip(known).map(|(names, known)| match known {
        Some(name) => vec![name],
        None => {
            if manager.is_some() {
                output.warn(&format!(
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
