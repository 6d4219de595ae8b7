//! Reads the PCI bus, which lists devices with or without a driver.

use std::path::Path;

use gfxpack_model::processors;

use super::kfd::{self, attribute, entries};
use super::kinds::{Device, Source};
use super::overrides::Driver;

/// AMD's vendor ID for GPUs (once ATI's); its CPUs have another.
const VENDOR: u16 = 0x1002;
/// Class codes of 24 bits: display controllers, and processing accelerators, as
/// compute cards call themselves.
///
/// Source: PCI Code and ID Assignment Specification, base classes 03h and 12h.
const BASE_CLASSES: [u32; 2] = [0x03, 0x12];

/// The AMD GPUs below `bus/pci/devices`, by address. Their compute units are
/// not known: boards with one ID are sold with several counts.
pub(super) fn devices(sysfs: &Path, driver: &Driver, notes: &mut Vec<String>) -> Vec<Device> {
    let mut devices = Vec::new();
    for (address, path) in entries(&sysfs.join("bus/pci/devices")) {
        let number = |name: &str| {
            let text = attribute(&path.join(name)).ok()?;
            u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        };
        let gpu = number("vendor") == Some(VENDOR.into())
            && number("class").is_some_and(|class| BASE_CLASSES.contains(&(class >> 16)));
        let Some(id) = number("device").and_then(|id| u16::try_from(id).ok()).filter(|_| gpu)
        else {
            continue;
        };
        let Some(hardware) = kfd::by_pci_id(id) else {
            notes.push(format!("the AMD GPU {VENDOR:04x}:{id:04x} at {address} is not known"));
            continue;
        };
        let products = processors::by_name(hardware.processor()).map(|p| p.products.join(", "));
        let Some(target_id) = driver.target_id(None, Some(hardware)) else { continue };
        devices.push(Device {
            target_id,
            compute_units: None,
            source: Source::Pci,
            name: products.filter(|products| !products.is_empty()),
            pci: Some(address),
        });
    }
    if !devices.is_empty() {
        notes.push(
            "the devices are known by their PCI IDs alone: neither the HIP runtime nor the kernel \
             driver tells of them, so their compute units are not known"
                .to_owned(),
        );
    }
    devices
}
