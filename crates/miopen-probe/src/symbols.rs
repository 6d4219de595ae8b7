//! A library's functions, by the names that it exports.

use core::ffi::c_void;
use std::ffi::CString;
use std::mem;

/// The function of that name in a loaded library, with `part` for `*` in the name.
///
/// # Errors
/// The name, where the library has no such function.
///
/// # Safety
/// `T` must be the type of a function pointer, and the function's.
pub(crate) unsafe fn function<T>(
    library: *mut c_void,
    name: &str,
    part: &str,
) -> Result<T, String> {
    assert_eq!(size_of::<T>(), size_of::<*mut c_void>(), "a function's address");
    let name = CString::new(name.replace('*', part)).expect("no zero");
    // SAFETY: the handle is that of a loaded library.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        return Err(name.to_string_lossy().into_owned());
    }
    // SAFETY: by contract.
    Ok(unsafe { mem::transmute_copy(&address) })
}

/// Defines a struct of functions that a library's header declares so. For `*`
/// in their names something is put where they are looked up.
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
            /// The functions with `part` for `*` in their names.
            ///
            /// # Errors
            /// The first function that the loaded library does not have.
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
