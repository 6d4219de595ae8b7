//! Programs that are watched, and what they may do.

mod bounds;
mod imports;
mod kernels;
mod records;
mod support;
