//! Programs and what they touch: so far, watching one, with all that it
//! starts, for what it asks of the file system.
//!
//! This crate knows no compiler but by the arguments that tell one from a
//! driver, and no plan, job or store.

mod atomic;
mod file_digest;
pub mod watch;

pub use atomic::{write_atomic, write_atomic_by, write_atomic_with};
pub use file_digest::{FileDigests, Identity, state_of};
