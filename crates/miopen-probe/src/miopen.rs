//! MIOpen's C functions, by the names that the library exports.
//!
//! Source: MIOpen, `miopen.h` and `miopen_internal.h`.

use core::ffi::{CStr, c_int, c_void};
use std::mem;

/// A handle or a descriptor.
pub(crate) type Object = *mut c_void;
/// `miopenStatus_t`.
pub(crate) type Status = c_int;

/// `miopenConvSolution_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Solution {
    pub(crate) time: f32,
    pub(crate) workspace: usize,
    pub(crate) id: u64,
    pub(crate) algorithm: c_int,
}

/// `miopenConvAlgoPerf_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct ConvAlgoPerf {
    pub(crate) algorithm: c_int,
    pub(crate) time: f32,
    pub(crate) memory: usize,
}

/// `miopenFindConvolution…Algorithm`: handle, three tensors (each a descriptor
/// and an address) around the convolution, wanted, found, results, workspace
/// and its size, exhaustive search.
pub(crate) type Find = unsafe extern "C" fn(
    Object,
    Object,
    *const c_void,
    Object,
    *const c_void,
    Object,
    Object,
    *mut c_void,
    c_int,
    *mut c_int,
    *mut ConvAlgoPerf,
    *mut c_void,
    usize,
    bool,
) -> Status;
/// `miopenConvolutionForward` and its kind.
pub(crate) type Run = unsafe extern "C" fn(
    Object,
    *const c_void,
    Object,
    *const c_void,
    Object,
    *const c_void,
    Object,
    c_int,
    *const c_void,
    Object,
    *mut c_void,
    *mut c_void,
    usize,
) -> Status;
/// `miopenConvolution…GetSolutionCount`.
pub(crate) type Count =
    unsafe extern "C" fn(Object, Object, Object, Object, Object, *mut usize) -> Status;
/// `miopenConvolution…GetSolution`.
pub(crate) type Get = unsafe extern "C" fn(
    Object,
    Object,
    Object,
    Object,
    Object,
    usize,
    *mut usize,
    *mut Solution,
) -> Status;
/// `miopenConvolution…CompileSolution`.
pub(crate) type Compile =
    unsafe extern "C" fn(Object, Object, Object, Object, Object, u64) -> Status;
/// `miopenConvolution…Immediate`.
pub(crate) type Immediate = unsafe extern "C" fn(
    Object,
    Object,
    *const c_void,
    Object,
    *const c_void,
    Object,
    Object,
    *mut c_void,
    *mut c_void,
    usize,
    u64,
) -> Status;
/// `miopenConvolutionForwardBias` and `BackwardBias`.
pub(crate) type Bias = unsafe extern "C" fn(
    Object,
    *const c_void,
    Object,
    *const c_void,
    *const c_void,
    Object,
    *mut c_void,
) -> Status;

/// The functions of one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) find: Find,
    pub(crate) run: Run,
    pub(crate) count: Count,
    pub(crate) get: Get,
    pub(crate) compile: Compile,
    pub(crate) immediate: Immediate,
}

/// The functions that this program calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MiOpen {
    pub(crate) version: unsafe extern "C" fn(*mut usize, *mut usize, *mut usize) -> Status,
    pub(crate) create: unsafe extern "C" fn(*mut Object) -> Status,
    pub(crate) destroy: unsafe extern "C" fn(Object) -> Status,
    pub(crate) create_tensor: unsafe extern "C" fn(*mut Object) -> Status,
    pub(crate) set_tensor:
        unsafe extern "C" fn(Object, c_int, c_int, *const usize, *const usize) -> Status,
    pub(crate) tensor_bytes: unsafe extern "C" fn(Object, *mut usize) -> Status,
    pub(crate) create_convolution: unsafe extern "C" fn(*mut Object) -> Status,
    pub(crate) init_convolution: unsafe extern "C" fn(
        Object,
        c_int,
        *const c_int,
        *const c_int,
        *const c_int,
        c_int,
    ) -> Status,
    pub(crate) set_groups: unsafe extern "C" fn(Object, c_int) -> Status,
    pub(crate) set_output_pad: unsafe extern "C" fn(Object, c_int, *const c_int) -> Status,
    pub(crate) set_find_mode: unsafe extern "C" fn(Object, c_int) -> Status,
    pub(crate) algorithm_of_solver: unsafe extern "C" fn(u64, *mut c_int) -> Status,
    pub(crate) forward_bias: Bias,
    pub(crate) backward_bias: Bias,
    pub(crate) forward: Functions,
    pub(crate) backward_data: Functions,
    pub(crate) backward_weights: Functions,
}

/// The function of that name in a loaded library.
///
/// # Errors
/// The name, where the library has no such function.
///
/// # Safety
/// `T` must be the type of a function pointer, and the function's.
unsafe fn function<T>(library: *mut c_void, name: &CStr) -> Result<T, String> {
    assert_eq!(size_of::<T>(), size_of::<*mut c_void>(), "a function's address");
    // SAFETY: the handle is that of a loaded library.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        return Err(name.to_string_lossy().into_owned());
    }
    // SAFETY: by contract.
    Ok(unsafe { mem::transmute_copy(&address) })
}

impl MiOpen {
    /// The functions of a loaded libMIOpen.
    ///
    /// # Errors
    /// The first function that it does not have.
    pub(crate) fn find(library: *mut c_void) -> Result<Self, String> {
        macro_rules! direction {
            ($name:literal, $find:literal) => {
                Functions {
                    find: symbol!(concat!("miopenFindConvolution", $find, "Algorithm")),
                    run: symbol!(concat!("miopenConvolution", $name)),
                    count: symbol!(concat!("miopenConvolution", $name, "GetSolutionCount")),
                    get: symbol!(concat!("miopenConvolution", $name, "GetSolution")),
                    compile: symbol!(concat!("miopenConvolution", $name, "CompileSolution")),
                    immediate: symbol!(concat!("miopenConvolution", $name, "Immediate")),
                }
            };
        }
        macro_rules! symbol {
            ($name:expr) => {{
                let name = concat!($name, "\0").as_bytes();
                let name = CStr::from_bytes_with_nul(name).expect("ends with zero");
                // SAFETY: the header declares the function with the type of the field.
                unsafe { function(library, name)? }
            }};
        }
        Ok(Self {
            version: symbol!("miopenGetVersion"),
            create: symbol!("miopenCreate"),
            destroy: symbol!("miopenDestroy"),
            create_tensor: symbol!("miopenCreateTensorDescriptor"),
            set_tensor: symbol!("miopenSetTensorDescriptorV2"),
            tensor_bytes: symbol!("miopenGetTensorNumBytes"),
            create_convolution: symbol!("miopenCreateConvolutionDescriptor"),
            init_convolution: symbol!("miopenInitConvolutionNdDescriptor"),
            set_groups: symbol!("miopenSetConvolutionGroupCount"),
            set_output_pad: symbol!("miopenSetTransposeConvNdOutputPadding"),
            set_find_mode: symbol!("miopenSetConvolutionFindMode"),
            algorithm_of_solver: symbol!("miopenGetSolverIdConvAlgorithm"),
            forward_bias: symbol!("miopenConvolutionForwardBias"),
            backward_bias: symbol!("miopenConvolutionBackwardBias"),
            forward: direction!("Forward", "Forward"),
            backward_data: direction!("BackwardData", "BackwardData"),
            backward_weights: direction!("BackwardWeights", "BackwardWeights"),
        })
    }
}
