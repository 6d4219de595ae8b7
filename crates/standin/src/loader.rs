//! The dynamic loader, and tables of a library's functions by their exported names.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::mem;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Loads a library, with these flags of `dlopen`.
pub fn load_library(path: &Path, flags: c_int) -> Result<*mut c_void, String> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: only the library's own initialisation runs.
    let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
    if handle.is_null() { Err(error()) } else { Ok(handle) }
}

/// The function with that name in a loaded library, with `part` in place of `*`.
///
/// # Errors
/// The name, if the library has no such function.
///
/// # Safety
/// `T` must be the function-pointer type of the function.
pub unsafe fn function<T>(library: *mut c_void, name: &str, part: &str) -> Result<T, String> {
    assert_eq!(size_of::<T>(), size_of::<*mut c_void>(), "a function's address");
    let name = CString::new(name.replace('*', part)).expect("no zero");
    // SAFETY: the handle belongs to a loaded library.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        return Err(name.to_string_lossy().into_owned());
    }
    // SAFETY: by contract.
    Ok(unsafe { mem::transmute_copy(&address) })
}

/// Defines a struct of functions as a library's header declares them. `*` in their names is
/// replaced when they are looked up.
#[macro_export]
macro_rules! interface {
    ($(#[$attribute:meta])* $name:ident {
        $($field:ident: $symbol:literal = fn($($parameter:ty),*) $(-> $result:ty)?;)*
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name {
            $(pub(crate) $field: unsafe extern "C" fn($($parameter),*) $(-> $result)?,)*
        }

        impl $name {
            /// Looks the functions up, with `part` in place of `*` in their names.
            ///
            /// # Errors
            /// The name of the first function that the loaded library lacks.
            pub(crate) fn find(
                library: *mut core::ffi::c_void,
                part: &str,
            ) -> Result<Self, String> {
                $(
                    let symbol = $symbol;
                    // SAFETY: the header declares the function with the type of the field.
                    let $field = unsafe { $crate::function(library, symbol, part) }?;
                )*
                Ok(Self { $($field),* })
            }
        }
    };
}

/// The loader's message about its last failure.
pub(crate) fn error() -> String {
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
