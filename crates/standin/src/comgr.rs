//! comgr: a compiler that refuses.

use core::ffi::{c_char, c_int};

use crate::record::{Event, record};
use crate::{give, succeed};

/// `AMD_COMGR_STATUS_ERROR`.
const STATUS_ERROR: c_int = 1;
/// A release that supports every option in use.
const VERSION: (usize, usize) = (3, 0);

// Source: comgr, `amd_comgr.h`, as all functions here. Handles are structs of one 64-bit integer.
give! {
    amd_comgr_get_version(major: *mut usize, minor: *mut usize) {
        *major = VERSION.0, *minor = VERSION.1
    }
    amd_comgr_status_string(_status: c_int, text: *mut *const c_char) {
        *text = c"refused by gfxpack's stand-in of comgr".as_ptr()
    }
    amd_comgr_get_data(_data: u64, size: *mut usize, _bytes: *mut c_char) { *size = 0 }
    amd_comgr_action_data_count(_set: u64, _kind: c_int, count: *mut usize) { *count = 0 }
    amd_comgr_create_action_info(handle: *mut u64) { *handle = 1 }
    amd_comgr_create_data_set(handle: *mut u64) { *handle = 1 }
    amd_comgr_create_data(_kind: c_int, data: *mut u64) { *data = 1 }
    amd_comgr_action_data_get_data(_set: u64, _kind: c_int, _index: usize, data: *mut u64) {
        *data = 1
    }
}

/// `amd_comgr_do_action(kind, info, input, result)`.
// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
extern "C" fn amd_comgr_do_action(kind: c_int, _info: u64, _input: u64, _result: u64) -> c_int {
    record(Event::Compile(format!("comgr action {kind}").as_bytes()));
    STATUS_ERROR
}

succeed! {
    amd_comgr_action_info_set_isa_name
    amd_comgr_action_info_set_language
    amd_comgr_action_info_set_logging
    amd_comgr_action_info_set_option_list
    amd_comgr_data_set_add
    amd_comgr_destroy_action_info
    amd_comgr_destroy_data_set
    amd_comgr_release_data
    amd_comgr_set_data
    amd_comgr_set_data_name
}
