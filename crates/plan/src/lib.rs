//! Everything that gfxpack decides before it acts: compilers' arguments, the jobs and kernel files
//! of a build, the content of packages, all as values.
//!
//! This crate knows no file system, no process, no environment, no clock and no SQLite. Callers
//! pass in what they found.
//!
//! ```
//! let line = r#"{"kernel_name": "conv.cl.o", "kernel_args": " -DX=1 -mcpu=gfx906"}"#;
//! let list = gfxpack_plan::key_list::parse_keys("keys.jsonl", line)?;
//! assert_eq!((list.keys.len(), list.unusable.len()), (1, 0));
//! # Ok::<(), gfxpack_model::Error>(())
//! ```

pub mod arguments;
pub mod clock;
pub mod consumer;
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

pub use location::Location;

/// Whether a value is left out when it is written.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
