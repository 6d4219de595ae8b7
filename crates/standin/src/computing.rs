//! Libraries that compute: rocBLAS, hipBLASLt, rocRAND, and rocTX, which marks. All calls succeed
//! without computing, since a failure would hide the kernels that a library runs after it. No
//! algorithm of hipBLASLt fits, and generators do not write to memory.

use core::ffi::{c_int, c_void};
use core::ptr::dangling_mut;

use crate::{give, succeed};

/// `rocblas_atomics_allowed`.
const ATOMICS_ALLOWED: c_int = 1;

// Source: rocBLAS, `rocblas-auxiliary.h`.
give! {
    rocblas_create_handle(handle: *mut *mut c_void) { *handle = dangling_mut() }
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

// Source: rocRAND, `rocrand.h`.
give! {
    rocrand_create_generator(generator: *mut *mut c_void, _kind: c_int) {
        *generator = dangling_mut()
    }
}

succeed! {
    rocrand_destroy_generator
    rocrand_generate_uniform
    rocrand_generate_uniform_double
    rocrand_generate_uniform_half
    rocrand_set_offset
    rocrand_set_ordering
    rocrand_set_seed
}

succeed! {
    roctxMarkA
    roctxRangePop
    roctxRangePushA
}
