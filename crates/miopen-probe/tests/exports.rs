//! The program exports the functions that libMIOpen imports from other libraries.

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object as _, ObjectSymbol as _};

/// The functions that libMIOpen 3.4.0 and 3.5.1 and their MIOpenDriver import from GPU libraries
/// and from SQLite.
const IMPORTED: &str = "
    hipDeviceGetAttribute hipDeviceSynchronize hipDeviceTotalMem hipEventCreate
    hipEventCreateWithFlags hipEventDestroy hipEventElapsedTime hipEventRecord hipEventSynchronize
    hipExtModuleLaunchKernel hipFree hipGetDevice hipGetDevicePropertiesR0600 hipGetErrorString
    hipHostMalloc hipInit hipMalloc hipMemGetInfo hipMemPtrGetInfo hipMemcpy hipMemcpyWithStream
    hipMemsetAsync hipModuleGetFunction hipModuleLaunchCooperativeKernel hipModuleLoad
    hipModuleLoadData hipModuleUnload hipSetDevice hipStreamCreate hipStreamCreateWithFlags
    hipStreamDestroy hipStreamSynchronize hipStreamWaitEvent
    rocblas_create_handle rocblas_destroy_handle rocblas_gemm_ex rocblas_gemm_ex3
    rocblas_gemm_strided_batched_ex rocblas_gemm_strided_batched_ex3 rocblas_get_atomics_mode
    rocblas_set_atomics_mode rocblas_set_stream rocblas_sgemv
    roctxRangePop roctxRangePushA
    amd_comgr_action_data_count amd_comgr_action_data_get_data amd_comgr_action_info_set_isa_name
    amd_comgr_action_info_set_language amd_comgr_action_info_set_logging
    amd_comgr_action_info_set_option_list amd_comgr_create_action_info amd_comgr_create_data
    amd_comgr_create_data_set amd_comgr_data_set_add amd_comgr_destroy_action_info
    amd_comgr_destroy_data_set amd_comgr_do_action amd_comgr_get_data amd_comgr_get_version
    amd_comgr_release_data amd_comgr_set_data amd_comgr_set_data_name amd_comgr_status_string
    hiprtcCompileProgram hiprtcCreateProgram hiprtcDestroyProgram hiprtcGetCode hiprtcGetCodeSize
    hiprtcGetErrorString hiprtcGetProgramLog hiprtcGetProgramLogSize hiprtcVersion
    hipblasLtCreate hipblasLtDestroy hipblasLtMatmul hipblasLtMatmulAlgoGetHeuristic
    rocrand_create_generator rocrand_destroy_generator rocrand_generate_uniform
    rocrand_generate_uniform_double rocrand_generate_uniform_half rocrand_set_offset
    rocrand_set_ordering rocrand_set_seed
    sqlite3_bind_blob sqlite3_bind_int64 sqlite3_bind_text sqlite3_busy_timeout sqlite3_changes
    sqlite3_close sqlite3_column_blob sqlite3_column_bytes sqlite3_column_int64
    sqlite3_column_text sqlite3_db_filename sqlite3_errmsg sqlite3_exec sqlite3_finalize
    sqlite3_open_v2 sqlite3_prepare_v2 sqlite3_step
    popen pclose
";

#[track_caller]
fn check(file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let defined: BTreeSet<_> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| symbol.name().unwrap())
        .collect();
    let missing: Vec<_> =
        IMPORTED.split_whitespace().filter(|name| !defined.contains(name)).collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
}

#[test]
fn the_program_exports_the_stand_ins() {
    check(Path::new(env!("CARGO_BIN_EXE_gfxpack-miopen-probe")));
}
