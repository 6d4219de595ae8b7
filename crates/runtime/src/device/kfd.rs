//! Reads the kernel driver's topology: one directory per CPU and GPU.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gfxpack_model::TargetId;
use gfxpack_model::processors::PROCESSORS;

use super::kinds::{Device, Source};
use super::name;
use super::overrides::Driver;
use crate::explain;

/// The GPUs below `class/kfd`, by node number.
///
/// Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c, `node_show`;
/// ROCm/ROCR-Runtime, libhsakmt, topology.c.
pub(super) fn devices(sysfs: &Path, driver: &Driver, notes: &mut Vec<String>) -> Vec<Device> {
    let nodes = sysfs.join("class/kfd/kfd/topology/nodes");
    let mut nodes: Vec<(u32, PathBuf)> = entries(&nodes)
        .into_iter()
        .filter_map(|(name, path)| Some((name.parse().ok()?, path)))
        .collect();
    nodes.sort();
    if nodes.is_empty() {
        notes.push(
            "the kernel driver amdgpu offers no compute devices (no KFD topology)".to_owned(),
        );
    }
    let mut devices = Vec::new();
    for (node, path) in nodes {
        match attribute(&path.join("properties")) {
            Ok(text) => devices.extend(device(&properties(&text), node, driver, notes)),
            // In a container: nodes of devices that the container may not use.
            Err(error) => notes.push(format!("KFD node {node} can't be read: {error}")),
        }
    }
    devices
}

/// Parses `name value` lines; other lines are left out.
fn properties(text: &str) -> BTreeMap<&str, u64> {
    let property = |line| {
        let (name, value): (&str, &str) = str::split_once(line, ' ')?;
        Some((name, value.trim().parse().ok()?))
    };
    text.lines().filter_map(property).collect()
}

fn device(
    properties: &BTreeMap<&str, u64>,
    node: u32,
    driver: &Driver,
    notes: &mut Vec<String>,
) -> Option<Device> {
    let number = |name: &str| properties.get(name).copied().unwrap_or(0);
    let simds = number("simd_count");
    if simds == 0 {
        // A CPU.
        return None;
    }
    // Drivers before Linux 5.14 do not report the version.
    let hardware = match number("gfx_target_version") {
        0 => u16::try_from(number("device_id")).ok().and_then(by_pci_id),
        version => name::from_version(version),
    };
    let Some(target_id) = driver.target_id(Some(node), hardware) else {
        notes.push(format!(
            "KFD node {node} is a GPU of a kind that is not known (gfx_target_version {}, device \
             {:04x})",
            number("gfx_target_version"),
            number("device_id")
        ));
        return None;
    };
    let counted = simds.checked_div(number("simd_per_cu"));
    let counted = counted.map(|count| if target_id.counts_pairs() { count / 2 } else { count });
    let compute_units = counted
        .and_then(|count| u32::try_from(count).ok())
        .filter(|count| (1..=name::MAX_COMPUTE_UNITS).contains(count));
    if compute_units.is_none() {
        notes.push(format!("KFD node {node} tells no count of compute units"));
    }
    Some(Device {
        target_id,
        compute_units,
        source: Source::Kfd,
        name: None,
        pci: properties.get("location_id").map(|&location| {
            format!(
                "{:04x}:{:02x}:{:02x}.{:x}",
                number("domain") & 0xffff_ffff,
                location >> 8 & 0xff,
                location >> 3 & 0x1f,
                location & 7
            )
        }),
    })
}

/// The processor with that PCI device ID.
pub(super) fn by_pci_id(id: u16) -> Option<TargetId> {
    let processor = PROCESSORS.iter().find(|processor| processor.pci_ids.contains(&id))?;
    Some(TargetId::new(processor.name))
}

/// The text of a small file of sysfs, without its final newline.
pub(super) fn attribute(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    /// Larger than any file of sysfs, which is a page at most.
    const LIMIT: u64 = 1 << 16;
    let mut text = String::new();
    std::fs::File::open(path)?.take(LIMIT).read_to_string(&mut text)?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// The entries of a directory of sysfs by name; empty if it can't be read.
pub(super) fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let named = |path: PathBuf| Some((path.file_name()?.to_str()?.to_owned(), path));
    let mut entries: Vec<_> = explain::entries(directory).filter_map(named).collect();
    entries.sort();
    entries
}
