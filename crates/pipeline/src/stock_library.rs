//! Finds the stock library to ask, libMIOpen or librocfft, MIOpen's databases,
//! and the probe that loads either library; and what is the same for the answers of both.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use gfxpack_compile::SourceDirs;
use gfxpack_debian::{Archive, KEYS, Lock, Options};
use gfxpack_miopen::{Library, LibrarySource, MIOPEN};
use gfxpack_model::Target;
use gfxpack_stock_library::Product;

use crate::ask::{self, ListCoverage};
use crate::build::MadeKdb;
use crate::environment::ENVIRONMENT;
use crate::error::{self, Result};
use crate::inputs::InputCollector;
use crate::kdb_check::TargetCheck;
use crate::ledger::Absences;
use crate::options::{BuildOptions, CacheDir, InputOptions, LibraryOptions, processes};
use crate::progress::{Progress, Step, Unit};
use crate::rocfft;

/// The answer of a stock library: the kernels that it asks for.
pub trait LibraryAnswer {
    /// Reports what the library failed on.
    ///
    /// # Errors
    /// If it failed on anything. `hint` is used unless a failure has its own.
    fn report_failures(&self, hint: &str, progress: &dyn Progress) -> Result<()>;

    /// Adds the kernels to the inputs. Sources in the library take precedence; `user` has those that
    /// it lacks, such as assembly in Debian's.
    ///
    /// # Errors
    /// If sources can't be written or read.
    fn add_keys(&self, to: &mut InputCollector, user: &SourceDirs, dfsg: bool) -> Result<()>;

    /// Lets the library look for its kernels in these files, and passes libMIOpen's result for each
    /// target to `each`.
    ///
    /// # Errors
    /// If the library can't be run, or does not find a kernel that has a source.
    fn check(
        &self,
        kdbs: &[MadeKdb],
        absences: &Absences,
        progress: &dyn Progress,
        each: &mut dyn FnMut(&TargetCheck),
    ) -> Result<()>;

    /// The coverage of every list of problems by a target's kdb, which has what is not absent.
    fn coverage(&self, _absences: &Absences, _target: &Target) -> Vec<ListCoverage> {
        Vec::new()
    }
}

/// Asks a library for its kernels, if problems or plans are given. Failures are reported now, before
/// hours of work, and end the run unless they are allowed.
pub(crate) fn ask(
    inputs: &InputOptions,
    cache: &CacheDir,
    build: Option<&BuildOptions>,
    targets: &[Target],
    progress: &dyn Progress,
) -> Result<Option<Box<dyn LibraryAnswer>>> {
    let answer: Box<dyn LibraryAnswer> = if !inputs.asking.rocfft.plans.is_empty() {
        rocfft::check_alone(inputs)?;
        Box::new(rocfft::ask_rocfft(&inputs.asking, targets, cache, progress)?)
    } else if !inputs.asking.problems.is_empty() {
        let jobs = processes(build.and_then(|build| build.jobs));
        Box::new(ask::ask_miopen(inputs, targets, jobs, cache, progress)?)
    } else {
        return Ok(None);
    };
    let hint = "each is named above; take them out of the list, or go on without their kernels by \
                --allow-partial";
    match answer.report_failures(hint, progress) {
        Err(error) if build.is_none_or(|build| !build.allow_partial) => Err(error),
        _ => Ok(Some(answer)),
    }
}

/// The program that loads a library.
const PROBE: &str = "gfxpack-miopen-probe";

/// Finds the library that `source` names, or the installed one, or downloads it into `cache`.
///
/// # Errors
/// If there is no such library.
pub fn locate(
    product: &'static Product,
    source: Option<&LibrarySource>,
    options: &LibraryOptions,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<Library> {
    let progress = FetchProgress { progress, step: RefCell::default() };
    let archive = Archive::new(cache, archive_options(options), &progress);
    let source = source.unwrap_or(&LibrarySource::Installed);
    Library::locate(product, source, ENVIRONMENT.rocm_path.as_deref(), &archive)
}

/// Chooses the packages of a Debian suite, and downloads them into `cache`.
pub fn choose(options: &LibraryOptions, cache: &Path, progress: &dyn Progress) -> Result<Lock> {
    let Some(LibrarySource::Debian { suite, version }) = &options.miopen else {
        return Err(error::usage(
            "failed to start: only packages of Debian's archive can be pinned",
            "name the suite to take them from, as --miopen debian:sid",
        ));
    };
    let progress = FetchProgress { progress, step: RefCell::default() };
    let archive = Archive::new(cache, archive_options(options), &progress);
    Library::choose(&MIOPEN, &archive, suite, version.as_deref())
}

fn archive_options(options: &LibraryOptions) -> Options {
    Options {
        mirror: options.debian_mirror.as_ref().or(ENVIRONMENT.debian_mirror.as_ref()).cloned(),
        apt: PathBuf::from("/etc/apt"),
        keys: KEYS.to_vec(),
        architecture: None,
    }
}

/// Reports the progress of a download.
struct FetchProgress<'a> {
    progress: &'a dyn Progress,
    step: RefCell<Option<Step<'a>>>,
}

impl gfxpack_debian::Progress for FetchProgress<'_> {
    fn fetched(&self, done: u64, total: u64) {
        let mut step = self.step.borrow_mut();
        step.get_or_insert_with(|| Step::new(self.progress, "fetching", Unit::Bytes, 0))
            .at(done, total);
        if done == total {
            *step = None;
        }
    }

    fn note(&self, text: &str) {
        self.progress.note(text);
    }

    fn warning(&self, text: &str) {
        self.step.take();
        self.progress.warning(text);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.cancel().is_cancelled()
    }
}

/// The path of the probe, which is installed beside this program or in its
/// libexec directory.
pub fn probe() -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(error::io("find", Path::new("/proc/self/exe")))?;
    let own = own.canonicalize().map_err(error::io("find", &own))?;
    let dir = own.parent().unwrap_or(Path::new("/"));
    let places = [dir.join(PROBE), dir.join("../libexec/gfxpack").join(PROBE)];
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        error::usage(
            format!("failed to find `{PROBE}` beside `{}`", own.display()),
            "it comes with gfxpack's packages; `cargo build --release --package gfxpack-miopen-probe` \
             makes it in target/release: copy it too",
        )
    })
}

/// The directories of databases to ask with.
pub fn databases(options: &LibraryOptions, library: &Library) -> Result<Vec<PathBuf>> {
    if options.miopen_db.is_empty() {
        return Ok(library.databases.clone());
    }
    if let Some(none) = options.miopen_db.iter().find(|dir| !dir.is_dir()) {
        return Err(error::usage(
            format!("failed to find the directory of databases `{}`", none.display()),
            "give the directory that holds them, as --miopen-db /opt/rocm/share/miopen/db",
        ));
    }
    Ok(options.miopen_db.clone())
}

#[cfg(test)]
mod tests {
    #[test]
    fn without_a_probe_the_command_that_builds_it_is_named() {
        let error = super::probe().expect_err("no probe lies beside tests");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("--release --package gfxpack-miopen-probe"), "{hint}");
    }
}
