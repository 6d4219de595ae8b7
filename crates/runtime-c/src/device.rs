//! The GPUs of this machine.
#![expect(unsafe_code, reason = "exports functions that take handles and texts")]

use std::ffi::{CString, c_char};
use std::ptr::null;

use gfxpack_runtime::Environment;
use gfxpack_runtime::device::{self, Detection, HipLibrary, Inputs, Source};

use crate::boundary::{hand_out, take_back};
use crate::status::Status;
use crate::text::{c_text, path, pointer};

/// The GPUs of this machine, and the problems in finding them.
///
/// The caller owns it and frees it with gfxpack_devices_free(). All that it
/// returns belongs to it and is valid until then. It never changes: any number
/// of threads may use it.
#[derive(Debug)]
pub struct Devices {
    devices: Vec<Device>,
    notes: Vec<CString>,
    hip: Option<CString>,
}

/// One GPU. Owned by the gfxpack_devices that returned it.
#[derive(Debug)]
pub struct Device {
    target: CString,
    compute_units: u32,
    source: DeviceSource,
    name: Option<CString>,
    pci: Option<CString>,
}

/// Where the properties of a device were found.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceSource {
    /// Another source.
    Unknown = 0,
    /// MIOPEN_DEVICE_ARCH, whatever GPU is installed.
    Environment = 1,
    /// The HIP runtime library, which MIOpen uses too.
    Hip = 2,
    /// The kernel driver's topology below /sys/class/kfd.
    Kfd = 3,
    /// The PCI device ID only: the compute units are unknown.
    Pci = 4,
}

impl From<Detection> for Devices {
    fn from(found: Detection) -> Self {
        Self {
            devices: found.devices.into_iter().map(Device::from).collect(),
            notes: found.notes.into_iter().map(c_text).collect(),
            hip: found.hip.map(c_text),
        }
    }
}

impl From<device::Device> for Device {
    fn from(device: device::Device) -> Self {
        Self {
            target: c_text(device.target().to_string()),
            compute_units: device.compute_units.unwrap_or(0),
            source: match device.source {
                Source::Environment => DeviceSource::Environment,
                Source::Hip => DeviceSource::Hip,
                Source::Kfd => DeviceSource::Kfd,
                Source::Pci => DeviceSource::Pci,
                _ => DeviceSource::Unknown,
            },
            name: device.name.map(c_text),
            pci: device.pci.map(c_text),
        }
    }
}

/// Finds the GPUs: with the HIP runtime first, then the kernel driver, then the
/// PCI bus; the environment overrides all of them.
///
/// `sysfs` is the directory in which to find the kernel driver and the PCI bus,
/// null for "/sys". `hip_library` is the HIP runtime's file, null for the one
/// that is loaded or installed, empty for none; loading it runs its code, and
/// it stays loaded. If there is no GPU, or no way to find out, this returns
/// GFXPACK_STATUS_OK and the count is 0. `out` receives devices that the caller
/// owns, or null. This reads the environment, which no other thread may change
/// meanwhile; any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_detect(
    sysfs: *const c_char,
    hip_library: *const c_char,
    out: *mut *mut Devices,
) -> Status {
    // SAFETY: null or valid for reads and writes, as the documentation requires.
    unsafe {
        hand_out(out, || {
            let mut inputs = Inputs::from_environment(&Environment::read());
            if let Some(sysfs) = path(sysfs) {
                inputs.sysfs = sysfs;
            }
            inputs.hip = match path(hip_library) {
                None => HipLibrary::Installed,
                Some(none) if none.as_os_str().is_empty() => HipLibrary::None,
                Some(file) => HipLibrary::File(file),
            };
            Ok((Devices::from(device::detect(&inputs)), Status::Ok))
        })
    }
}

/// Frees devices and all that they returned. Null is allowed. Any thread may
/// call this, once no other uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_free(devices: *mut Devices) {
    // SAFETY: null or a handle that is not used again, as the documentation requires.
    unsafe { take_back(devices) }
}

/// Number of GPUs; 0 for null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_count(devices: *const Devices) -> usize {
    // SAFETY: null or a live handle, as the documentation requires.
    unsafe { devices.as_ref() }.map_or(0, |it| it.devices.len())
}

/// One of the GPUs, counted from 0, in the order of HIP's device numbers if HIP
/// was used; null past the last one. Owned by `devices`. Any thread may call
/// this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_get(
    devices: *const Devices,
    index: usize,
) -> *const Device {
    // SAFETY: null or a live handle, as the documentation requires.
    let found = unsafe { devices.as_ref() }.and_then(|it| it.devices.get(index));
    found.map_or(null(), std::ptr::from_ref)
}

/// The HIP runtime library that was used, "libamdhip64.so.6 (6.3.42134)"; null
/// if none was. Owned by `devices`. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_hip(devices: *const Devices) -> *const c_char {
    // SAFETY: null or a live handle, as the documentation requires.
    pointer(unsafe { devices.as_ref() }.and_then(|it| it.hip.as_ref()))
}

/// A sentence about a source that could not be used or was overridden, counted
/// from 0; null past the last one. Owned by `devices`. Any thread may call
/// this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_note(
    devices: *const Devices,
    index: usize,
) -> *const c_char {
    // SAFETY: null or a live handle, as the documentation requires.
    pointer(unsafe { devices.as_ref() }.and_then(|it| it.notes.get(index)))
}

/// The target for gfxpack_options_new(): "gfx90a:sramecc+:xnack-@104"; null for
/// null. Owned by the gfxpack_devices. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_target(device: *const Device) -> *const c_char {
    // SAFETY: null or part of live devices, as the documentation requires.
    pointer(unsafe { device.as_ref() }.map(|it| &it.target))
}

/// Compute units as MIOpen counts them: from gfx10 on, work-group processors of
/// two. 0 if unknown, and for null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_compute_units(device: *const Device) -> u32 {
    // SAFETY: null or part of live devices, as the documentation requires.
    unsafe { device.as_ref() }.map_or(0, |it| it.compute_units)
}

/// Where the target and the compute units were found; GFXPACK_SOURCE_UNKNOWN
/// for null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_source(device: *const Device) -> DeviceSource {
    // SAFETY: null or part of live devices, as the documentation requires.
    unsafe { device.as_ref() }.map_or(DeviceSource::Unknown, |it| it.source)
}

/// The product name; null if unknown. Owned by the gfxpack_devices. Any thread
/// may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_name(device: *const Device) -> *const c_char {
    // SAFETY: null or part of live devices, as the documentation requires.
    pointer(unsafe { device.as_ref() }.and_then(|it| it.name.as_ref()))
}

/// Its address on the PCI bus, "0000:03:00.0"; null if unknown. Owned by the
/// gfxpack_devices. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_pci(device: *const Device) -> *const c_char {
    // SAFETY: null or part of live devices, as the documentation requires.
    pointer(unsafe { device.as_ref() }.and_then(|it| it.pci.as_ref()))
}
