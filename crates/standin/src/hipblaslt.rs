//! hipBLASLt: everything succeeds, and no algorithm fits.

use core::ffi::{c_int, c_void};

use crate::succeed;

/// Defines functions that hand out an object which nobody looks into.
macro_rules! create {
    ($($name:ident)*) => {$(
        // SAFETY: the name is that of a library which this crate takes the place of.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(object: *mut *mut c_void) -> c_int {
            // SAFETY: the caller passes where to put the object as the first parameter.
            unsafe { object.write(core::ptr::dangling_mut()) };
            0
        }
    )*};
}

create! {
    hipblasLtCreate
    hipblasLtMatmulDescCreate
    hipblasLtMatmulPreferenceCreate
    hipblasLtMatrixLayoutCreate
}

succeed! {
    hipblasLtDestroy
    hipblasLtMatmul
    hipblasLtMatmulDescDestroy
    hipblasLtMatmulDescSetAttribute
    hipblasLtMatmulPreferenceDestroy
    hipblasLtMatmulPreferenceSetAttribute
    hipblasLtMatrixLayoutDestroy
    hipblasLtMatrixLayoutSetAttribute
}

/// Source: hipBLASLt, `hipblaslt.h`; the tenth parameter counts what was found.
// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipblasLtMatmulAlgoGetHeuristic(
    _handle: *mut c_void,
    _product: *mut c_void,
    _a: *mut c_void,
    _b: *mut c_void,
    _c: *mut c_void,
    _d: *mut c_void,
    _preference: *mut c_void,
    _wanted: c_int,
    _results: *mut c_void,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the caller passes where to put the count.
    unsafe { count.write(0) };
    0
}
