//! HIP's results.

use core::ffi::{c_char, c_int};

/// `hipError_t`.
pub(crate) type HipResult = c_int;

pub(crate) const SUCCESS: HipResult = 0;
pub(crate) const ERROR_INVALID_VALUE: HipResult = 1;
pub(crate) const ERROR_OUT_OF_MEMORY: HipResult = 2;
pub(crate) const ERROR_NO_DEVICE: HipResult = 100;
pub(crate) const ERROR_INVALID_IMAGE: HipResult = 200;
pub(crate) const ERROR_FILE_NOT_FOUND: HipResult = 301;
pub(crate) const ERROR_NOT_FOUND: HipResult = 500;

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorString(result: HipResult) -> *const c_char {
    let text = match result {
        SUCCESS => c"no error",
        ERROR_INVALID_VALUE => c"invalid argument",
        ERROR_OUT_OF_MEMORY => c"out of memory",
        ERROR_NO_DEVICE => c"no device was claimed",
        ERROR_INVALID_IMAGE => c"device kernel image is invalid",
        ERROR_FILE_NOT_FOUND => c"file not found",
        ERROR_NOT_FOUND => c"named symbol not found",
        _ => c"unknown error of gfxpack's stand-in of HIP",
    };
    text.as_ptr()
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorName(result: HipResult) -> *const c_char {
    hipGetErrorString(result)
}

crate::succeed! {
    hipGetLastError
    hipPeekAtLastError
}
