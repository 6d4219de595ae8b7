//! Texts from and for C.
#![expect(unsafe_code, reason = "reads the NUL-terminated texts that callers point to")]

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A required text.
///
/// # Safety
/// `pointer` is null, or a NUL-terminated text that lives unchanged for `'a`.
pub(crate) unsafe fn required<'a>(
    pointer: *const c_char,
    argument: &'static str,
) -> Result<&'a str, Failure> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(pointer) }.ok_or(Failure::Null(argument))?;
    str::from_utf8(bytes).map_err(|source| Failure::NotUtf8 { argument, source })
}

/// A path, of any bytes; `None` for a null pointer.
///
/// # Safety
/// `pointer` is null, or a NUL-terminated text.
pub(crate) unsafe fn path(pointer: *const c_char) -> Option<PathBuf> {
    // SAFETY: as the caller promises.
    unsafe { bytes(pointer) }.map(|bytes| PathBuf::from(OsStr::from_bytes(bytes)))
}

/// # Safety
/// `pointer` is null, or a NUL-terminated text that lives unchanged for `'a`.
unsafe fn bytes<'a>(pointer: *const c_char) -> Option<&'a [u8]> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a text, as the caller promises.
    Some(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// The text for C. NULs within it, at which C would stop, are replaced.
pub(crate) fn c_text(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes = text.into();
    for byte in &mut bytes {
        if *byte == 0 {
            *byte = b'?';
        }
    }
    CString::new(bytes).unwrap_or_default()
}

/// A path for C.
pub(crate) fn c_path(path: &Path) -> CString {
    c_text(path.as_os_str().as_bytes())
}

/// The pointer of a text, or null.
pub(crate) fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_converted_for_c() {
        let text = |bytes: &[u8]| c_text(bytes).to_bytes().to_vec();
        assert_eq!(text(b"gfx90a"), b"gfx90a");
        assert_eq!(text(b"a\0b"), b"a?b");
        assert_eq!(c_path(Path::new(OsStr::from_bytes(b"/\xff"))).to_bytes(), b"/\xff");
        assert!(pointer(None).is_null());
    }
}
