//! The library's functions: their types, and how they are found, by the dynamic
//! loader or the linker.

use std::ffi::{c_char, c_int, c_void};

type GetCount = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
type GetProperties = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
pub(super) type GetText = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type LoadData = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int;
type GetFunction = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
type Unload = unsafe extern "C" fn(*mut c_void) -> c_int;

#[derive(Debug, Clone, Copy)]
pub(super) struct Functions {
    pub(super) get_device_count: GetCount,
    pub(super) get_attribute: GetAttribute,
    pub(super) get_properties: GetProperties,
    pub(super) layout: Layout,
    pub(super) get_version: Option<GetCount>,
    pub(super) get_name: Option<GetText>,
    pub(super) get_pci_bus_id: Option<GetText>,
    pub(super) load_data: LoadData,
    pub(super) get_function: GetFunction,
    pub(super) unload: Unload,
}

/// Offsets of the fields that are read from a device's properties.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// `gcnArchName`, of 256 bytes.
    pub(super) arch_name: usize,
    /// `multiProcessorCount`.
    pub(super) multiprocessors: usize,
}

/// `hipDeviceProp_tR0600`, which `hipGetDevicePropertiesR0600` fills.
const R0600: Layout = Layout { arch_name: 1160, multiprocessors: 388 };
/// HIP 5's `hipDeviceProp_t`, which `hipGetDeviceProperties` fills; newer
/// libraries keep that symbol for programs built then.
const R0000: Layout = Layout { arch_name: 396, multiprocessors: 336 };

/// Only returns a handle to a library that is already loaded.
///
/// Source: glibc, bits/dlfcn.h; musl, dlfcn.h.
#[cfg(not(feature = "hip-sys"))]
pub(super) const RTLD_NOLOAD: c_int = 4;

pub(super) fn open(
    name: impl libloading::AsFilename,
    more: c_int,
) -> Result<libloading::os::unix::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the library's initialisers run. Those of a HIP runtime may run in any thread, and
    // it is what the user installed under this name or gave; it is never unloaded while used.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL | more) }
}

/// Whether the loader found no such file. False if the file can't be loaded, or
/// if it needs another library that is missing.
#[cfg(not(feature = "hip-sys"))]
pub(super) fn is_absent(name: &str, error: &libloading::Error) -> bool {
    // The loader's own message is the source of the error.
    let text = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    // glibc: `libamdhip64.so.6: cannot open shared object file: No such file or directory`;
    // musl: `Error loading shared library libamdhip64.so.6: No such file or directory`.
    text.contains(&format!("{name}: ")) && text.contains("No such file or directory")
}

impl Functions {
    /// The functions of a library, or the first that is missing.
    pub(super) fn resolve(library: &libloading::os::unix::Library) -> Result<Self, &'static str> {
        macro_rules! symbol {
            ($name:literal, $type:ty) => {{
                // SAFETY: the type is that of HIP's function of this name, enums taken as ints.
                let symbol = unsafe { library.get::<$type>(concat!($name, "\0").as_bytes()) };
                symbol.map(|symbol| *symbol).map_err(|_| $name)
            }};
        }
        let (get_properties, layout) = match symbol!("hipGetDevicePropertiesR0600", GetProperties) {
            Ok(function) => (function, R0600),
            Err(_) => (symbol!("hipGetDeviceProperties", GetProperties)?, R0000),
        };
        Ok(Self {
            get_device_count: symbol!("hipGetDeviceCount", GetCount)?,
            get_attribute: symbol!("hipDeviceGetAttribute", GetAttribute)?,
            get_properties,
            layout,
            get_version: symbol!("hipRuntimeGetVersion", GetCount).ok(),
            get_name: symbol!("hipDeviceGetName", GetText).ok(),
            get_pci_bus_id: symbol!("hipDeviceGetPCIBusId", GetText).ok(),
            load_data: symbol!("hipModuleLoadData", LoadData)?,
            get_function: symbol!("hipModuleGetFunction", GetFunction)?,
            unload: symbol!("hipModuleUnload", Unload)?,
        })
    }
}

/// The functions that hip-sys links. Its enums are those of one release, so
/// numbers are passed as numbers.
#[cfg(feature = "hip-sys")]
pub(super) fn linked() -> Functions {
    macro_rules! function {
        ($name:ident, $type:ty) => {{
            let address = hip_sys::hiprt::$name as *const ();
            // SAFETY: the type is that of HIP's function of this name, enums taken as ints.
            unsafe { std::mem::transmute::<*const (), $type>(address) }
        }};
    }
    Functions {
        get_device_count: function!(hipGetDeviceCount, GetCount),
        get_attribute: function!(hipDeviceGetAttribute, GetAttribute),
        // The symbol without a release in its name fills HIP 5's struct in all of them.
        get_properties: function!(hipGetDeviceProperties, GetProperties),
        layout: R0000,
        get_version: Some(function!(hipRuntimeGetVersion, GetCount)),
        get_name: Some(function!(hipDeviceGetName, GetText)),
        get_pci_bus_id: Some(function!(hipDeviceGetPCIBusId, GetText)),
        load_data: function!(hipModuleLoadData, LoadData),
        get_function: function!(hipModuleGetFunction, GetFunction),
        unload: function!(hipModuleUnload, Unload),
    }
}
