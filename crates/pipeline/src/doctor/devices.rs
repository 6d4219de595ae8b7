//! The GPUs, and whether programs can reach them.

use gfxpack_runtime::Target;
use gfxpack_runtime::device::{Detection, Source};
use rustix::fs::Access;

use super::finding::Findings;

const ABOUT: &str = "device";
/// The device file that programs open for computing.
const KFD: &str = "/dev/kfd";

/// Notes that the target was given, so that the hardware is not checked.
pub fn check_target(target: &Target, findings: &mut Findings<'_>) {
    findings.note(ABOUT, format!("{target}, as given; the hardware is not asked"));
}

/// Checks the detected devices, and returns their targets without duplicates.
/// `is_here` says that sysfs is that of this machine and not a copy; only then
/// the user's access to the driver's device file is checked.
pub fn check_devices(
    detection: &Detection,
    is_here: bool,
    findings: &mut Findings<'_>,
) -> Vec<Target> {
    for device in &detection.devices {
        findings.ok(ABOUT, device.to_string());
    }
    for note in &detection.notes {
        findings.note(ABOUT, note.clone());
    }
    judge(detection, findings);
    if !detection.devices.is_empty() && is_here {
        access(findings);
    }
    let mut targets: Vec<Target> = Vec::new();
    for device in &detection.devices {
        if !targets.contains(&device.target()) {
            targets.push(device.target());
        }
    }
    targets
}

fn judge(detection: &Detection, findings: &mut Findings<'_>) {
    match detection.devices.first().map(|device| device.source) {
        None => findings.problem(
            ABOUT,
            "no AMD GPU was found",
            "on a machine that has one, load the driver amdgpu (`modprobe amdgpu`; `dmesg` tells what \
             it says); for another machine's, say --target",
        ),
        Some(Source::Pci) => findings.problem(
            ABOUT,
            "the GPU can't be used to compute: the driver amdgpu does not offer it",
            "`modprobe amdgpu`, and see `dmesg`; in a container, pass /dev/kfd and /dev/dri on",
        ),
        Some(Source::Kfd) if detection.hip.is_some() => findings.problem(
            ABOUT,
            "the kernel driver knows a GPU, and the HIP runtime does not see it",
            "see HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, the rights to /dev/kfd, and whether \
             this ROCm release knows the GPU",
        ),
        Some(_) => {}
    }
}

/// Checks that this user may open the device file.
fn access(findings: &mut Findings<'_>) {
    match rustix::fs::access(KFD, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => findings.ok(ABOUT, format!("{KFD} may be opened")),
        Err(rustix::io::Errno::NOENT) => findings.problem(
            ABOUT,
            format!("{KFD} is not there"),
            "load the driver amdgpu; in a container, pass /dev/kfd and /dev/dri on",
        ),
        Err(error) => findings.problem(
            ABOUT,
            format!("{KFD} may not be opened by this user: {error}"),
            "add the user to its group: `usermod -a -G render,video USER`, and log in again",
        ),
    }
}
