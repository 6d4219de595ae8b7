//! hipRTC: a compiler that refuses.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

use crate::record::refuse;
use crate::succeed;

/// `HIPRTC_ERROR_COMPILATION`.
const ERROR_COMPILATION: c_int = 6;
/// A release that supports every option in use.
const VERSION: (c_int, c_int) = (9, 0);

/// Source: HIP, `hiprtc.h`, as all functions here.
// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    // SAFETY: the caller passes where to put the numbers.
    unsafe {
        major.write(VERSION.0);
        minor.write(VERSION.1);
    }
    0
}

/// A program is the name it was given.
// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcCreateProgram(
    program: *mut *mut c_void,
    _source: *const c_char,
    name: *const c_char,
    _headers: c_int,
    _header_texts: *const *const c_char,
    _header_names: *const *const c_char,
) -> c_int {
    let name = if name.is_null() {
        CString::default()
    } else {
        // SAFETY: the caller passes a C string, or nothing.
        unsafe { CStr::from_ptr(name) }.to_owned()
    };
    // SAFETY: the caller passes where to put the program.
    unsafe { program.write(name.into_raw().cast()) };
    0
}

// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcDestroyProgram(program: *mut *mut c_void) -> c_int {
    // SAFETY: the caller passes a program that was created above, once.
    drop(unsafe { CString::from_raw((*program).cast()) });
    0
}

// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcCompileProgram(
    program: *mut c_void,
    _count: c_int,
    _options: *const *const c_char,
) -> c_int {
    // SAFETY: the caller passes a program that was created above.
    let name = unsafe { CStr::from_ptr(program.cast()) };
    refuse(&[b"hiprtc ", name.to_bytes()].concat());
    ERROR_COMPILATION
}

/// Defines functions that tell a size of nothing.
macro_rules! empty {
    ($($name:ident)*) => {$(
        // SAFETY: the name is that of a library which this crate takes the place of.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(_program: *mut c_void, size: *mut usize) -> c_int {
            // SAFETY: the caller passes where to put the size.
            unsafe { size.write(0) };
            0
        }
    )*};
}

empty! {
    hiprtcGetCodeSize
    hiprtcGetProgramLogSize
}

succeed! {
    hiprtcAddNameExpression
    hiprtcGetCode
    hiprtcGetProgramLog
}

// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
extern "C" fn hiprtcGetErrorString(_result: c_int) -> *const c_char {
    c"refused by gfxpack's stand-in of hipRTC".as_ptr()
}
