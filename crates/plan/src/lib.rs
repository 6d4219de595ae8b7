//! Everything gfxpack decides before it touches anything: what MIOpen calls
//! things, what a compiler is told, what a package contains, all as values.
//!
//! This crate knows no file system, no process, no environment, no clock and
//! no SQLite. What the shell finds out comes in as a value.

pub mod code_object;
mod key;
pub mod processors;
pub mod package;
pub mod target;

pub use key::{KernelKey, KeyError, Language};
pub use target::{Target, TargetError, TargetId};
