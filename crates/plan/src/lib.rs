//! Everything gfxpack decides before it touches anything: compilers' arguments,
//! which jobs and files of kernels there are, what a package contains, all as values.
//!
//! This crate knows no file system, no process, no environment, no clock and
//! no SQLite. What the shell finds out comes in as a value.
//!
//! ```
//! let line = r#"{"kernel_name": "conv.cl.o", "kernel_args": " -DX=1 -mcpu=gfx906"}"#;
//! let list = gfxpack_plan::key_list::parse_keys("keys.jsonl", line)?;
//! assert_eq!((list.requests.len(), list.unusable.len()), (1, 0));
//! # Ok::<(), gfxpack_plan::InputError>(())
//! ```

pub mod arguments;
pub mod clock;
pub mod consumer;
pub mod device_wide;
pub mod expand;
pub mod include;
pub mod kernel_package;
pub mod key_list;
pub mod license;
mod location;
pub mod manifest;
mod options;
pub mod plan;
pub mod shard;
pub mod stored;
pub mod workers;

pub use location::{InputError, InputFault, Location};

/// Whether a value need not be written.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
