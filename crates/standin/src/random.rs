//! `std::random_device` of the C++ library, which libraries construct for every wait and every
//! temporary name. The real one queries the processor's features each time, which takes a quarter
//! of a library's time on a virtual machine. This one counts.

use core::ffi::{c_uint, c_void};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::succeed;

static COUNT: AtomicU64 = AtomicU64::new(0);

// `_M_init(const std::string&)` and `_M_fini()`: there is nothing to open.
succeed! {
    _ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt13random_device7_M_initERKSs
    _ZNSt13random_device7_M_finiEv
}

/// `_M_getval()`: a number that other processes, and earlier calls, are unlikely to have.
///
/// Source: libstdc++, `<random>`; the mixing is that of SplitMix64.
// SAFETY: the name belongs to a function that this crate replaces.
#[unsafe(no_mangle)]
extern "C" fn _ZNSt13random_device9_M_getvalEv(_device: *mut c_void) -> c_uint {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut value = (u64::from(process::id()) << 32 | (count & 0xffff_ffff))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (value >> 32) as c_uint
}
