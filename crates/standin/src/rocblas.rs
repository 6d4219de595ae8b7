//! rocBLAS: matrix products succeed without computing. A failure would hide the kernels that a
//! library runs after it.

use core::ffi::{c_int, c_void};

use crate::{give, succeed};

/// `rocblas_atomics_allowed`.
const ATOMICS_ALLOWED: c_int = 1;

// Source: rocBLAS, `rocblas-auxiliary.h`.
give! {
    rocblas_create_handle(handle: *mut *mut c_void) { *handle = core::ptr::dangling_mut() }
    rocblas_get_atomics_mode(_handle: *mut c_void, mode: *mut c_int) { *mode = ATOMICS_ALLOWED }
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
