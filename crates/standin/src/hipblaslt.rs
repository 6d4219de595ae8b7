//! hipBLASLt: everything succeeds, and no algorithm fits.

use core::ffi::{c_int, c_void};
use core::ptr::dangling_mut;

use crate::{give, succeed};

// Source: hipBLASLt, `hipblaslt.h`; the tenth parameter of the last counts what was found.
give! {
    hipblasLtCreate(object: *mut *mut c_void) { *object = dangling_mut() }
    hipblasLtMatmulDescCreate(object: *mut *mut c_void) { *object = dangling_mut() }
    hipblasLtMatmulPreferenceCreate(object: *mut *mut c_void) { *object = dangling_mut() }
    hipblasLtMatrixLayoutCreate(object: *mut *mut c_void) { *object = dangling_mut() }
    hipblasLtMatmulAlgoGetHeuristic(
        _handle: *mut c_void,
        _product: *mut c_void,
        _a: *mut c_void,
        _b: *mut c_void,
        _c: *mut c_void,
        _d: *mut c_void,
        _preference: *mut c_void,
        _wanted: c_int,
        _results: *mut c_void,
        count: *mut c_int
    ) { *count = 0 }
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
