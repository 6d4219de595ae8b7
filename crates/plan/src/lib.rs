//! Everything gfxpack decides before it touches anything: what MIOpen calls
//! things, what a compiler is told, what a package contains, all as values.
//!
//! This crate knows no file system, no process, no environment, no clock and
//! no SQLite. What the shell finds out comes in as a value.

pub mod arguments;
pub mod clock;
pub mod code_object;
pub mod date;
pub mod digest;
pub mod expand;
pub mod harvest;
pub mod include;
pub mod kernel_package;
mod key;
pub mod license;
mod location;
pub mod log;
pub mod manifest;
mod options;
pub mod package;
pub mod plan;
pub mod preamble;
pub mod processors;
pub mod shard;
pub mod stored;
pub mod target;
pub mod words;

pub use digest::Digest;
pub use key::{KernelKey, KeyError, Language};
pub use location::{InputError, Location, Problem};
pub use target::{Target, TargetError, TargetId};
