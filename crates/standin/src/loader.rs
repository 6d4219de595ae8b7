//! The dynamic loader.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Loads a library, with these flags of `dlopen`.
///
/// # Errors
/// The loader's message.
pub fn load_library(path: &Path, flags: c_int) -> Result<*mut c_void, String> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: only the library's own initialisation runs.
    let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
    if handle.is_null() { Err(error()) } else { Ok(handle) }
}

/// The address of a symbol in a loaded library.
///
/// # Errors
/// The loader's message.
pub(crate) fn symbol(handle: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the handle belongs to a loaded library.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() { Err(error()) } else { Ok(address) }
}

/// The loader's message about its last failure.
fn error() -> String {
    // SAFETY: the text is valid until the next call of the loader.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "the loader gives no reason".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}
