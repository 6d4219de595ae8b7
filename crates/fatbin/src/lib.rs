//! Device code in libraries and files that others built: what is in it, whether it has code for a
//! GPU, and the same without what other GPUs need.
//!
//! A fat library has one wrapper for each source that has kernels, and each points to an offload
//! bundle with one code object for each GPU. HIP takes the first that fits; the others are never
//! read. Nothing outside of the section with the bundles changes its address when they are taken
//! out, and equal input gives equal bytes.
//!
//! This crate reads files and knows no packages, processes or clocks.

mod bundle;
mod bytes;
mod check;
mod code;
mod elf;
mod error;
mod kpack;
mod library;
mod msgpack;
mod names;
mod slim;
mod slimmer;

pub use bundle::{Bundle, Entry};
pub use check::{Checker, Gap};
pub use code::CodeTarget;
pub use error::Error;
pub use kpack::normal;
pub use library::{Library, Wrapper};
pub use names::is_for_others;
pub use slim::{Slimmed, slim};
pub use slimmer::{Change, Slimmer};
