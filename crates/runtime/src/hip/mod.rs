//! The HIP runtime library: loaded where it is there, asked with calls whose
//! layout is known, and never unloaded.
//!
//! Only a version of `hipGetDeviceProperties` fills a struct whose layout
//! changed; all that can be had by other calls is taken from those, and what
//! both tell must agree.
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
