//! The compilers of this machine: found, probed, identified by the bytes that decide their objects,
//! tried, and chosen for a target.
//!
//! This crate knows nothing of plans, jobs and stores. It stores results in files of its own below
//! the cache directory: `answers/`, `trials/` and `device-libs/`.
//!
//! ```
//! let made_by = "Debian clang version 15.0.6";
//! assert_eq!(gfxpack_toolchain::clang_version(made_by), Some("15.0.6"));
//! ```

mod choose;
mod discover;
mod error;
mod isa_constants;
mod made_by;
mod probe;
mod probe_cache;
mod support;
mod toolchain;
mod trial;

pub use choose::{ToolchainReport, Toolchains};
pub use discover::Search;
pub use error::Missing;
pub use made_by::{clang_version, made_by};
pub use toolchain::{Toolchain, different_names, text_of};
pub use trial::TrialArguments;
