//! One compile job in, one checked code object out: probes the toolchain,
//! stages sources, starts compilers, checks what they made, and keeps it in
//! an object store by digest.
//!
//! This crate knows nothing of kdbs, packages and terminals.

mod answers;
mod choose;
mod configuration;
mod costs;
mod crew;
mod current;
mod disassemble;
mod discover;
mod engine;
mod error;
mod executor;
mod explain;
mod gate;
mod history;
mod isa;
mod job;
mod judge;
mod loader;
mod local;
mod memory;
mod probe;
mod remote;
mod schedule;
mod shard;
mod shared;
mod source;
mod store;
mod support;
mod toolchain;
mod trial;
mod verdict;
mod witness;
mod work;

pub use choose::{Listed, Toolchains};
pub use costs::KnownCosts;
pub use current::Current;
pub use disassemble::Disassembler;
pub use discover::Search;
pub use engine::{Shortcut, Shortcuts};
pub use error::CompileError;
pub use executor::{Event, Executor, ExecutorOptions, JobRun, Remote, Summary};
pub use explain::{Change, Explanation, How, State, What, explain};
pub use gfxpack_process::watch::{Looks, landlock_abi, switch_off_landlock};
pub use gfxpack_process::{Cancel, FileDigests, Usage, kill_children, state_of, write_atomic};
pub use history::History;
pub use job::{Built, Failure, FailureKind};
pub use memory::{available_memory, default_jobs};
pub use remote::{
    Action, ActionOutcome, Content, InputFile, InputRoot, RemoteError, RemoteWorkers, Site,
    ToolchainSource,
};
pub use shard::{ManifestError, list_manifests, read_manifest, write_manifest};
pub use shared::{SharedCache, SharedStore, Upload};
pub use source::{SourceDirs, SourceSet};
pub use store::VERSION as STORE_VERSION;
pub use store::{
    About, Damaged, Evicted, Limits, Now, ObjectInfo, ObjectStore, OldStore, RestsOn, StoreStats,
    touch,
};
pub use support::{Buildable, first_support};
pub use toolchain::Toolchain;
