//! Where rocFFT looks for its kernel caches.

use std::path::{Path, PathBuf};

/// Where a library looks for the kernels of one processor: first in the
/// user's file, then in that of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The user's own, which the library writes what it compiled to; `None` if
    /// it keeps kernels in memory only.
    pub user: Option<PathBuf>,
    /// The system's. The first of them that exists is opened, and no other is
    /// asked for what it does not have.
    pub system: Vec<PathBuf>,
}

impl Places {
    /// The places of a library in `library_dir` that looks for a file of that
    /// name, with the values of `ROCFFT_RTC_CACHE_PATH` and
    /// `ROCFFT_RTC_SYS_CACHE_PATH`. An empty value counts as none. The second
    /// names a file, whatever that is called.
    ///
    /// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `rtccache_db_sys_paths` and
    /// `rtccache_db_user_paths`.
    #[must_use]
    pub fn new(
        library_dir: &Path,
        file_name: &str,
        cache_path: Option<&Path>,
        sys_cache_path: Option<&Path>,
    ) -> Self {
        let set =
            |path: Option<&Path>| path.filter(|path| *path != Path::new("")).map(Path::to_owned);
        // The database in memory that SQLite knows by this name.
        let user = set(cache_path).filter(|path| path != Path::new(":memory:"));
        let own = || vec![library_dir.join(file_name), library_dir.join("rocfft").join(file_name)];
        Self { user, system: set(sys_cache_path).map_or_else(own, |path| vec![path]) }
    }
}
