//! The runtime for C and C++ programs: `include/gfxpack_runtime.h` and
//! `libgfxpack_runtime.so`.
//!
//! Each function checks its pointers, converts texts and numbers to Rust's,
//! calls `gfxpack-runtime` and converts the result back. All decisions are made
//! there.
//!
//! A test generates the header from these sources, and checks that it is up to
//! date: the documentation below is written for C programmers.
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
