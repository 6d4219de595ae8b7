//! The runtime as C and C++ programs see it: `include/gfxpack_runtime.h` and
//! `libgfxpack_runtime.so`.
//!
//! Each function here checks its pointers, turns texts and numbers into
//! Rust's, calls `gfxpack-runtime` and turns the answer back. Nothing is
//! decided here.
//!
//! The header is generated from these sources by a test, which holds it
//! against them afterwards: the documentation below is written for readers of
//! C.
#![expect(
    clippy::missing_safety_doc,
    reason = "the documentation is the C header's, which says it in its own words"
)]

pub mod boundary;
pub mod cache;
pub mod device;
mod failure;
pub mod layer;
pub mod lookup;
pub mod miss;
pub mod options;
pub mod status;
mod text;
pub mod version;
pub mod warning;
