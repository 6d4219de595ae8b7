//! The version of the library.
#![expect(unsafe_code, reason = "exports a function")]

use std::ffi::{CStr, c_char};

/// Version of the header; compare it with gfxpack_version().
pub const GFXPACK_VERSION_MAJOR: u32 = 0;
/// See GFXPACK_VERSION_MAJOR.
pub const GFXPACK_VERSION_MINOR: u32 = 1;
/// See GFXPACK_VERSION_MAJOR.
pub const GFXPACK_VERSION_PATCH: u32 = 0;

/// The version, NUL-terminated.
const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL in it"),
    };

/// The version of the loaded library: "0.1.0".
///
/// The text is static. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn gfxpack_version() -> *const c_char {
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_version_is_the_crates() {
        let parts = [GFXPACK_VERSION_MAJOR, GFXPACK_VERSION_MINOR, GFXPACK_VERSION_PATCH];
        assert_eq!(VERSION.to_str().unwrap(), parts.map(|part| part.to_string()).join("."));
    }
}
