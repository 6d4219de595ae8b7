//! Asks the stock librocfft which kernels it would compile for plans, on a GPU that is not present.
//!
//! The library runs behind stand-ins of HIP and hipRTC, whose objects contain nothing but a number.
//! It stores each object in its cache under the kernel's key, so the cache shows which source is
//! compiled for which key.

mod error;
mod options;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use gfxpack_stock_library::ElfFile;

pub use self::error::{AskError, PlanFailure};
pub use self::options::{AskOptions, InstalledCache, ROCFFT};
use self::probe::ProbeEnd;
use crate::file::read::Reader;
use crate::plan::FftPlan;

/// The option for the target of each program.
const ARCHITECTURE: &str = "--gpu-architecture=";

/// The beginning of the stand-in's objects; the program's number follows.
///
/// Source: crates/standin/src/code_object.rs, `stand_in`.
const STAND_IN_MAGIC: &[u8] = b"gfxpack stand-in object\0";

/// The kernels that a library finds and compiles.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Names of the kernels that it had to compile, if known.
    pub compiled: Vec<String>,
    /// The number of programs that it compiled: at least one for each kernel.
    pub programs: usize,
    /// Plans that it does not create, by number.
    pub failures: BTreeMap<usize, PlanFailure>,
}

/// Has a library create these plans with the installed kernels, and reports kernels that it does
/// not find.
///
/// # Errors
/// As [`ask`].
pub fn check(
    plans: &[FftPlan],
    installed: InstalledCache<'_>,
    options: &AskOptions<'_>,
) -> Result<CheckReport, AskError> {
    let (finished, failures) = create(plans, installed, options)?;
    let mut compiled = Vec::new();
    if finished.cache().exists() {
        Reader::open(finished.cache())?.for_each_key(|key| {
            compiled.push(key.kernel_name);
            Ok::<(), AskError>(())
        })?;
    }
    Ok(CheckReport { compiled, programs: finished.output.programs.len(), failures })
}

/// The result of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskReport {
    /// The library's version: `1.0.32`.
    pub version: String,
    /// `HIP_VERSION` of the headers that it was built with.
    pub hip_version: i64,
    /// SHA-256 of the sources of its generator.
    pub generator_sum: [u8; 32],
    /// Plans that it does not create, by number.
    pub failures: BTreeMap<usize, PlanFailure>,
}

/// A kernel that the library compiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, which is also that of its function.
    pub name: String,
    /// The source that hipRTC gets.
    pub source: String,
    /// The options, without the processor.
    pub options: Vec<String>,
}

/// Asks for all kernels of these plans together, and passes each to `each` once, sorted by name.
/// Their sources may be a gigabyte, so only one is in memory at a time.
///
/// # Errors
/// [`AskError`], and the errors of `each`. A plan that the library refuses, or that ends its
/// process, is no error but is in [`AskReport::failures`].
pub fn ask<E: From<AskError>>(
    plans: &[FftPlan],
    options: &AskOptions<'_>,
    mut each: impl FnMut(Kernel) -> Result<(), E>,
) -> Result<AskReport, E> {
    let (finished, failures) = create(plans, InstalledCache::Nothing, options)?;
    let (kernels, answer) = answer(&finished, failures, options)?;
    for (name, number) in kernels {
        let path = finished.source(number);
        let read = fs::read_to_string(&path);
        let source = read.map_err(|source| AskError::Scratch { path, source })?;
        let words = finished.output.programs[&number].iter();
        let words = words.filter(|word| !word.starts_with(ARCHITECTURE)).cloned();
        each(Kernel { name, source, options: words.collect() })?;
    }
    Ok(answer)
}

/// Has the library create all plans that it can.
fn create(
    plans: &[FftPlan],
    installed: InstalledCache<'_>,
    options: &AskOptions<'_>,
) -> Result<(probe::FinishedProbe, BTreeMap<usize, PlanFailure>), AskError> {
    let mut failures = BTreeMap::new();
    loop {
        let asked: Vec<usize> =
            (0..plans.len()).filter(|plan| !failures.contains_key(plan)).collect();
        match probe::run(asked.iter().map(|plan| &plans[*plan]), installed, options)? {
            ProbeEnd::Done(finished) => {
                let refused =
                    finished.output.failures.iter().map(|(plan, failure)| (asked[*plan], *failure));
                failures.extend(refused);
                return Ok((finished, failures));
            }
            // The objects of the other plans are lost with the process.
            ProbeEnd::Died { plan, failure } => failures.insert(asked[plan], failure),
        };
    }
}

/// The compiled kernels with the numbers of their programs, and their common properties.
fn answer(
    finished: &probe::FinishedProbe,
    failures: BTreeMap<usize, PlanFailure>,
    options: &AskOptions<'_>,
) -> Result<(Vec<(String, u64)>, AskReport), AskError> {
    let inconsistent = |what| AskError::Library(format!("librocfft contradicts itself: {what}"));
    let mut kernels = Vec::new();
    let mut common: BTreeSet<(i64, [u8; 32])> = BTreeSet::new();
    if finished.cache().exists() {
        Reader::open(finished.cache())?.for_each_row(|key, code| {
            common.insert((key.hip_version, key.generator_sum));
            if key.arch != options.arch {
                return Err(inconsistent(format!("it looks up kernels for {}", key.arch)));
            }
            let number = number_in(&code).filter(|it| finished.output.programs.contains_key(it));
            let number =
                number.ok_or_else(|| inconsistent(format!("nothing was compiled for {key}")))?;
            kernels.push((key.kernel_name, number));
            Ok(())
        })?;
    }
    let Some((hip_version, generator_sum)) = common.pop_first() else {
        return Err(AskError::NoKernel);
    };
    if !common.is_empty() {
        return Err(inconsistent("its kernels are of several generators".to_owned()));
    }
    let file = ElfFile::open(&options.library.file)?;
    if memchr::memmem::find(&file.constants()?, &generator_sum).is_none() {
        let what = "the sum of its generator is not what it has in itself";
        return Err(inconsistent(what.to_owned()));
    }
    let version = finished.output.version.clone();
    Ok((kernels, AskReport { version, hip_version, generator_sum, failures }))
}

/// The number of the program in an object of the hipRTC stand-in.
fn number_in(object: &[u8]) -> Option<u64> {
    let number = object.strip_prefix(STAND_IN_MAGIC)?.get(..8)?;
    Some(u64::from_le_bytes(number.try_into().ok()?))
}
