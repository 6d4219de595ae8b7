//! The compilers of this machine: found, asked what they are made of,
//! identified by the bytes that decide their objects, tried, and chosen for a
//! target. Beside them, what looks into their objects: LLVM's disassembler,
//! and the symbols and notes.
//!
//! This crate knows no plan, no job and no store. What it remembers lies in
//! files of its own below the cache directory: `answers/`, `trials/` and
//! `device-libs/`.
//!
//! ```
//! let made_by = "Debian clang version 15.0.6";
//! assert_eq!(gfxpack_toolchain::clang_version(made_by), Some("15.0.6"));
//! ```

mod choose;
mod disassemble;
mod discover;
mod error;
mod isa;
mod made_by;
mod object_info;
mod probe;
mod probe_cache;
mod probe_watch;
mod support;
mod toolchain;
mod trial;

pub use choose::{Listed, Toolchains};
pub use disassemble::Disassembler;
pub use discover::Search;
pub use error::ToolchainError;
pub use made_by::{clang_version, made_by};
pub use object_info::{ObjectInfo, ObjectInfoError, Symbol};
pub use support::Buildable;
pub use toolchain::{Toolchain, different_names};
pub use trial::TrialArguments;
