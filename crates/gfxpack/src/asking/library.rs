//! The libMIOpen that is asked, its databases, and the probe that loads it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_debian::{Archive, Event, Keyring, Lock, Options};
use gfxpack_miopen::{Library, LibrarySource};

use crate::args::LibraryArgs;
use crate::environment::Environment;
use crate::fail;
use crate::output::Output;
use crate::progress::bar::{Bar, Unit};

/// The program that loads libMIOpen.
const PROBE: &str = "gfxpack-miopen-probe";

/// Finds the library, or fetches it into `cache`.
pub(crate) fn locate(
    args: &LibraryArgs,
    cache: &Path,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<Library> {
    let progress = Fetching { cancel, output, bar: RefCell::default() };
    let archive = Archive::new(cache, options(args, environment)?, &progress);
    let source = args.miopen.as_ref().unwrap_or(&LibrarySource::Installed);
    Ok(Library::locate(source, environment.rocm_path.as_deref(), &archive)?)
}

/// Chooses the packages of a suite of Debian's, and fetches them into `cache`.
pub(crate) fn choose(
    args: &LibraryArgs,
    cache: &Path,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<Lock> {
    let Some(LibrarySource::Debian { suite, version }) = &args.miopen else {
        return Err(fail::usage(
            "failed to start: only packages of Debian's archive can be pinned",
            "name the suite to take them from, as --miopen debian:sid",
        ));
    };
    let progress = Fetching { cancel, output, bar: RefCell::default() };
    let archive = Archive::new(cache, options(args, environment)?, &progress);
    Ok(Library::choose(&archive, suite, version.as_deref())?)
}

fn options(args: &LibraryArgs, environment: &Environment) -> anyhow::Result<Options> {
    Ok(Options {
        mirror: args.debian_mirror.clone().or_else(|| environment.debian_mirror.clone()),
        apt: PathBuf::from("/etc/apt"),
        keyring: Keyring::debian()?,
        proxies: environment.proxies.clone(),
        architecture: None,
    })
}

/// Shows what is fetched.
struct Fetching<'a> {
    cancel: &'a Cancel,
    output: &'a Output,
    bar: RefCell<Option<Bar>>,
}

impl gfxpack_debian::Progress for Fetching<'_> {
    fn event(&self, event: Event<'_>) {
        let mut bar = self.bar.borrow_mut();
        match event {
            Event::Downloading { done, total, .. } => {
                bar.get_or_insert_with(|| Bar::new(self.output, "fetching", Unit::Bytes, total))
                    .at(done, total);
                if done == total {
                    *bar = None;
                }
            }
            Event::Warning(text) => {
                *bar = None;
                self.output.warn(&text);
            }
            Event::Waiting => self.output.say("waiting for another gfxpack that fetches packages"),
            _ => {}
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// The probe, which is installed beside this program or in its libexec
/// directory.
pub(crate) fn probe() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().map_err(fail::io("find", Path::new("/proc/self/exe")))?;
    let own = own.canonicalize().map_err(fail::io("find", &own))?;
    let dir = own.parent().unwrap_or(Path::new("/"));
    let places = [dir.join(PROBE), dir.join("../libexec/gfxpack").join(PROBE)];
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        fail::usage(
            format!("failed to find `{PROBE}` beside `{}`", own.display()),
            "it comes with gfxpack's packages, and `cargo build` makes it beside gfxpack: copy it too",
        )
    })
}

/// The directories of databases to ask with.
pub(crate) fn databases(args: &LibraryArgs, library: &Library) -> anyhow::Result<Vec<PathBuf>> {
    if args.miopen_db.is_empty() {
        return Ok(library.databases.clone());
    }
    if let Some(none) = args.miopen_db.iter().find(|dir| !dir.is_dir()) {
        return Err(fail::usage(
            format!("failed to find the directory of databases `{}`", none.display()),
            "give the directory that holds them, as --miopen-db /opt/rocm/share/miopen/db",
        ));
    }
    Ok(args.miopen_db.clone())
}
