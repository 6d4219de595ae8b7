//! `popen` and `pclose` of the C library, with which ROCm libraries start compilers. Compilers
//! report their version, and refuse everything else.

use core::ffi::{CStr, c_char, c_int};
use std::ptr;

use crate::record::{Event, record};

/// The version that every compiler reports: recent enough that no feature is disabled.
const VERSION: &CStr = c"clang version 21.1.8\nTarget: amdgcn-amd-amdhsa\n";

/// Starts no program.
///
/// Source: POSIX, `popen`.
// SAFETY: the name belongs to a function that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn popen(command: *const c_char, _mode: *const c_char) -> *mut libc::FILE {
    // SAFETY: the caller passes a C string.
    let command = unsafe { CStr::from_ptr(command) };
    let asks_version =
        command.to_bytes().split(u8::is_ascii_whitespace).any(|word| word == b"--version");
    if !asks_version {
        record(Event::Compile(command.to_bytes()));
        return ptr::null_mut();
    }
    // SAFETY: a stream for reading does not write to the text, which is static.
    unsafe {
        libc::fmemopen(VERSION.as_ptr().cast_mut().cast(), VERSION.count_bytes(), c"r".as_ptr())
    }
}

/// Source: POSIX, `pclose`.
// SAFETY: the name belongs to a function that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn pclose(stream: *mut libc::FILE) -> c_int {
    if !stream.is_null() {
        // SAFETY: the stream was opened by `popen` above.
        unsafe { libc::fclose(stream) };
    }
    0
}
