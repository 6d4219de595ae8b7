//! Device memory: addresses without memory. An access by mistake crashes, and buffers of any size
//! cost nothing.

use core::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::{ERROR_INVALID_VALUE, ERROR_OUT_OF_MEMORY, HipResult, SUCCESS};
use crate::{give, succeed};

/// The address space for buffers.
const RESERVED: usize = 16 << 40;
/// If the kernel does not grant that range, as in some containers, a smaller one is used.
const RESERVED_AT_LEAST: usize = 1 << 40;
const ALIGNMENT: usize = 4096;

/// A range of addresses without memory.
#[derive(Debug)]
struct Range {
    start: usize,
    bytes: usize,
    used: AtomicUsize,
}

static RANGE: OnceLock<Option<Range>> = OnceLock::new();

fn range() -> Option<&'static Range> {
    RANGE.get_or_init(reserve).as_ref()
}

fn reserve() -> Option<Range> {
    let mut bytes = RESERVED;
    while bytes >= RESERVED_AT_LEAST {
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start != libc::MAP_FAILED {
            return Some(Range { start: start as usize, bytes, used: AtomicUsize::new(0) });
        }
        bytes /= 2;
    }
    None
}

/// The address of a new buffer on the device; `None` if the address space is used up.
pub fn allocate(bytes: usize) -> Option<*mut c_void> {
    let range = range()?;
    let step = bytes.max(1).checked_next_multiple_of(ALIGNMENT)?;
    let taken = range.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(step).filter(|end| *end <= range.bytes)
    });
    taken.ok().map(|offset| ptr::without_provenance_mut(range.start + offset))
}

/// Whether the address belongs to the device.
pub(crate) fn is_device(address: *const c_void) -> bool {
    range().is_some_and(|range| (range.start..range.start + range.bytes).contains(&address.addr()))
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMalloc(address: *mut *mut c_void, bytes: usize) -> HipResult {
    let Some(buffer) = allocate(bytes) else { return ERROR_OUT_OF_MEMORY };
    // SAFETY: the caller passes a place for the address.
    unsafe { address.write(buffer) };
    SUCCESS
}

/// Memory shared by host and device belongs to the device here, since it is never read.
// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMallocManaged(
    address: *mut *mut c_void,
    bytes: usize,
    _flags: c_uint,
) -> HipResult {
    // SAFETY: the caller's parameters.
    unsafe { hipMalloc(address, bytes) }
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipFree(address: *mut c_void) -> HipResult {
    // Device addresses are not reused.
    if !is_device(address) {
        // SAFETY: other addresses were allocated by `hipHostMalloc`, or are null.
        unsafe { libc::free(address) };
    }
    SUCCESS
}

/// Host memory is real.
// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostMalloc(
    address: *mut *mut c_void,
    bytes: usize,
    _flags: c_uint,
) -> HipResult {
    // SAFETY: allocates.
    let buffer = unsafe { libc::calloc(bytes.max(1), 1) };
    if buffer.is_null() {
        return ERROR_OUT_OF_MEMORY;
    }
    // SAFETY: the caller passes a place for the address.
    unsafe { address.write(buffer) };
    SUCCESS
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostFree(address: *mut c_void) -> HipResult {
    // SAFETY: the caller passes memory from `hipHostMalloc`.
    unsafe { hipFree(address) }
}

/// Copies to device memory do nothing; copies from it give zeros.
///
/// # Safety
/// An address of the host must be valid for `bytes` bytes.
unsafe fn copy(to: *mut c_void, from: *const c_void, bytes: usize) -> HipResult {
    if bytes == 0 || is_device(to) {
        return SUCCESS;
    }
    if to.is_null() {
        return ERROR_INVALID_VALUE;
    }
    if is_device(from) {
        // SAFETY: the destination is in host memory, and valid by contract.
        unsafe { ptr::write_bytes(to.cast::<u8>(), 0, bytes) };
    } else {
        // SAFETY: both are in host memory, and valid by contract; they may overlap.
        unsafe { ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes) };
    }
    SUCCESS
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _kind: c_int,
) -> HipResult {
    // SAFETY: the caller passes buffers of that size.
    unsafe { copy(to, from, bytes) }
}

/// Defines copies with a stream as an additional last parameter.
macro_rules! copies {
    ($($name:ident)*) => {$(
        // SAFETY: the name belongs to a library that this crate replaces.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            to: *mut c_void,
            from: *const c_void,
            bytes: usize,
            _kind: c_int,
            _stream: *mut c_void,
        ) -> HipResult {
            // SAFETY: the caller passes buffers of that size.
            unsafe { copy(to, from, bytes) }
        }
    )*};
}

/// Symbols of kernels in a library are zero, like everything that was never computed.
// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyFromSymbol(
    to: *mut c_void,
    _symbol: *const c_void,
    bytes: usize,
    _offset: usize,
    _kind: c_int,
) -> HipResult {
    if !is_device(to) {
        // SAFETY: the caller passes a buffer of that size.
        unsafe { to.cast::<u8>().write_bytes(0, bytes) };
    }
    SUCCESS
}

copies! {
    hipMemcpyAsync
    hipMemcpyWithStream
}

// Only device memory is set, or copied between devices.
succeed! {
    hipMemcpyPeerAsync
    hipMemset
    hipMemsetAsync
}

// The size is only logged.
give! {
    hipMemPtrGetInfo(_address: *mut c_void, bytes: *mut usize) { *bytes = 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_size_have_distinct_addresses() {
        let small = allocate(1).unwrap();
        let large = allocate(64 << 30).unwrap();
        let after = allocate(0).unwrap();
        assert_eq!(large.addr() - small.addr(), ALIGNMENT);
        assert!(after.addr() - large.addr() >= 64 << 30);
        assert!(is_device(small) && is_device(after) && !is_device(ptr::null()));
        assert_eq!(allocate(usize::MAX), None, "no such size");
        assert_eq!(allocate(RESERVED), None, "not so much is left");
    }

    #[test]
    fn copies_do_not_access_device_memory() {
        let device = allocate(8).unwrap();
        let mut host = [7_u8; 8];
        let other = [1_u8; 8];
        // SAFETY: the host buffers have eight bytes.
        unsafe {
            assert_eq!(hipMemcpy(device, host.as_ptr().cast(), 8, 1), SUCCESS);
            assert_eq!(hipMemcpy(host.as_mut_ptr().cast(), other.as_ptr().cast(), 8, 0), SUCCESS);
            assert_eq!(host, other);
            assert_eq!(hipMemcpy(host.as_mut_ptr().cast(), device, 8, 2), SUCCESS);
            assert_eq!(host, [0; 8], "what was never computed is zero");
        }
    }
}
