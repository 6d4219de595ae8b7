//! The HIP runtime library: loaded if it is installed, called through functions
//! with a known layout, and never unloaded.
//!
//! Only `hipGetDeviceProperties` fills a struct whose layout changed between
//! versions. All other values are read through other calls, and values from
//! both sources must agree.
//!
//! Source: ROCm/HIP, include/hip/hip_runtime_api.h and hip_deprecated.h at
//! tags rocm-5.0.0, 5.2.0, 5.4.0, 5.7.0, 6.0.0, 6.1.1, 6.2.2, compiled to get
//! the numbers; for HIP 7, ROCm/rocm-systems 003a5d106,
//! projects/hip/include/hip/hip_runtime_api.h.
#![expect(unsafe_code, reason = "the library's C functions are called here and nowhere else")]

mod error;
mod library;
mod module;
mod runtime;

pub use error::{HipError, LIBRARY_NAMES};
pub use module::Module;
pub use runtime::Hip;
