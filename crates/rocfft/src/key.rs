//! The key by which rocFFT looks a kernel up, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// The key of one row. Its order is the order of the rows in a file: by name,
/// processor, version and sum, each bytewise or as a number.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `RTCCache::get_code_object`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey {
    /// The kernel's name, which contains all of its parameters:
    /// `fft_rtc_fwd_len64_factors_4_4_4_wgs_64_tpt_16_sp_ip_CI_unitstride_sbrr_dirReg`.
    pub kernel_name: String,
    /// The processor without features: `gfx90a`.
    pub arch: String,
    /// `HIP_VERSION` of the headers that the library was built with: major
    /// version times 10^7, minor version times 10^5, and patch.
    pub hip_version: i64,
    /// SHA-256 of the source files of the library's kernel generator.
    pub generator_sum: [u8; 32],
}

impl CacheKey {
    /// The symbol that the code object must define: the kernel's descriptor.
    pub fn symbol(&self) -> String {
        format!("{}.kd", self.kernel_name)
    }
}

impl fmt::Display for CacheKey {
    /// Name, processor, version, and the first eight digits of the sum, enough for people to
    /// distinguish generators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel_name, arch, hip_version, generator_sum: [a, b, c, d, ..] } = self;
        write!(f, "{kernel_name} for {arch}, HIP {hip_version}, ")?;
        write!(f, "generator {a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

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
