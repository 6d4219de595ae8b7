//! How a cache is opened: device, places, order, limits, and who is warned.

use std::path::PathBuf;
use std::time::Duration;

use gfxpack_model::Target;

use crate::environment::{Environment, LogLevel};
use crate::places::{PlaceOptions, Places};
use crate::warning::WarningSink;

/// Which layer is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LookupOrder {
    /// The installed kdb, then the user's, as MIOpen documents it.
    #[default]
    SystemFirst,
    /// The user's, then the installed one, as MIOpen's code does it.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord`.
    UserFirst,
}

/// Bounds on what is taken from files and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest code object handed out or stored, in bytes.
    pub max_object_bytes: u64,
    /// Bytes of one user kdb. What was used longest ago goes first.
    pub user_cache_bytes: u64,
    /// Bytes of code objects kept in memory: those that could not be saved,
    /// and with [`Config::keep_hits`] all others.
    pub memory_bytes: u64,
    /// How long one call waits, all in all, for a user kdb that another process
    /// has locked. After that nobody waits for the file for a minute, unless
    /// it turns out free.
    pub busy_wait: Duration,
    /// How long to wait for another thread or process that compiles the same
    /// key, before compiling it here too.
    pub compile_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_object_bytes: gfxpack_kdb::MAX_OBJECT_BYTES,
            user_cache_bytes: 4 << 30,
            memory_bytes: 256 << 20,
            busy_wait: Duration::from_secs(10),
            compile_wait: Duration::from_secs(300),
        }
    }
}

/// What [`KernelCache::open`](crate::KernelCache::open) needs to know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The device. Features that are not stated count as MIOpen counts them:
    /// XNACK unsaid means off.
    pub target: Target,
    /// Which layer is asked first.
    pub order: LookupOrder,
    /// Where the files are.
    pub places: Places,
    /// Bounds.
    pub limits: Limits,
    /// Where warnings go.
    pub warnings: WarningSink,
    /// MIOPEN_LOG_LEVEL: at 1 to 3, no warning is given.
    pub log_level: LogLevel,
    /// Whether a code object's gfx target is held against the device before
    /// the bytes are handed out or stored. If false, any bytes are returned and
    /// stored unchecked.
    pub verify_target: bool,
    /// Whether hits are kept in memory, so that asking again reads no file.
    pub keep_hits: bool,
    /// Whether nothing on disk may be made, changed or moved: for tools that
    /// only want to look. What a killed program left half written in the user's
    /// kdb can't be undone then, and the file is a miss.
    pub look_only: bool,
    /// Exactly this installed kdb, in place of those in the directories.
    pub(crate) only_system_file: Option<PathBuf>,
}

impl Config {
    /// The defaults for a device, with files in these places.
    #[must_use]
    pub fn new(target: Target, places: Places) -> Self {
        Self {
            target,
            order: LookupOrder::default(),
            places,
            limits: Limits::default(),
            warnings: WarningSink::default(),
            log_level: LogLevel::default(),
            verify_target: true,
            keep_hits: false,
            look_only: false,
            only_system_file: None,
        }
    }

    /// The defaults for a device, with places and log level as the environment
    /// has them: for MIOpen's own kernels. Others are in directories of their
    /// own, which [`PlaceOptions`] takes.
    #[must_use]
    pub fn from_environment(target: Target, environment: &Environment) -> Self {
        let places = Places::resolve(environment, &PlaceOptions::default());
        let mut config = Self::new(target, places);
        config.log_level = environment.log_level();
        config
    }
}
