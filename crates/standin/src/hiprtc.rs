//! hipRTC: a compiler that refuses, or one that makes the stand-in's objects.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::{ptr, slice};
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::code_object::{STAND_IN_BYTES, stand_in};
use crate::record::{Event, record};
use crate::{give, succeed};

/// `HIPRTC_ERROR_COMPILATION`.
const ERROR_COMPILATION: c_int = 6;
/// A release that supports every option in use.
const VERSION: (c_int, c_int) = (9, 0);

/// The number of the next program, or [`REFUSING`] if compiling is refused.
static NEXT: AtomicU64 = AtomicU64::new(REFUSING);
const REFUSING: u64 = u64::MAX;

/// Makes every program compile from now on. Its object contains only the program's number, from 0
/// on, which is also in [`Event::Compiled`].
pub fn compile_to_stand_ins() {
    NEXT.store(0, Ordering::Relaxed);
}

struct Program {
    name: CString,
    /// Empty if compiling is refused.
    source: CString,
    number: u64,
}

/// # Safety
/// `text` must be a C string, or null.
unsafe fn owned(text: *const c_char) -> CString {
    if text.is_null() {
        return CString::default();
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(text) }.to_owned()
}

// Source: HIP, `hiprtc.h`, as all functions here.
give! {
    hiprtcVersion(major: *mut c_int, minor: *mut c_int) { *major = VERSION.0, *minor = VERSION.1 }
    hiprtcGetProgramLogSize(_program: *mut c_void, size: *mut usize) { *size = 0 }
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcCreateProgram(
    program: *mut *mut c_void,
    source: *const c_char,
    name: *const c_char,
    _headers: c_int,
    _header_texts: *const *const c_char,
    _header_names: *const *const c_char,
) -> c_int {
    let is_refused = NEXT.load(Ordering::Relaxed) == REFUSING;
    let number = if is_refused { REFUSING } else { NEXT.fetch_add(1, Ordering::Relaxed) };
    // SAFETY: the caller passes C strings, or null.
    let (name, source) =
        unsafe { (owned(name), owned(if is_refused { ptr::null() } else { source })) };
    let created = Box::into_raw(Box::new(Program { name, source, number }));
    // SAFETY: the caller passes a place for the program.
    unsafe { program.write(created.cast()) };
    0
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcDestroyProgram(program: *mut *mut c_void) -> c_int {
    // SAFETY: the caller passes a program that was created above, and only once.
    drop(unsafe { Box::from_raw((*program).cast::<Program>()) });
    0
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcCompileProgram(
    program: *mut c_void,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    // SAFETY: the caller passes a program that was created above.
    let program = unsafe { &*program.cast::<Program>() };
    if program.number == REFUSING {
        record(Event::Compile(&[b"hiprtc ", program.name.to_bytes()].concat()));
        return ERROR_COMPILATION;
    }
    let options = match usize::try_from(count) {
        // SAFETY: the caller passes this many options.
        Ok(count) if count > 0 => unsafe { slice::from_raw_parts(options, count) },
        _ => &[],
    };
    let options: Vec<&[u8]> = options
        .iter()
        // SAFETY: each is a C string.
        .map(|option| unsafe { CStr::from_ptr(*option) }.to_bytes())
        .collect();
    let (number, source) = (program.number, program.source.to_bytes());
    record(Event::Compiled { number, source, options: &options });
    0
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcGetCodeSize(program: *mut c_void, size: *mut usize) -> c_int {
    // SAFETY: the caller passes a program that was created above.
    let is_refused = unsafe { &*program.cast::<Program>() }.number == REFUSING;
    // SAFETY: the caller passes a place for the size.
    unsafe { size.write(if is_refused { 0 } else { STAND_IN_BYTES }) };
    0
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcGetCode(program: *mut c_void, code: *mut c_char) -> c_int {
    // SAFETY: the caller passes a program that was created above.
    let number = unsafe { &*program.cast::<Program>() }.number;
    if number != REFUSING {
        // SAFETY: the caller has room for the returned size.
        unsafe { code.cast::<[u8; STAND_IN_BYTES]>().write(stand_in(number)) };
    }
    0
}

succeed! {
    hiprtcAddNameExpression
    hiprtcGetProgramLog
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
extern "C" fn hiprtcGetErrorString(_result: c_int) -> *const c_char {
    c"refused by gfxpack's stand-in of hipRTC".as_ptr()
}
