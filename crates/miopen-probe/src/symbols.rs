//! Finds a library's functions by their exported names.

use core::ffi::c_void;
use std::ffi::CString;
use std::mem;

/// The function with that name in a loaded library, with `part` in place of `*`.
///
/// # Errors
/// The name, if the library has no such function.
///
/// # Safety
/// `T` must be the function-pointer type of the function.
pub(crate) unsafe fn function<T>(
    library: *mut c_void,
    name: &str,
    part: &str,
) -> Result<T, String> {
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
macro_rules! interface {
    ($(#[$attribute:meta])* $name:ident {
        $($field:ident: $symbol:literal = fn($($parameter:ty),*);)*
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name {
            $(pub(crate) $field: unsafe extern "C" fn($($parameter),*) -> core::ffi::c_int,)*
        }

        impl $name {
            /// Looks the functions up, with `part` in place of `*` in their names.
            ///
            /// # Errors
            /// The first function that the loaded library lacks.
            pub(crate) fn find(
                library: *mut core::ffi::c_void,
                part: &str,
            ) -> Result<Self, String> {
                // SAFETY: the header declares the functions with the types of the fields.
                Ok(Self { $($field: unsafe { crate::symbols::function(library, $symbol, part) }?,)* })
            }
        }
    };
}
pub(crate) use interface;
