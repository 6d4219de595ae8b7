//! One compile job in, one checked code object out: probes the toolchain,
//! stages sources, starts compilers, checks what they made, and keeps it in
//! an object store by digest.
//!
//! This crate knows nothing of kdbs, packages and terminals.

mod disassemble;
mod error;
mod executor;
mod file_digest;
mod job;
mod memory;
mod probe;
mod process;
mod source;
mod store;
mod support;
mod toolchain;
mod usage;
mod work;

pub use disassemble::Disassembler;
pub use error::CompileError;
pub use executor::{Event, Executor, ExecutorOptions, Summary};
pub use file_digest::FileDigests;
pub use job::{Built, Failure, FailureKind};
pub use memory::{available_memory, default_jobs};
pub use process::Cancel;
pub use source::{SourceDirs, SourceSet};
pub use store::{ObjectInfo, ObjectStore};
pub use support::{Buildable, first_support};
pub use toolchain::{Search, Toolchain};
pub use usage::Usage;
pub use work::write_atomic;
