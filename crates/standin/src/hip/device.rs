//! The device's properties: the claim, in HIP's form.

use core::ffi::{c_int, c_uint, c_void};
use std::ptr;

use super::error::{ERROR_INVALID_VALUE, ERROR_NO_DEVICE, HipResult, SUCCESS};
use crate::record::{Event, record};
use crate::simulated_gpu::gpu;
use crate::{give, succeed};

/// The size of `hipDeviceProp_tR0600` and the positions of its fields.
const PROPERTIES_BYTES: usize = 1472;
const SHARED_MEMORY_PER_BLOCK_AT: usize = 296;
const WARP_SIZE_AT: usize = 308;
const MAX_THREADS_PER_BLOCK_AT: usize = 320;
const MAX_THREADS_DIM_AT: usize = 324;
const MAX_GRID_SIZE_AT: usize = 336;
const MULTI_PROCESSOR_COUNT_AT: usize = 388;
const GCN_ARCH_NAME_AT: usize = 1160;
const GCN_ARCH_NAME_BYTES: usize = 256;

/// `hipDeviceAttribute_t`.
const ATTRIBUTE_COOPERATIVE_LAUNCH: c_int = 10;
const ATTRIBUTE_MAX_GRID_DIM_X: c_int = 29;
const ATTRIBUTE_MULTIPROCESSOR_COUNT: c_int = 63;
const ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: c_int = 74;
const ATTRIBUTE_WARP_SIZE: c_int = 87;
const ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: c_int = 10002;

/// The local data share in bytes that a work group may use.
const SHARED_MEMORY: c_int = 64 << 10;
/// The most work items of a work group.
const MAX_THREADS: c_int = 1024;
/// The most work groups in each dimension.
const MAX_GROUPS: [c_int; 3] = [c_int::MAX, 65_536, 65_536];
/// With more memory, more solvers are applicable; it is never accessed.
const MEMORY: usize = 256 << 30;
/// The version of the runtime.
const VERSION: c_int = 70_000_000;

succeed! {
    hipInit
    hipSetDevice
    hipDeviceSynchronize
}

give! {
    hipGetDevice(device: *mut c_int) { *device = 0 }
    hipGetDeviceCount(count: *mut c_int) { *count = c_int::from(gpu().is_some()) }
    hipDeviceTotalMem(bytes: *mut usize, _device: c_int) { *bytes = MEMORY }
    hipMemGetInfo(free: *mut usize, total: *mut usize) { *free = MEMORY, *total = MEMORY }
    hipDriverGetVersion(version: *mut c_int) { *version = VERSION }
    hipRuntimeGetVersion(version: *mut c_int) { *version = VERSION }
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDevicePropertiesR0600(properties: *mut u8, _device: c_int) -> HipResult {
    let Some(gpu) = gpu() else { return ERROR_NO_DEVICE };
    let name = gpu.architecture.as_bytes();
    if name.len() >= GCN_ARCH_NAME_BYTES {
        return ERROR_INVALID_VALUE;
    }
    // SAFETY: the caller passes a `hipDeviceProp_tR0600`, which has that size; the name is shorter
    // than its field, and the zeros written before end it.
    unsafe {
        properties.write_bytes(0, PROPERTIES_BYTES);
        properties
            .add(SHARED_MEMORY_PER_BLOCK_AT)
            .cast::<usize>()
            .write(gpu.shared_memory() as usize);
        properties.add(MAX_THREADS_PER_BLOCK_AT).cast::<c_int>().write(MAX_THREADS);
        properties.add(MAX_THREADS_DIM_AT).cast::<[c_int; 3]>().write([MAX_THREADS; 3]);
        properties.add(MAX_GRID_SIZE_AT).cast::<[c_int; 3]>().write(MAX_GROUPS);
        properties.add(WARP_SIZE_AT).cast::<c_uint>().write(gpu.warp_size());
        properties.add(MULTI_PROCESSOR_COUNT_AT).cast::<c_uint>().write(gpu.compute_units);
        ptr::copy_nonoverlapping(name.as_ptr(), properties.add(GCN_ARCH_NAME_AT), name.len());
    }
    SUCCESS
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    _device: c_int,
) -> HipResult {
    let Some(gpu) = gpu() else { return ERROR_NO_DEVICE };
    let answer = match attribute {
        ATTRIBUTE_COOPERATIVE_LAUNCH => 1,
        ATTRIBUTE_MAX_GRID_DIM_X => c_int::MAX,
        ATTRIBUTE_MULTIPROCESSOR_COUNT => c_int::try_from(gpu.compute_units).unwrap_or(c_int::MAX),
        ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => SHARED_MEMORY,
        ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => gpu.shared_memory().cast_signed(),
        ATTRIBUTE_WARP_SIZE => gpu.warp_size().cast_signed(),
        _ => {
            record(Event::Unanswered(&format!("hipDeviceGetAttribute {attribute}")));
            return ERROR_INVALID_VALUE;
        }
    };
    // SAFETY: the caller passes a place for the value.
    unsafe { value.write(answer) };
    SUCCESS
}

// Calls that the compiler adds to libraries with kernels of their own, which are never launched.
succeed! {
    __hipRegisterFunction
    __hipRegisterManagedVar
    __hipRegisterVar
    __hipUnregisterFatBinary
    __hipPushCallConfiguration
    __hipPopCallConfiguration
    hipLaunchKernel
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
extern "C" fn __hipRegisterFatBinary(_data: *const c_void) -> *mut c_void {
    // Only the functions above get it.
    ptr::dangling_mut()
}
