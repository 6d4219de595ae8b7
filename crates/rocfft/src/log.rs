//! Kernels out of rocFFT's own log, as `ROCFFT_LAYER=32` and
//! `ROCFFT_LOG_RTC_PATH=FILE` have it write one.
//!
//! Source: rocFFT 1.0.32, `rtc_cache.cpp`, `cached_compile_impl`.

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};
use std::mem;

use gfxpack_model::Digest;

const BEGIN: &str = "// ROCFFT_RTC_BEGIN ";
const END: &str = "// ROCFFT_RTC_END ";
const HIT: &str = "// cache hit for ";
/// Longest source, in bytes; those of rocFFT 1.0.32 have 100 KB.
const MAX_SOURCE: usize = 16 << 20;
/// Longest part of a line that is looked at in one go, and longest name.
const MAX_CHUNK: u64 = 1 << 16;
/// Most names that are taken.
const MAX_NAMES: usize = 1 << 20;

/// What a log says of a kernel. Which GPU it is for it does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// It was compiled.
    Source {
        /// Its name.
        name: String,
        /// What the compiler was given.
        source: String,
    },
    /// It was found in a cache.
    Hit {
        /// Its name.
        name: String,
    },
}

/// What a log held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LogSummary {
    /// Kernels with a source.
    pub sources: u64,
    /// Lines that say that a kernel was found.
    pub hits: u64,
    /// Sources that were there before, under the same name.
    pub repeated: u64,
    /// Sources that are cut short, of no name, too long, no text, or mixed with
    /// what another thread wrote. They are passed over.
    pub damaged: u64,
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
    /// One name has different sources: the log is of several versions.
    #[error("`{name}` has different sources for `{kernel}`")]
    Conflict {
        /// The log.
        name: String,
        /// The kernel.
        kernel: String,
    },
    /// More kernels than any program has.
    #[error("failed to take all kernels of `{name}`: there are more than {MAX_NAMES}")]
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
            Self::Conflict { .. } => "give the logs of each version of rocFFT by themselves",
            Self::TooMany { .. } => "check the log: no program has that many kernels",
        }
    }
}

/// Hands on what a log says, in its order, each source once. One source is held
/// at a time, and a digest for each name. `name` is what errors call the log.
///
/// # Errors
/// [`LogError`], or that of `each`.
pub fn read_log<E: From<LogError>>(
    name: &str,
    mut from: impl BufRead,
    mut each: impl FnMut(LogEntry) -> Result<(), E>,
) -> Result<LogSummary, E> {
    let own = || name.to_owned();
    let (mut summary, mut seen) = (LogSummary::default(), HashMap::new());
    let mut open: Option<(String, Vec<u8>)> = None;
    let (mut chunk, mut at_start) = (Vec::new(), true);
    loop {
        chunk.clear();
        let read = from.by_ref().take(MAX_CHUNK).read_until(b'\n', &mut chunk);
        if read.map_err(|source| LogError::Io { name: own(), source })? == 0 {
            summary.damaged += u64::from(open.is_some());
            return Ok(summary);
        }
        let begins = mem::replace(&mut at_start, chunk.ends_with(b"\n"));
        let marked = |mark: &str| {
            let text = str::from_utf8(&chunk).ok().filter(|_| begins)?;
            text.strip_prefix(mark).map(|kernel| kernel.trim_end().to_owned())
        };
        if let Some(kernel) = marked(BEGIN) {
            summary.damaged += u64::from(open.replace((kernel, Vec::new())).is_some());
        } else if let Some(kernel) = marked(END) {
            let whole = open.take().and_then(|(begun, source)| whole(begun, source, &kernel));
            let Some(source) = whole else {
                summary.damaged += 1;
                continue;
            };
            let digest = Digest::of(source.as_bytes());
            match seen.get(&kernel) {
                Some(earlier) if *earlier == digest => summary.repeated += 1,
                Some(_) => return Err(LogError::Conflict { name: own(), kernel }.into()),
                None if seen.len() == MAX_NAMES => {
                    return Err(LogError::TooMany { name: own() }.into());
                }
                None => {
                    summary.sources += 1;
                    seen.insert(kernel.clone(), digest);
                    each(LogEntry::Source { name: kernel, source })?;
                }
            }
        } else if let Some((_, source)) = &mut open {
            source.extend_from_slice(&chunk);
            if source.len() > MAX_SOURCE {
                summary.damaged += 1;
                open = None;
            }
        } else if let Some(kernel) = marked(HIT).filter(|kernel| is_name(kernel)) {
            summary.hits += 1;
            each(LogEntry::Hit { name: kernel })?;
        }
    }
}

/// The source between two marks, if they are of the same kernel and no other
/// thread wrote between them.
fn whole(begun: String, mut source: Vec<u8>, ended: &str) -> Option<String> {
    // rocFFT puts the end on a line of its own.
    let has_end = source.pop() == Some(b'\n');
    let source = String::from_utf8(source).ok()?;
    // A source names its kernel: it is what the caches are asked for.
    let fits = begun == ended && is_name(ended) && has_end && source.contains(ended);
    let mixed = source.lines().any(|line| line.contains(HIT) || line.contains("compile duration:"));
    (fits && !mixed).then_some(source)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
