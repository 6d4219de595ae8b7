//! Launches. Nothing runs, but they succeed, since libraries load further kernels between launches.

use core::ffi::{c_int, c_void};

use crate::{give, succeed};

succeed! {
    hipExtModuleLaunchKernel
    hipModuleLaunchCooperativeKernel
    hipModuleLaunchKernel
}

// One work group fits, whatever it needs.
give! {
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        groups: *mut c_int,
        _function: *mut c_void,
        _work_items: c_int,
        _shared_memory: usize
    ) { *groups = 1 }
}
