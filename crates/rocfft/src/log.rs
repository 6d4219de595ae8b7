//! What rocFFT's own logs say.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read as _};

const BEGIN: &str = "// ROCFFT_RTC_BEGIN ";
const HIT: &str = "// cache hit for ";
/// Longest line that is looked at; longer ones say nothing that is asked for.
const MAX_LINE: u64 = 1 << 16;
/// Most names that are taken.
const MAX_NAMES: usize = 1 << 20;

/// The kernels of a program's run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LoggedKernels {
    /// Those that were in a cache.
    pub found: BTreeSet<String>,
    /// Those that were in none, and were compiled.
    pub compiled: BTreeSet<String>,
}

/// Why a log can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file can't be read.
    #[error("failed to read `{name}`")]
    Io {
        /// The file, as the user named it.
        name: String,
        /// What the file system says.
        source: io::Error,
    },
    /// More than any program has.
    #[error("failed to take all of `{name}`: it has more than {MAX_NAMES} kernels or plans")]
    TooMany {
        /// The log.
        name: String,
    },
}

impl LogError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path and its permissions",
            Self::TooMany { .. } => "check the log: no program has that many",
        }
    }
}

/// Reads a log of compiled kernels, as `ROCFFT_LAYER=32` and
/// `ROCFFT_LOG_RTC_PATH=FILE` have rocFFT write one. Their sources are there
/// too, and are not taken: the log does not say of which GPU and version.
/// `name` is what errors call the log.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `cached_compile_impl`.
///
/// # Errors
/// [`LogError`].
pub fn read_rtc_log(name: &str, from: impl BufRead) -> Result<LoggedKernels, LogError> {
    let mut kernels = LoggedKernels::default();
    for_each_line(name, from, |line| {
        for (mark, names) in [(BEGIN, &mut kernels.compiled), (HIT, &mut kernels.found)] {
            let kernel = line.strip_prefix(mark).map(str::trim_end);
            if let Some(kernel) = kernel.filter(|kernel| is_name(kernel)) {
                names.insert(kernel.to_owned());
            }
            if names.len() > MAX_NAMES {
                return Err(LogError::TooMany { name: name.to_owned() });
            }
        }
        Ok(())
    })?;
    Ok(kernels)
}

/// Hands on the lines that are text and not too long.
pub(crate) fn for_each_line(
    name: &str,
    mut from: impl BufRead,
    mut each: impl FnMut(&str) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let (mut chunk, mut is_start) = (Vec::new(), true);
    loop {
        chunk.clear();
        let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut chunk);
        if read.map_err(|source| LogError::Io { name: name.to_owned(), source })? == 0 {
            return Ok(());
        }
        let is_whole = std::mem::replace(&mut is_start, chunk.ends_with(b"\n"));
        if let (true, Ok(line)) = (is_whole, str::from_utf8(&chunk)) {
            each(line.trim_end_matches(['\r', '\n']))?;
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
