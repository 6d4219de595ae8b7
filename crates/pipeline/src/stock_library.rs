//! Finds the stock library to ask, libMIOpen or librocfft, MIOpen's databases,
//! and the probe that loads either library.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use gfxpack_debian::{Archive, KEYS, Lock, Options};
use gfxpack_miopen::{Library, LibrarySource, MIOPEN};
use gfxpack_stock_library::Product;

use crate::error::{self, Result};
use crate::options::LibraryOptions;
use crate::progress::{Progress, Step, Unit};

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
    Library::locate(product, source, options.environment.rocm_path.as_deref(), &archive)
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
    let environment = &options.environment;
    Options {
        mirror: options.debian_mirror.as_ref().or(environment.debian_mirror.as_ref()).cloned(),
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
