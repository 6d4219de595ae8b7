//! Reads rocFFT's log of compiled kernels.

use std::collections::BTreeSet;
use std::io::BufRead;

use crate::lines::{ListError, MAX_ENTRIES, for_each_line};

const BEGIN: &str = "// ROCFFT_RTC_BEGIN ";
const HIT: &str = "// cache hit for ";

/// The kernels that a program used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LoggedKernels {
    /// Kernels that were found in a cache.
    pub found: BTreeSet<String>,
    /// Kernels that were compiled.
    pub compiled: BTreeSet<String>,
}

/// Reads a log of compiled kernels, which rocFFT writes with `ROCFFT_LAYER=32` and
/// `ROCFFT_LOG_RTC_PATH=FILE`. Its kernel sources are ignored, since the log does not name GPU and
/// version. `name` is the log's name in errors.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `cached_compile_impl`.
///
/// # Errors
/// [`ListError`].
pub fn read_rtc_log(name: &str, from: impl BufRead) -> Result<LoggedKernels, ListError> {
    let mut kernels = LoggedKernels::default();
    for_each_line(name, from, |_, line| {
        let line = str::from_utf8(line).unwrap_or_default();
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
