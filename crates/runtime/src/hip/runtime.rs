//! Loads the HIP runtime library, and lists its devices.

use std::ffi::{CStr, c_int};
use std::path::Path;

use super::error::HipError;
#[cfg(not(feature = "hip-sys"))]
use super::error::LIBRARY_NAMES;
use super::library::{self, Functions, GetText, Layout};
use crate::device::kinds::{Device, Source};
use crate::device::name::parse_name;

/// `hipDeviceAttributeMultiprocessorCount`, the same from HIP 5 to 7; in 4 it
/// was 14, which is why no older library is tried.
const MULTIPROCESSOR_COUNT: c_int = 63;
/// `hipErrorNoDevice` and `hipErrorInvalidDevice`: there is no GPU.
const NO_DEVICE: [c_int; 2] = [100, 101];
/// More devices than any machine has: limits the effect of a bad library.
const MAX_DEVICES: c_int = 1024;
/// Buffer size for strings whose length is passed to HIP.
const TEXT: usize = 256;
/// Buffer size for properties. The structs have 792 and 1472 bytes, so there is
/// room for larger ones.
const PROPERTIES: usize = 8192;

/// The loaded HIP runtime library. Clones share it.
#[derive(Debug, Clone)]
pub struct Hip {
    pub(super) library: String,
    pub(super) functions: Functions,
}

impl Hip {
    /// The HIP runtime that is already loaded in this process, else the newest
    /// that the dynamic loader finds.
    ///
    /// With the feature `hip-sys`: the one that the program was linked with.
    ///
    /// # Errors
    /// [`HipError::NotInstalled`], or why the library that was found can't be
    /// used.
    pub fn installed() -> Result<Self, HipError> {
        #[cfg(feature = "hip-sys")]
        return Ok(Self { library: "libamdhip64.so".to_owned(), functions: library::linked() });
        #[cfg(not(feature = "hip-sys"))]
        {
            // Two HIP runtimes in one process would compete for the devices.
            for name in LIBRARY_NAMES {
                if let Ok(library) = library::open(name, library::RTLD_NOLOAD) {
                    return Self::new(name, library);
                }
            }
            let mut broken = None;
            for name in LIBRARY_NAMES {
                match library::open(name, 0) {
                    Ok(library) => return Self::new(name, library),
                    Err(source) if library::is_absent(name, &source) => {}
                    Err(source) => {
                        let library = name.to_owned();
                        broken = broken.or(Some(HipError::Load { library, source }));
                    }
                }
            }
            Err(broken.unwrap_or(HipError::NotInstalled))
        }
    }

    /// Loads the HIP runtime from this file.
    ///
    /// # Errors
    /// [`HipError::Load`] and [`HipError::Symbol`].
    pub fn load(path: &Path) -> Result<Self, HipError> {
        let name = path.display().to_string();
        match library::open(path, 0) {
            Ok(library) => Self::new(&name, library),
            Err(source) => Err(HipError::Load { library: name, source }),
        }
    }

    fn new(name: &str, library: libloading::os::unix::Library) -> Result<Self, HipError> {
        let functions = Functions::resolve(&library)
            .map_err(|symbol| HipError::Symbol { library: name.to_owned(), symbol })?;
        // The runtime has threads, and handlers that run at exit: it must stay
        // loaded as long as the process lives.
        std::mem::forget(library);
        Ok(Self { library: name.to_owned(), functions })
    }

    /// The library's name or path.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Name and version: `libamdhip64.so.6 (6.3.42134)`.
    pub fn describe(&self) -> String {
        let mut version: c_int = 0;
        let known = self.functions.get_version.is_some_and(|get_version| {
            // SAFETY: the function writes one int to the pointer, which is a live variable's.
            unsafe { get_version(&raw mut version) == 0 }
        });
        // HIP_VERSION: major * 10^7 + minor * 10^5 + patch.
        if known && version > 0 {
            let (major, minor) = (version / 10_000_000, version / 100_000 % 100);
            format!("{} ({major}.{minor}.{})", self.library, version % 100_000)
        } else {
            self.library.clone()
        }
    }

