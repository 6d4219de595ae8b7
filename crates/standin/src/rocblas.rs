//! rocBLAS: matrix products that succeed without computing. One that failed
//! would hide the kernels that a library runs after it.

use core::ffi::{c_int, c_void};

use crate::succeed;

/// `rocblas_atomics_allowed`.
const ATOMICS_ALLOWED: c_int = 1;

/// Source: rocBLAS, `rocblas-auxiliary.h`.
// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocblas_create_handle(handle: *mut *mut c_void) -> c_int {
    // SAFETY: the caller passes where to put the handle, which nobody looks into.
    unsafe { handle.write(core::ptr::dangling_mut()) };
    0
}

/// Source: rocBLAS, `rocblas-auxiliary.h`.
// SAFETY: the name is that of a library which this crate takes the place of.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocblas_get_atomics_mode(_handle: *mut c_void, mode: *mut c_int) -> c_int {
    // SAFETY: the caller passes where to put the mode.
    unsafe { mode.write(ATOMICS_ALLOWED) };
    0
}

succeed! {
    rocblas_destroy_handle
    rocblas_set_stream
    rocblas_set_atomics_mode
    rocblas_gemm_ex
    rocblas_gemm_ex3
    rocblas_gemm_strided_batched_ex
    rocblas_gemm_strided_batched_ex3
    rocblas_sgemv
}
