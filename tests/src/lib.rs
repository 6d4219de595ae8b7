//! What the integration tests share.

pub mod opencl;
pub mod project;
