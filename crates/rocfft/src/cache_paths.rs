//! Where rocFFT looks for its kernel caches.

use std::path::{Path, PathBuf};

/// The places where a library looks for the kernels of one processor: first the user's file, then
/// the system's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePaths {
    /// The user's file, into which the library writes compiled kernels; `None` if it stores kernels
    /// in memory only.
    pub user: Option<PathBuf>,
    /// The system's files. Only the first one that exists is opened.
    pub system: Vec<PathBuf>,
}

impl CachePaths {
    /// The places of a library in `library_dir` that looks for a file with this name, given the
    /// values of `ROCFFT_RTC_CACHE_PATH` and `ROCFFT_RTC_SYS_CACHE_PATH`. An empty value counts as
    /// unset. The second variable names a file of any name.
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
        // SQLite's name for a database in memory.
        let user = set(cache_path).filter(|path| path != Path::new(":memory:"));
        let own = || vec![library_dir.join(file_name), library_dir.join("rocfft").join(file_name)];
        Self { user, system: set(sys_cache_path).map_or_else(own, |path| vec![path]) }
    }
}
