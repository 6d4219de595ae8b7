//! What rocFFT's log of compiled kernels says.

use std::collections::BTreeSet;
use std::io::BufRead;

use crate::lines::{ListError, MAX_ENTRIES, for_each_line};

const BEGIN: &str = "// ROCFFT_RTC_BEGIN ";
const HIT: &str = "// cache hit for ";

/// The kernels of a program's run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LoggedKernels {
    /// Those that were in a cache.
    pub found: BTreeSet<String>,
    /// Those that were in none, and were compiled.
    pub compiled: BTreeSet<String>,
}

/// Reads a log of compiled kernels, as `ROCFFT_LAYER=32` and
/// `ROCFFT_LOG_RTC_PATH=FILE` have rocFFT write one. Their sources are there
/// too, and are not taken: the log does not say of which GPU and version.
/// `name` is what errors call the log.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `cached_compile_impl`.
///
/// # Errors
/// [`ListError`].
pub fn read_rtc_log(name: &str, from: impl BufRead) -> Result<LoggedKernels, ListError> {
    let mut kernels = LoggedKernels::default();
    for_each_line(name, from, |_, line| {
        let line = line.unwrap_or_default();
        for (mark, names) in [(BEGIN, &mut kernels.compiled), (HIT, &mut kernels.found)] {
            let kernel = line.strip_prefix(mark).map(str::trim_end);
            if let Some(kernel) = kernel.filter(|kernel| is_name(kernel)) {
                names.insert(kernel.to_owned());
            }
            if names.len() > MAX_ENTRIES {
                return Err(ListError::TooMany { name: name.to_owned() });
            }
        }
        Ok(())
    })?;
    Ok(kernels)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
