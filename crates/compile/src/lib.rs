//! Compiles jobs to checked code objects: stages sources, has compilers started, checks their
//! results, and keeps them in an object store by digest.
//!
//! This crate knows nothing of kdbs, packages and terminals, nor how a compiler
//! is started: that is behind [`gfxpack_launch::Session`].
//!
//! ```
//! // The cache of a user who has compiled nothing yet.
//! let directory = tempfile::tempdir()?;
//! let store = gfxpack_compile::ObjectStore::open(directory.path())?;
//! assert_eq!(store.stats().objects, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod context;
mod costs;
mod declare;
mod diagnostics;
mod event;
mod executor;
mod explain;
mod failure_kind;
mod history;
mod job;
mod judge;
mod memory_limiter;
mod nearby_files;
mod remote;
mod schedule;
mod shared_cache;
mod source;
mod source_dirs;
mod stage;
mod store;
mod worker_pool;

pub use declare::{Declared, Declarer};
pub use event::{Event, JobRun};
pub use executor::{Executor, ExecutorOptions, Origin, Remote, Summary};
pub use explain::{Change, ChangeKind, ChangedPart, Explanation, State, explain};
pub use gfxpack_launch::SourceFiles;
pub use gfxpack_process::watch::{FileSystemCache, landlock_abi, switch_off_landlock};
pub use gfxpack_process::{
    Cancel, FileDigests, Usage, interrupted, kill_children, touch, write_atomic,
};
pub use history::History;
pub use job::{Compiled, Failure, FailureKind, Site};
pub use nearby_files::StoredContent;
pub use remote::{
    Action, ActionOutcome, Content, InputFile, InputRoot, RemoteError, RemoteWorkers,
};
pub use shared_cache::{SharedCache, SharedStore, Upload};
pub use source::SourceSet;
pub use source_dirs::SourceDirs;
pub use store::VERSION as STORE_VERSION;
pub use store::{
    CorruptObject, Damaged, Evicted, Limits, ObjectInfo, ObjectPurpose, ObjectStore, StoreStats,
};
