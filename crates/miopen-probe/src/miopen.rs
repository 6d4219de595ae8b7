//! MIOpen's C functions, by the names that the library exports.
//!
//! Source: MIOpen, `miopen.h` and `miopen_internal.h`.

use core::ffi::{c_int, c_void};

use gfxpack_standin::interface;

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

interface! {
    /// The functions of one direction: `Forward`, `BackwardData` or `BackwardWeights`.
    DirectionApi {
        // Handle, three tensors (each a descriptor and an address) around the convolution, number
        // wanted, number found, results, workspace and its size, exhaustive search.
        find: "miopenFindConvolution*Algorithm" = fn(
            Object, Object, *const c_void, Object, *const c_void, Object, Object, *mut c_void,
            c_int, *mut c_int, *mut ConvAlgoPerf, *mut c_void, usize, bool
        ) -> Status;
        run: "miopenConvolution*" = fn(
            Object, *const c_void, Object, *const c_void, Object, *const c_void, Object, c_int,
            *const c_void, Object, *mut c_void, *mut c_void, usize
        ) -> Status;
        count: "miopenConvolution*GetSolutionCount"
            = fn(Object, Object, Object, Object, Object, *mut usize) -> Status;
        get: "miopenConvolution*GetSolution"
            = fn(Object, Object, Object, Object, Object, usize, *mut usize, *mut Solution) -> Status;
        compile: "miopenConvolution*CompileSolution"
            = fn(Object, Object, Object, Object, Object, u64) -> Status;
        immediate: "miopenConvolution*Immediate" = fn(
            Object, Object, *const c_void, Object, *const c_void, Object, Object, *mut c_void,
            *mut c_void, usize, u64
        ) -> Status;
    }
}

interface! {
    /// The other functions that this program calls.
    MiOpen {
        version: "miopenGetVersion" = fn(*mut usize, *mut usize, *mut usize) -> Status;
        create: "miopenCreate" = fn(*mut Object) -> Status;
        destroy: "miopenDestroy" = fn(Object) -> Status;
        create_tensor: "miopenCreateTensorDescriptor" = fn(*mut Object) -> Status;
        set_tensor: "miopenSetTensorDescriptorV2"
            = fn(Object, c_int, c_int, *const usize, *const usize) -> Status;
        tensor_bytes: "miopenGetTensorNumBytes" = fn(Object, *mut usize) -> Status;
        create_convolution: "miopenCreateConvolutionDescriptor" = fn(*mut Object) -> Status;
        init_convolution: "miopenInitConvolutionNdDescriptor"
            = fn(Object, c_int, *const c_int, *const c_int, *const c_int, c_int) -> Status;
        set_groups: "miopenSetConvolutionGroupCount" = fn(Object, c_int) -> Status;
        set_output_pad: "miopenSetTransposeConvNdOutputPadding"
            = fn(Object, c_int, *const c_int) -> Status;
        set_find_mode: "miopenSetConvolutionFindMode" = fn(Object, c_int) -> Status;
        algorithm_of_solver: "miopenGetSolverIdConvAlgorithm" = fn(u64, *mut c_int) -> Status;
        // Factor, from, factor, to: tensors are a descriptor and an address.
        forward_bias: "miopenConvolutionForwardBias" = fn(
            Object, *const c_void, Object, *const c_void, *const c_void, Object, *mut c_void
        ) -> Status;
        backward_bias: "miopenConvolutionBackwardBias" = fn(
            Object, *const c_void, Object, *const c_void, *const c_void, Object, *mut c_void
        ) -> Status;
    }
}
