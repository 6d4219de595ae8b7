//! The HIP runtime: a device that is claimed, memory that is only addresses,
//! modules that answer for their functions, and launches that do nothing.
//!
//! Source: HIP, `hip_runtime_api.h`; which of its functions a library wants is
//! told by the library.

mod device;
mod error;
pub(crate) mod event;
mod launch;
pub(crate) mod memory;
mod module;
