//! Reads lists of plans, and rocFFT's log of compiled kernels, line by line.

use std::collections::{BTreeSet, HashSet};
use std::io::Read;

use gfxpack_harvest::log::Lines;
use gfxpack_harvest::{Skips, pieces};
use gfxpack_model::{Error, Result};

use crate::plan::FftPlan;

/// The most distinct plans or kernels in one file.
pub(crate) const MAX_ENTRIES: usize = 1 << 20;
/// The first words of plans, before which log tools may have written.
const BEGINS: [&str; 4] = ["c2c ", "r2c ", "c2r ", "rocfft-bench "];

/// Before the name of a kernel that is compiled.
const BEGIN: &str = "// ROCFFT_RTC_BEGIN ";
/// Before the name of a kernel that a cache has.
const HIT: &str = "// cache hit for ";

/// The plans of a list, each once, in the order of their first lines, and the lines that are none.
/// `name` is the file's name in errors.
///
/// # Errors
/// If it can't be read, has no plan, or too many.
pub fn read_plans(name: &str, from: impl Read) -> Result<(Vec<FftPlan>, Skips)> {
    let (mut seen, mut plans, mut skipped) = (HashSet::new(), Vec::new(), Skips::default());
    for_each_line(name, from, |number, line| {
        let text = String::from_utf8_lossy(line);
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(());
        }
        let begin = BEGINS.iter().find_map(|begin| text.find(begin)).unwrap_or(0);
        match text.parse::<FftPlan>().or_else(|error| text[begin..].parse().map_err(|_| error)) {
            Ok(plan) if seen.insert(plan.clone()) => plans.push(plan),
            Ok(_) => {}
            Err(error) => skipped.add(number, line, error),
        }
        if plans.len() > MAX_ENTRIES { Err(too_many(name)) } else { Ok(()) }
    })?;
    match skipped.iter().next() {
        _ if !plans.is_empty() => Ok((plans, skipped)),
        Some(first) => {
            let message = format!("failed to read `{name}:{}`: {}", first.first, first.why);
            Err(Error::usage(message, first.hint))
        }
        None => Err(Error::usage(
            format!("failed to find a plan in `{name}`"),
            "every line is a plan, `c2c sp ip 1024x1024 batch 8`, a comment (#) or empty",
        )),
    }
}

/// The kernels that a program used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
/// If it can't be read, or has too many kernels.
pub fn read_rtc_log(name: &str, from: impl Read) -> Result<LoggedKernels> {
    let mut kernels = LoggedKernels::default();
    for_each_line(name, from, |_, line| {
        let line = str::from_utf8(line).unwrap_or_default();
        for (mark, names) in [(BEGIN, &mut kernels.compiled), (HIT, &mut kernels.found)] {
            let kernel = line.strip_prefix(mark).map(str::trim_end);
            if let Some(kernel) = kernel.filter(|kernel| is_name(kernel)) {
                names.insert(kernel.to_owned());
            }
            if names.len() > MAX_ENTRIES {
                return Err(too_many(name));
            }
        }
        Ok(())
    })?;
    Ok(kernels)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Calls a function with each line that is not empty and its number, from 1.
pub(crate) fn for_each_line(
    name: &str,
    from: impl Read,
    mut each: impl FnMut(u64, &[u8]) -> Result,
) -> Result {
    let mut ended = Ok(());
    let mut line = |number, line: &[u8], _| {
        if ended.is_ok() {
            ended = each(number, line);
        }
    };
    let mut lines = Lines::all();
    let failed = |source| {
        let hint = "check the path and its permissions";
        Error::usage(format!("failed to read `{name}`"), hint).caused_by(source)
    };
    pieces(from, failed, |piece| {
        lines.push(piece, &mut line);
        Ok(())
    })?;
    lines.finish(&mut line);
    ended
}

/// The error for more plans or kernels than any program has.
pub(crate) fn too_many(name: &str) -> Error {
    Error::usage(
        format!("failed to take all of `{name}`: it has more than {MAX_ENTRIES} plans or kernels"),
        "check the file, or ask for the plans in several runs",
    )
}
