//! Where rocFFT looks for its kernel caches.

use std::path::{Path, PathBuf};

const STEM: &str = "rocfft_kernel_cache";

/// Which file of its own directory a rocFFT reads.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `default_cache_filename`; and
/// rocm-libraries' pull request 4892, in releases after ROCm 7.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNaming {
    /// One file for all processors: `rocfft_kernel_cache.db`.
    Shared,
    /// A file for each: `rocfft_kernel_cache_gfx1201.db`.
    PerArch,
}

/// The name of a file with the kernels of `arch`.
#[must_use]
pub fn file_name(naming: FileNaming, arch: &str) -> String {
    match naming {
        FileNaming::Shared => format!("{STEM}.db"),
        FileNaming::PerArch => format!("{STEM}_{arch}.db"),
    }
}

/// The processor that a file's name says, if it says one: `gfx1201`.
#[must_use]
pub fn arch_of_file_name(path: &Path) -> Option<&str> {
    let arch = path.file_name()?.to_str()?.strip_prefix(STEM)?.strip_prefix('_')?;
    arch.strip_suffix(".db").filter(|arch| arch.starts_with("gfx"))
}

/// Whether a file has the name of a kernel cache, of one processor or of all.
#[must_use]
pub fn is_file_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    arch_of_file_name(path).is_some()
        || name.is_some_and(|name| name == file_name(FileNaming::Shared, ""))
}

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
    /// The places of a library in `library_dir`, with the values of
    /// `ROCFFT_RTC_CACHE_PATH` and `ROCFFT_RTC_SYS_CACHE_PATH`. An empty value
    /// counts as none. The second names a file, whatever the naming.
    ///
    /// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `rtccache_db_sys_paths` and
    /// `rtccache_db_user_paths`.
    #[must_use]
    pub fn new(
        library_dir: &Path,
        naming: FileNaming,
        arch: &str,
        cache_path: Option<&Path>,
        sys_cache_path: Option<&Path>,
    ) -> Self {
        let set =
            |path: Option<&Path>| path.filter(|path| *path != Path::new("")).map(Path::to_owned);
        // The database in memory that SQLite knows by this name.
        let user = set(cache_path).filter(|path| path != Path::new(":memory:"));
        let name = file_name(naming, arch);
        let own = || vec![library_dir.join(&name), library_dir.join("rocfft").join(&name)];
        Self { user, system: set(sys_cache_path).map_or_else(own, |path| vec![path]) }
    }
}