    /// The devices by number; for each, its properties or an error. Empty if
    /// there is no device.
    ///
    /// # Errors
    /// [`HipError::Call`] and [`HipError::Nonsense`] if the devices can't be
    /// counted.
    pub fn devices(&self) -> Result<Vec<Result<Device, HipError>>, HipError> {
        let mut count: c_int = 0;
        // SAFETY: the function writes one int to the pointer, which is a live variable's.
        let code = unsafe { (self.functions.get_device_count)(&raw mut count) };
        if NO_DEVICE.contains(&code) {
            return Ok(Vec::new());
        }
        self.check("hipGetDeviceCount", code)?;
        if !(0..=MAX_DEVICES).contains(&count) {
            return Err(self.nonsense("hipGetDeviceCount", format!("{count} devices")));
        }
        Ok((0..count).map(|number| self.device(number)).collect())
    }

    fn device(&self, number: c_int) -> Result<Device, HipError> {
        const CALL: &str = "hipGetDeviceProperties";
        let mut units: c_int = 0;
        // SAFETY: the function writes one int to the pointer, which is a live variable's.
        let code =
            unsafe { (self.functions.get_attribute)(&raw mut units, MULTIPROCESSOR_COUNT, number) };
        self.check("hipDeviceGetAttribute", code)?;

        #[repr(C, align(64))]
        struct Properties([u8; PROPERTIES]);
        let mut properties = Properties([0; PROPERTIES]);
        let pointer: *mut Properties = &raw mut properties;
        // SAFETY: the function writes a struct of at most 1472 bytes to the pointer, which is
        // that of 8192 writable ones, aligned for any type.
        let code = unsafe { (self.functions.get_properties)(pointer.cast(), number) };
        self.check(CALL, code)?;
        let Properties(bytes) = properties;
        let Layout { arch_name, multiprocessors } = self.functions.layout;
        let field: [u8; 4] =
            bytes[multiprocessors..multiprocessors + 4].try_into().expect("four bytes");
        if i32::from_ne_bytes(field) != units {
            // The struct's layout is not that of its version.
            let what =
                format!("{} compute units, and {units} elsewhere", i32::from_ne_bytes(field));
            return Err(self.nonsense(CALL, what));
        }
        let arch = text(&bytes[arch_name..arch_name + TEXT]).unwrap_or_default();
        let target_id = parse_name(&arch)
            .ok_or_else(|| self.nonsense(CALL, format!("a device called `{arch}`")))?;
        let compute_units = u32::try_from(units)
            .ok()
            .filter(|count| (1..=4095).contains(count))
            .ok_or_else(|| self.nonsense(CALL, format!("{units} compute units")))?;
        Ok(Device {
            target_id,
            compute_units: Some(compute_units),
            source: Source::Hip,
            name: self.functions.get_name.and_then(|get| get_text(get, number)),
            pci: self.functions.get_pci_bus_id.and_then(|get| get_text(get, number)),
        })
    }

    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), HipError> {
        match code {
            0 => Ok(()),
            code => Err(HipError::Call { library: self.library.clone(), call, code }),
        }
    }

    pub(super) fn nonsense(&self, call: &'static str, what: String) -> HipError {
        HipError::Nonsense { library: self.library.clone(), call, what }
    }
}

fn get_text(get: GetText, number: c_int) -> Option<String> {
    // Twice the size that is passed to the function.
    let mut buffer = [0_u8; 2 * TEXT];
    // SAFETY: the function writes at most the length given to the pointer, which has that.
    let code = unsafe { get(buffer.as_mut_ptr().cast(), TEXT as c_int, number) };
    if code == 0 { text(&buffer[..TEXT]) } else { None }
}

/// The text before the first NUL byte; `None` if there is no NUL byte, or the
/// text is empty or not printable.
fn text(bytes: &[u8]) -> Option<String> {
    let text = CStr::from_bytes_until_nul(bytes).ok()?.to_str().ok()?.trim();
    let printable = !text.is_empty() && !text.chars().any(char::is_control);
    printable.then(|| text.to_owned())
}
