//! Finds precompiled GPU kernels in installed kernel databases (kdbs).
//!
//! A [`Finder`] looks for a kernel key in the system kdbs of one device: for
//! each directory, the file for exactly its compute units, then the one for
//! all of its kind. Whatever is wrong with a file is a miss with a reason, and
//! the next file is asked; nothing here fails or panics.
//!
//! Files are only read. There is no user's cache here, nothing is compiled or
//! stored, and the caller says which directories and which device.

mod finder;
mod miss;

pub use finder::{Answer, Finder, Found};
pub use miss::{Miss, MissReason};
