//! MIOpen's C functions, by the names that the library exports.
//!
//! Source: MIOpen, `miopen.h` and `miopen_internal.h`.

use core::ffi::{c_int, c_void};

use crate::symbols::interface;

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
        );
        run: "miopenConvolution*" = fn(
            Object, *const c_void, Object, *const c_void, Object, *const c_void, Object, c_int,
            *const c_void, Object, *mut c_void, *mut c_void, usize
        );
        count: "miopenConvolution*GetSolutionCount"
            = fn(Object, Object, Object, Object, Object, *mut usize);
        get: "miopenConvolution*GetSolution"
            = fn(Object, Object, Object, Object, Object, usize, *mut usize, *mut Solution);
        compile: "miopenConvolution*CompileSolution"
            = fn(Object, Object, Object, Object, Object, u64);
        immediate: "miopenConvolution*Immediate" = fn(
            Object, Object, *const c_void, Object, *const c_void, Object, Object, *mut c_void,
            *mut c_void, usize, u64
        );
    }
}

interface! {
    /// The other functions that this program calls.
    MiOpen {
        version: "miopenGetVersion" = fn(*mut usize, *mut usize, *mut usize);
        create: "miopenCreate" = fn(*mut Object);
        destroy: "miopenDestroy" = fn(Object);
        create_tensor: "miopenCreateTensorDescriptor" = fn(*mut Object);
        set_tensor: "miopenSetTensorDescriptorV2"
            = fn(Object, c_int, c_int, *const usize, *const usize);
        tensor_bytes: "miopenGetTensorNumBytes" = fn(Object, *mut usize);
        create_convolution: "miopenCreateConvolutionDescriptor" = fn(*mut Object);
        init_convolution: "miopenInitConvolutionNdDescriptor"
            = fn(Object, c_int, *const c_int, *const c_int, *const c_int, c_int);
        set_groups: "miopenSetConvolutionGroupCount" = fn(Object, c_int);
        set_output_pad: "miopenSetTransposeConvNdOutputPadding"
            = fn(Object, c_int, *const c_int);
        set_find_mode: "miopenSetConvolutionFindMode" = fn(Object, c_int);
        algorithm_of_solver: "miopenGetSolverIdConvAlgorithm" = fn(u64, *mut c_int);
        // Factor, from, factor, to: tensors are a descriptor and an address.
        forward_bias: "miopenConvolutionForwardBias"
            = fn(Object, *const c_void, Object, *const c_void, *const c_void, Object, *mut c_void);
        backward_bias: "miopenConvolutionBackwardBias"
            = fn(Object, *const c_void, Object, *const c_void, *const c_void, Object, *mut c_void);
    }
}
