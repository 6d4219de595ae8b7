//! Compilers that are watched: what is recorded of them is what strace sees, and
//! they do what they do unwatched.

mod compilers;
mod imports;
mod kernels;
#[path = "../../../crates/process/tests/watch/support.rs"]
mod support;
