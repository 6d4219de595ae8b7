//! Programs and what they touch: so far, watching one, with all that it
//! starts, for what it asks of the file system.
//!
//! This crate knows no compiler but by the arguments that tell one from a
//! driver, and no plan, job or store.

pub mod watch;
