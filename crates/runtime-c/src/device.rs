//! Which GPUs this machine has.
#![expect(unsafe_code, reason = "exports functions that take handles and texts")]

use std::ffi::{CString, c_char};
use std::ptr::null;

use gfxpack_runtime::Environment;
use gfxpack_runtime::device::{self, Detection, HipLibrary, Inputs, Source};

use crate::boundary::{answer, hand_out, take_back};
use crate::status::Status;
use crate::text::{c_text, path, pointer};

/// The GPUs of this machine, and what stood in the way of finding them.
///
/// The caller owns it and ends it with gfxpack_devices_free(). Whatever it
/// hands out belongs to it and is good until then. Nothing about it changes:
/// any number of threads may use it.
#[derive(Debug)]
pub struct Devices {
    devices: Vec<Device>,
    notes: Vec<CString>,
    hip: Option<CString>,
}

/// One GPU. It belongs to the gfxpack_devices that it came from.
#[derive(Debug)]
pub struct Device {
    target: CString,
    compute_units: u32,
    source: DeviceSource,
    name: Option<CString>,
    pci: Option<CString>,
}

/// Where the facts about a device come from.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceSource {
    /// None of the others.
    Unknown = 0,
    /// MIOPEN_DEVICE_ARCH names it, whatever is built in.
    Environment = 1,
    /// The HIP runtime library, which is what MIOpen asks.
    Hip = 2,
    /// The kernel driver's topology below /sys/class/kfd.
    Kfd = 3,
    /// The PCI device ID alone: the compute units are not known.
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

/// Finds the GPUs: the HIP runtime is asked first, then the kernel driver, then
/// the PCI bus; the environment overrides all of them.
///
/// `sysfs` is where the kernel driver and the PCI bus are looked at, null for
/// "/sys". `hip_library` is the HIP runtime's file, null for the one that is
/// loaded or installed, empty to ask none; loading it runs its code, and it
/// stays loaded. That there is no GPU, or no way to find out, is
/// GFXPACK_STATUS_OK and a count of 0. `out` receives devices that the caller
/// owns, or null. This reads the environment, which no other thread may change
/// meanwhile; any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_detect(
    sysfs: *const c_char,
    hip_library: *const c_char,
    out: *mut *mut Devices,
) -> Status {
    // SAFETY: null, or to be read and written, as the documentation asks.
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

/// Ends devices and all that they handed out. Null is fine. Any thread may call
/// this, once no other uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_free(devices: *mut Devices) {
    // SAFETY: null, or the caller's own, which it uses no more, as the documentation asks.
    unsafe { take_back(devices) }
}

/// How many GPUs there are; 0 for null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_count(devices: *const Devices) -> usize {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(0, || unsafe { devices.as_ref() }.map_or(0, |it| it.devices.len()))
}

/// One of them, counted from 0, in the order of HIP's device numbers where HIP
/// was asked; null past the last one. Owned by `devices`. Any thread may call
/// this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_get(
    devices: *const Devices,
    index: usize,
) -> *const Device {
    answer(null(), || {
        // SAFETY: null, or the caller's, which lives, as the documentation asks.
        let found = unsafe { devices.as_ref() }.map(|it| it.devices.as_slice());
        found.and_then(|found| found.get(index)).map_or(null(), std::ptr::from_ref)
    })
}

/// The HIP runtime library that was asked, "libamdhip64.so.6 (6.3.42134)"; null
/// where none was. Owned by `devices`. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_hip(devices: *const Devices) -> *const c_char {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(null(), || pointer(unsafe { devices.as_ref() }.and_then(|it| it.hip.as_ref())))
}

/// A sentence about what could not be asked or was overridden, counted from 0;
/// null past the last one. Owned by `devices`. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_devices_note(
    devices: *const Devices,
    index: usize,
) -> *const c_char {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(null(), || pointer(unsafe { devices.as_ref() }.and_then(|it| it.notes.get(index))))
}

/// What gfxpack_options_new() takes: "gfx90a:sramecc+:xnack-@104"; null for
/// null. Owned by the gfxpack_devices. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_target(device: *const Device) -> *const c_char {
    // SAFETY: null, or of devices that live, as the documentation asks.
    answer(null(), || pointer(unsafe { device.as_ref() }.map(|it| &it.target)))
}

/// Compute units as MIOpen counts them: from gfx10 on, work-group processors of
/// two. 0 where they are not known, and for null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_compute_units(device: *const Device) -> u32 {
    // SAFETY: null, or of devices that live, as the documentation asks.
    answer(0, || unsafe { device.as_ref() }.map_or(0, |it| it.compute_units))
}

/// Where the two above come from; GFXPACK_SOURCE_UNKNOWN for null. Any thread
/// may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_source(device: *const Device) -> DeviceSource {
    // SAFETY: null, or of devices that live, as the documentation asks.
    let device = || unsafe { device.as_ref() };
    answer(DeviceSource::Unknown, || device().map_or(DeviceSource::Unknown, |it| it.source))
}

/// What people call it; null where that is not told. Owned by the
/// gfxpack_devices. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_name(device: *const Device) -> *const c_char {
    // SAFETY: null, or of devices that live, as the documentation asks.
    answer(null(), || pointer(unsafe { device.as_ref() }.and_then(|it| it.name.as_ref())))
}

/// Its place on the PCI bus, "0000:03:00.0"; null where that is not told. Owned
/// by the gfxpack_devices. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_device_pci(device: *const Device) -> *const c_char {
    // SAFETY: null, or of devices that live, as the documentation asks.
    answer(null(), || pointer(unsafe { device.as_ref() }.and_then(|it| it.pci.as_ref())))
}
