//! The GPUs, and whether programs can reach them.

use std::path::Path;

use gfxpack_runtime::device::{Detection, Source};
use gfxpack_runtime::{Environment, Target};
use rustix::fs::Access;

use super::Checks;
use crate::args::Doctor;
use crate::commands::detect;
use crate::fail::Result;

const ABOUT: &str = "device";
/// What programs open to compute.
const KFD: &str = "/dev/kfd";

/// The targets that the further checks are about.
pub(super) fn check(
    args: &Doctor,
    environment: &Environment,
    checks: &mut Checks<'_>,
) -> Result<Vec<Target>> {
    if let Some(target) = &args.asked.target {
        checks.note(ABOUT, format!("{target}, as given; the hardware is not asked"));
        return Ok(vec![target.clone()]);
    }
    let detection = detect::detect(&args.asked.hardware, environment)?;
    for device in &detection.devices {
        checks.ok(ABOUT, detect::in_words(device));
    }
    for note in &detection.notes {
        checks.note(ABOUT, note.clone());
    }
    judge(&detection, checks);
    if !detection.devices.is_empty() && args.asked.hardware.sysfs == Path::new("/sys") {
        access(checks);
    }
    let mut targets: Vec<Target> = Vec::new();
    for device in &detection.devices {
        if !targets.contains(&device.target()) {
            targets.push(device.target());
        }
    }
    Ok(targets)
}

fn judge(detection: &Detection, checks: &mut Checks<'_>) {
    match detection.devices.first().map(|device| device.source) {
        None => checks.problem(
            ABOUT,
            "no AMD GPU was found",
            "on a machine that has one, load the driver amdgpu (`modprobe amdgpu`; `dmesg` tells what \
             it says); for another machine's, say --target",
        ),
        Some(Source::Pci) => checks.problem(
            ABOUT,
            "the GPU can't be used to compute: the driver amdgpu does not offer it",
            "`modprobe amdgpu`, and see `dmesg`; in a container, pass /dev/kfd and /dev/dri on",
        ),
        Some(Source::Kfd) if detection.hip.is_some() => checks.problem(
            ABOUT,
            "the kernel driver knows a GPU, and the HIP runtime does not see it",
            "see HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, the rights to /dev/kfd, and whether \
             this ROCm release knows the GPU",
        ),
        Some(_) => {}
    }
}

/// Whether this user may open the device.
fn access(checks: &mut Checks<'_>) {
    match rustix::fs::access(KFD, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => checks.ok(ABOUT, format!("{KFD} may be opened")),
        Err(rustix::io::Errno::NOENT) => checks.problem(
            ABOUT,
            format!("{KFD} is not there"),
            "load the driver amdgpu; in a container, pass /dev/kfd and /dev/dri on",
        ),
        Err(error) => checks.problem(
            ABOUT,
            format!("{KFD} may not be opened by this user: {error}"),
            "add the user to its group: `usermod -a -G render,video USER`, and log in again",
        ),
    }
}
