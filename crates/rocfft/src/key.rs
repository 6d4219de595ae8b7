//! The key by which rocFFT looks a kernel up.

use std::fmt;

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
    #[must_use]
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
