//! `detect`: this machine's GPUs, and the packages to install for them.

use std::path::Path;

use gfxpack_model::package_name;
use gfxpack_runtime::Environment;
use gfxpack_runtime::device::{self, Detection, Device, HipLibrary, Inputs};
use serde_json::json;

use crate::args::{Detect, Hardware, SYSFS, Which};
use crate::fail::{self, Result};
use crate::output::Output;

/// Prints devices or package names; none of them where there is no GPU.
pub(crate) fn run(args: &Detect, output: &Output) -> Result {
    let detection = detect(&args.hardware, &Environment::read())?;
    for device in &detection.devices {
        print(device, args, output);
    }
    if let Some(which) = args.packages
        && !output.json
    {
        for name in names(&detection.devices, which, &args.name_template) {
            output.data(&name);
        }
    }
    if let Some(hip) = &detection.hip
        && output.verbose
    {
        output.say(&format!("asked {hip}"));
    }
    for note in &detection.notes {
        if output.json {
            output.message("note", &json!({ "message": note }));
        } else {
            output.say(&format!("note: {note}"));
        }
    }
    if detection.devices.is_empty() {
        output.say("no AMD GPU was found");
    }
    Ok(())
}

/// This machine's GPUs, as the command line and the environment have it.
///
/// # Errors
/// Where the sysfs that was named is none.
pub(super) fn detect(hardware: &Hardware, environment: &Environment) -> Result<Detection> {
    // A container may have none of its own.
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

/// The packages of one device, each once.
pub(super) fn names(devices: &[Device], which: Which, template: &str) -> Vec<String> {
    let mut names = Vec::new();
    for device in devices {
        let targets = device.targets();
        let chosen = match which {
            Which::Both => &targets[..],
            // Where the count is not known, both are the device-wide one.
            Which::Exact => &targets[..1],
            Which::DeviceWide => &targets[targets.len() - 1..],
        };
        for target in chosen {
            let name = package_name::for_target(template, target);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn print(device: &Device, args: &Detect, output: &Output) {
    let target = device.target();
    if output.json {
        let which = args.packages.unwrap_or(Which::Both);
        let body = json!({
            "target": target, "gfx": device.target_id.processor(),
            "target_id": device.target_id, "compute_units": device.compute_units,
            "source": device.source.name(), "name": device.name, "pci": device.pci,
            "kdbs": device.targets().iter().map(|t| t.kdb_file_name()).collect::<Vec<_>>(),
            "packages": names(std::slice::from_ref(device), which, &args.name_template),
        });
        output.message("device", &body);
    } else if args.packages.is_none() {
        output.data(&in_words(device));
    }
}

/// `gfx90a:sramecc+:xnack-@104  gfx90a68.kdb  Instinct MI210, 0000:c7:00.0 (HIP runtime)`.
pub(super) fn in_words(device: &Device) -> String {
    let files: Vec<String> = device.targets().iter().map(|t| t.kdb_file_name()).collect();
    let mut place: Vec<&str> = Vec::new();
    place.extend(device.name.as_deref());
    place.extend(device.pci.as_deref());
    let place = if place.is_empty() { String::new() } else { format!("{} ", place.join(", ")) };
    format!("{}  {}  {place}({})", device.target(), files.join(" "), device.source)
}
