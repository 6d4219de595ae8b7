//! The configuration of a cache: device, places, order, limits, and warnings.

use std::path::PathBuf;
use std::time::Duration;

use gfxpack_model::Target;

use crate::directories::{DirectoryOptions, KdbDirectories};
use crate::environment::Environment;
use crate::warning::WarningSink;

/// Which layer is searched first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LookupOrder {
    /// The installed kdb, then the user's, as MIOpen's documentation says.
    #[default]
    SystemFirst,
    /// The user's kdb, then the installed one, as MIOpen's code does.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord`.
    UserFirst,
}

/// Bounds on what is read from files and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one user kdb. The least recently used kernels are deleted
    /// first.
    pub user_cache_bytes: u64,
    /// Bytes of code objects kept in memory: those that could not be saved,
    /// and with [`Config::keep_hits`] all others.
    pub memory_bytes: u64,
    /// How long one call waits in total for user kdbs that another process has
    /// locked. After a failed wait, no call waits for that file for a minute,
    /// unless an access succeeds.
    pub busy_wait: Duration,
    /// How long to wait for another thread or process that compiles the same
    /// key, before compiling it here too.
    pub compile_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            user_cache_bytes: 4 << 30,
            memory_bytes: 256 << 20,
            busy_wait: Duration::from_secs(10),
            compile_wait: Duration::from_secs(300),
        }
    }
}

/// The configuration for [`KernelCache::open`](crate::KernelCache::open).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The device. Unspecified features count as in MIOpen: XNACK is off.
    pub target: Target,
    /// Which layer is searched first.
    pub order: LookupOrder,
    /// The directories with the files.
    pub directories: KdbDirectories,
    /// Limits.
    pub limits: Limits,
    /// Where warnings go.
    pub warnings: WarningSink,
    /// MIOPEN_LOG_LEVEL: at 1 to 3, warnings are hidden.
    pub log_level: u8,
    /// Whether hits are kept in memory, so that repeated lookups read no file.
    pub keep_hits: bool,
    /// Whether nothing on disk may be created, changed or moved: for tools that
    /// only inspect. An unfinished write of a killed program in the user's kdb
    /// then can't be undone, and the file is a miss.
    pub look_only: bool,
    /// Only this installed kdb, instead of those in the directories.
    pub(crate) only_system_file: Option<PathBuf>,
}

impl Config {
    /// The defaults for a device, with the given places.
    pub fn new(target: Target, directories: KdbDirectories) -> Self {
        Self {
            target,
            order: LookupOrder::default(),
            directories,
            limits: Limits::default(),
            warnings: WarningSink::default(),
            log_level: 0,
            keep_hits: false,
            look_only: false,
            only_system_file: None,
        }
    }

    /// The defaults for a device, with places and log level from the
    /// environment: for MIOpen's own kernels. Programs with other kernels set
    /// their directories through [`DirectoryOptions`].
    pub fn from_environment(target: Target, environment: &Environment) -> Self {
        let directories = KdbDirectories::resolve(environment, &DirectoryOptions::default());
        let mut config = Self::new(target, directories);
        config.log_level = environment.log_level();
        config
    }
}
