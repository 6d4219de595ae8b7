//! The HIP runtime: a claimed device, memory without content, modules that have the requested
//! functions, and launches that do nothing.
//!
//! Source: HIP, `hip_runtime_api.h`; the libraries determine which of its functions are needed.

mod device;
mod error;
pub(crate) mod event;
pub(crate) mod memory;
mod module;
