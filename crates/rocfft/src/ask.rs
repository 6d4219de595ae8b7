//! Asks the stock librocfft which kernels it would compile for plans, on a GPU that is not present.
//!
//! The library runs behind stand-ins of HIP and hipRTC, whose objects contain nothing but a number.
//! It stores each object in its cache under the kernel's key, so the cache shows which source is
//! compiled for which key.

mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use gfxpack_model::{Error, Result};
use gfxpack_stock_library::{ElfFile, Library, Product};

use crate::file::read::Reader;
use crate::key::CacheKey;
use crate::plan::FftPlan;

/// The option for the target of each program.
const ARCHITECTURE: &str = "--gpu-architecture=";

/// The beginning of the stand-in's objects; the program's number follows.
///
/// Source: crates/standin/src/code_object.rs, `stand_in`.
const STAND_IN_MAGIC: &[u8] = b"gfxpack stand-in object\0";

/// What to do about a library that can't be asked.
const OTHER_LIBRARY: &str = "try another librocfft; --rocfft debian:sid is known to work";
const SCRATCH_HINT: &str = "see whether the disk is full, or set TMPDIR to another one";

/// librocfft.
pub static ROCFFT: Product = Product {
    name: "librocfft",
    file: "librocfft.so",
    soname: "librocfft.so.0",
    function: "rocfft_plan_create",
    option: "--rocfft",
    package: "librocfft0",
    companions: &[],
    databases_package: None,
    driver: None,
    databases: &[],
    // The version is known only after it was started.
    version: |_| None,
    version_of_tree: |_| None,
    scratch_hint: SCRATCH_HINT,
    probe_hint: "the probe comes with gfxpack: install both again",
    load_hint: OTHER_LIBRARY,
    function_hint: OTHER_LIBRARY,
};

/// Options of asking.
#[derive(Clone, Copy)]
pub struct AskOptions<'a> {
    /// The library.
    pub library: &'a Library,
    /// The program that loads it, which comes with gfxpack.
    pub probe: &'a Path,
    /// The directory for temporary files if they can't be in memory.
    pub scratch: &'a Path,
    /// The processor without features: `gfx90a`.
    pub arch: &'a str,
    /// Its compute units. Kernels do not depend on them, only how they are launched.
    pub compute_units: u32,
    /// Called again and again; asking ends if it returns true.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// Where a library looks kernels up before it compiles them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledCache<'a> {
    /// Nowhere.
    Nothing,
    /// In this file.
    File(&'a Path),
    /// In its own directory, as by default.
    Own,
}

/// Why a plan was not created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanFailure {
    /// The library refuses it with this `rocfft_status`.
    Refused(i32),
    /// It takes longer than any useful plan.
    Overdue,
    /// A signal ended the library's process.
    Killed(i32),
    /// The library's process exited with this status.
    Exited(i32),
}

impl fmt::Display for PlanFailure {
    /// A clause with the plan as its subject.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status) => write!(f, "is refused with status {status}"),
            Self::Overdue => f.write_str("takes too long"),
            Self::Killed(signal) => write!(f, "ends librocfft by signal {signal}"),
            Self::Exited(status) => write!(f, "ends librocfft with status {status}"),
        }
    }
}

/// The error of a library that uses a property of the GPU that is not known without one, or that
/// contradicts itself.
fn unusable(what: String) -> Error {
    Error::internal(what, OTHER_LIBRARY)
}

/// The error for the cache that a library has written, which can't be read.
fn unreadable(error: Error) -> Error {
    Error::internal(&error, "this is a defect of gfxpack or of the disk").caused_by(error)
}

/// The kernels that a library finds and compiles.
#[derive(Debug, Clone, PartialEq, Eq)]
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
pub fn check(
    plans: &[FftPlan],
    installed: InstalledCache<'_>,
    options: &AskOptions<'_>,
) -> Result<CheckReport> {
    let (finished, failures) = create(plans, installed, options)?;
    let mut compiled = Vec::new();
    if finished.cache().exists() {
        let read = Reader::open(finished.cache()).and_then(|reader| {
            reader.for_each_key(|key| {
                compiled.push(key.kernel_name);
                Ok(())
            })
        });
        read.map_err(unreadable)?;
    }
    Ok(CheckReport { compiled, programs: finished.output.programs.len(), failures })
}

/// The result of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
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
/// If the library can't be asked, and the errors of `each`. A plan that the library refuses, or that ends its
/// process, is no error but is in [`AskReport::failures`].
pub fn ask(
    plans: &[FftPlan],
    options: &AskOptions<'_>,
    mut each: impl FnMut(Kernel) -> Result,
) -> Result<AskReport> {
    let (finished, failures) = create(plans, InstalledCache::Nothing, options)?;
    let (kernels, answer) = answer(&finished, failures, options)?;
    for (name, number) in kernels {
        let path = finished.source(number);
        let source = fs::read_to_string(&path).map_err(|source| {
            Error::internal(format!("failed to use `{}`", path.display()), SCRATCH_HINT)
                .caused_by(source)
        })?;
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
) -> Result<(probe::FinishedProbe, BTreeMap<usize, PlanFailure>)> {
    let mut failures = BTreeMap::new();
    loop {
        let asked: Vec<usize> =
            (0..plans.len()).filter(|plan| !failures.contains_key(plan)).collect();
        match probe::run(asked.iter().map(|plan| &plans[*plan]), installed, options)? {
            Ok(finished) => {
                let refused =
                    finished.output.failures.iter().map(|(plan, failure)| (asked[*plan], *failure));
                failures.extend(refused);
                return Ok((finished, failures));
            }
            // The objects of the other plans are lost with the process.
            Err((plan, failure)) => failures.insert(asked[plan], failure),
        };
    }
}

/// The compiled kernels with the numbers of their programs, and their common properties.
fn answer(
    finished: &probe::FinishedProbe,
    failures: BTreeMap<usize, PlanFailure>,
    options: &AskOptions<'_>,
) -> Result<(Vec<(String, u64)>, AskReport)> {
    let inconsistent = |what| unusable(format!("librocfft contradicts itself: {what}"));
    let mut contradiction = None;
    let mut kernels = Vec::new();
    let mut common: BTreeSet<(i64, [u8; 32])> = BTreeSet::new();
    if finished.cache().exists() {
        let each = |key: CacheKey, code: Vec<u8>| {
            common.insert((key.hip_version, key.generator_sum));
            let number = number_in(&code).filter(|it| finished.output.programs.contains_key(it));
            match number {
                _ if key.arch != options.arch => {
                    contradiction.get_or_insert(format!("it looks up kernels for {}", key.arch));
                }
                Some(number) => kernels.push((key.kernel_name, number)),
                None => {
                    contradiction.get_or_insert(format!("nothing was compiled for {key}"));
                }
            }
            Ok(())
        };
        let read = Reader::open(finished.cache()).and_then(|reader| reader.for_each_row(each));
        read.map_err(unreadable)?;
    }
    if let Some(what) = contradiction {
        return Err(inconsistent(what));
    }
    let Some((hip_version, generator_sum)) = common.pop_first() else {
        let hint = "none of the plans can be created; each is named above";
        return Err(Error::internal("librocfft asked for no kernel", hint));
    };
    if !common.is_empty() {
        return Err(inconsistent("its kernels are of several generators".to_owned()));
    }
    let constants = ElfFile::open(&options.library.file).and_then(|file| file.constants());
    let constants = constants.map_err(|error| ROCFFT.unreadable(error))?;
    if memchr::memmem::find(&constants, &generator_sum).is_none() {
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
