//! MIOpen's C functions, by the names that the library exports.
//!
//! Source: MIOpen, `miopen.h` and `miopen_internal.h`.

use core::ffi::{c_int, c_void};
use std::ffi::CString;

use crate::symbols::{function, interface};

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
/// The functions of one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectionApi {
    pub(crate) find: Find,
    pub(crate) run: Run,
    pub(crate) count: Count,
    pub(crate) get: Get,
    pub(crate) compile: Compile,
    pub(crate) immediate: Immediate,
}

impl DirectionApi {
    /// Those of `Forward`, `BackwardData` or `BackwardWeights`.
    ///
    /// # Errors
    /// The first function that the loaded library does not have.
    pub(crate) fn find(library: *mut c_void, direction: &str) -> Result<Self, String> {
        let name = |what: &str| CString::new(what.replace('*', direction)).expect("no zero");
        // SAFETY: the header declares the functions with the types of the fields.
        unsafe {
            Ok(Self {
                find: function(library, &name("miopenFindConvolution*Algorithm"))?,
                run: function(library, &name("miopenConvolution*"))?,
                count: function(library, &name("miopenConvolution*GetSolutionCount"))?,
                get: function(library, &name("miopenConvolution*GetSolution"))?,
                compile: function(library, &name("miopenConvolution*CompileSolution"))?,
                immediate: function(library, &name("miopenConvolution*Immediate"))?,
            })
        }
    }
}

interface! {
    /// The other functions that this program calls.
    MiOpen {
        version: c"miopenGetVersion" = fn(*mut usize, *mut usize, *mut usize);
        create: c"miopenCreate" = fn(*mut Object);
        destroy: c"miopenDestroy" = fn(Object);
        create_tensor: c"miopenCreateTensorDescriptor" = fn(*mut Object);
        set_tensor: c"miopenSetTensorDescriptorV2"
            = fn(Object, c_int, c_int, *const usize, *const usize);
        tensor_bytes: c"miopenGetTensorNumBytes" = fn(Object, *mut usize);
        create_convolution: c"miopenCreateConvolutionDescriptor" = fn(*mut Object);
        init_convolution: c"miopenInitConvolutionNdDescriptor"
            = fn(Object, c_int, *const c_int, *const c_int, *const c_int, c_int);
        set_groups: c"miopenSetConvolutionGroupCount" = fn(Object, c_int);
        set_output_pad: c"miopenSetTransposeConvNdOutputPadding"
            = fn(Object, c_int, *const c_int);
        set_find_mode: c"miopenSetConvolutionFindMode" = fn(Object, c_int);
        algorithm_of_solver: c"miopenGetSolverIdConvAlgorithm" = fn(u64, *mut c_int);
        // Factor, from, factor, to: tensors are a descriptor and an address.
        forward_bias: c"miopenConvolutionForwardBias"
            = fn(Object, *const c_void, Object, *const c_void, *const c_void, Object, *mut c_void);
        backward_bias: c"miopenConvolutionBackwardBias"
            = fn(Object, *const c_void, Object, *const c_void, *const c_void, Object, *mut c_void);
    }
}
