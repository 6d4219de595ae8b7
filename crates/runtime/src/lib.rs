//! Finds precompiled GPU kernels at run time, and keeps kernels that had to be
//! compiled. It searches the installed (system) kdb, then the user's ukdb, and
//! then runs the compiler.
//!
//! ```no_run
//! use gfxpack_runtime::{Config, Environment, KernelCache, KernelKey};
//!
//! let environment = Environment::read();
//! let config = Config::from_environment("gfx90a@104".parse()?, &environment);
//! let cache = KernelCache::open(config);
//! let key = KernelKey::for_source("conv.cl", " -DX=1", "gfx90a");
//! let kernel = cache.get_or_compile(&key, || std::fs::read("conv.o"))?;
//! println!("{} bytes, {}", kernel.code_object.len(), kernel.origin);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Any problem with a file or directory is a miss with a reason, and one
//! warning: no call fails or panics because of a cache. The only error comes
//! from the caller's own compiler.
//!
//! - A *kdb* is a database of compiled kernels: an SQLite file as MIOpen reads it.
//! - A *system* kdb comes with an installed package; nothing writes to it.
//! - A *ukdb* is the user's own kdb, to which compiled kernels are added.
//! - A *layer* is one of the places that a lookup searches in turn: this
//!   process's memory, system kdbs, the ukdb ([`Layer`]).
//! - A *miss* is the reason why a file did not provide the kernel ([`Miss`]).
//!
//! [`Environment`] reads the variables, [`KdbDirectories`] finds the directories, and
//! [`KernelCache`] searches the layers in order. [`device`] detects the
//! machine's GPUs, [`hip`] loads a code object into one, [`directories`] finds the
//! directories of kdbs, and [`explain`] explains misses. `docs/runtime.md` in
//! gfxpack's repository describes the rules and all variables.

mod cache;
mod cache_version;
mod compile_once;
mod config;
mod connection_pool;
mod databases;
pub mod device;
pub mod directories;
mod edit_distance;
pub mod environment;
pub mod explain;
mod file_system;
pub mod hip;
mod installed_kdbs;
mod key_lock;
mod lookup;
mod memory_cache;
mod miopen;
mod miopen_rules;
mod miss;
mod mutex;
mod nearest_keys;
mod per_process;
mod process;
mod quarantine;
mod sqlite_gate;
mod trust;
mod user;
mod version;
mod warning;

pub use cache::KernelCache;
pub use cache_version::CacheVersion;
pub use config::{Config, Limits, LookupOrder};
pub use databases::{DatabaseDirectory, DatabaseKind, database_directories, user_database_dir};
pub use directories::{
    BUILD_TIME_CACHE_DIR, DirectoryOptions, KdbDirectories, KdbDirectory, UserDirectory,
};
pub use environment::Environment;
pub use gfxpack_model::{KernelKey, Target, TargetId, in_full};
pub use lookup::{CodeObject, Hit, Kernel, Layer, Lookup, NotStored, Origin};
pub use miopen::{MiopenKdb, MiopenLookup, MiopenOutcome, ask_as_miopen};
pub use miopen_rules::MiopenRules;
pub use miss::{Miss, MissReason};
pub use nearest_keys::{NearestKey, NearestKeys};
pub use trust::Untrusted;
pub use warning::{Warning, WarningClass, WarningSink};
