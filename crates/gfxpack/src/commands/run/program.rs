//! What MIOpen logged of a program, why it was slow, and what to do about it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use gfxpack_harvest::run_log::RunSummary;
use gfxpack_kdb::{ReadError, Reader};
use gfxpack_model::package_name::{self, DEFAULT_NAME_TEMPLATE};
use gfxpack_model::{InstallLayout, KernelKey, Target};
use gfxpack_pipeline::text::brief;
use rustix::fs::Access;
use serde::Serialize;

use crate::output::{counted, if_any, joined};

/// From this number of different inputs on, it is the program that changes them, and not the network
/// that uses a layer several times.
const CHANGING_SHAPES: usize = 8;

/// What MIOpen logged of a program that has ended.
pub(super) struct ProgramResult {
    pub(super) log: RunSummary,
    /// By kdb: how many of the kernels that were found are in it.
    pub(super) found: BTreeMap<PathBuf, u64>,
    /// The GPU, from the name of a kdb that MIOpen tried to open.
    pub(super) target: Option<Target>,
    cache_disabled: bool,
}

/// A reason why MIOpen makes a program slow.
#[derive(Serialize)]
pub(super) struct Cause {
    /// Its name, for machines.
    cause: &'static str,
    pub(super) message: String,
    pub(super) hint: String,
}

impl ProgramResult {
    /// Finds out which kdbs have the kernels that were found.
    pub(super) fn new(log: RunSummary, cache_disabled: bool) -> Self {
        let targets = log.kdbs.iter().rev().filter_map(|kdb| kdb.file_stem()?.to_str());
        let target = targets.filter_map(|stem| stem.parse().ok()).next();
        Self { found: found(&log), target, log, cache_disabled }
    }

    /// The result as lines of text. `missed` kernels were in no kdb; MIOpen
    /// compiled and stored `stored` of them.
    pub(super) fn in_words(&self, missed: usize, stored: usize) -> Vec<String> {
        let log = &self.log;
        let file = |(file, kernels): (&PathBuf, &u64)| format!("{kernels} in {}", file.display());
        let mut places: Vec<String> = self.found.iter().map(file).collect();
        let found = log.kernels.len() - missed;
        let elsewhere = found as u64 - self.found.values().sum::<u64>();
        if elsewhere > 0 {
            places.push(format!("{elsewhere} in a database that can't be read now"));
        }
        let places = if_any(places.len(), |_| format!(" ({})", joined(&places)));
        let mut lines = vec![format!(
            "MIOpen wanted {}: found {found}{places}, compiled {stored} in {}",
            counted(log.kernels.len(), "kernel"),
            brief(log.compiled)
        )];
        if missed > stored {
            lines.push(format!(
                "{} not found and not stored either: compiling failed, or MIOpen can't write its \
                 cache",
                counted(missed - stored, "kernel")
            ));
        }
        if log.searches > 0 {
            lines.push(format!(
                "it searched {} times for the fastest parameters, which took {} with what was \
                 compiled for that",
                log.searches,
                brief(log.searched)
            ));
        }
        lines
    }

    /// Why MIOpen makes the program slow, the first reason first. `missed` kernels were in no kdb.
    pub(super) fn causes(&self, missed: usize) -> Vec<Cause> {
        let log = &self.log;
        let mut causes = Vec::new();
        let mut add =
            |cause, message: String, hint: String| causes.push(Cause { cause, message, hint });
        if self.cache_disabled {
            add(
                "cache-disabled",
                "MIOPEN_DISABLE_CACHE is set: each process compiles every kernel, and installed ones \
                 are not read"
                    .to_owned(),
                "unset it".to_owned(),
            );
        }
        let user = log.kdbs.iter().find(|kdb| kdb.extension().is_some_and(|kind| kind == "ukdb"));
        if let Some(dir) = user.and_then(|kdb| kdb.parent()).filter(|dir| !is_writable(dir)) {
            add(
                "cache-unwritable",
                format!(
                    "`{}` can't be written to: each process compiles anew what is not installed",
                    dir.display()
                ),
                "make it this user's own, or set MIOPEN_CUSTOM_CACHE_DIR to a directory of its own"
                    .to_owned(),
            );
        }
        for gpu in &log.without_ck {
            let beside = self.layout().map(|layout| layout.library_dir());
            let beside = beside.unwrap_or_else(|| "the directory of libMIOpen.so".to_owned());
            add(
                "ck-library",
                format!(
                    "`libMIOpenCKGroupedConv_{gpu}.so` is missing or does not fit, and without it \
                     MIOpen computes convolutions by much slower kernels"
                ),
                format!(
                    "install the package of your ROCm or PyTorch that has it for {gpu}; it belongs \
                     into {beside} by that very name (a file with .so.1.0 needs a link); no kdb \
                     takes its place"
                ),
            );
        }
        if log.shapes >= CHANGING_SHAPES {
            add(
                "changing-shapes",
                format!(
                    "the shapes change from call to call, {} of them for one layer, and MIOpen \
                     prepares each anew",
                    log.shapes
                ),
                "no kdb helps: pad inputs to few sizes, or do without MIOpen \
                 (`torch.backends.cudnn.enabled = False`)"
                    .to_owned(),
            );
        }
        let compiled = (missed > 0 && !self.cache_disabled).then(|| self.not_installed(missed));
        let searched = (log.searches > 0).then(|| Cause {
            cause: "searched",
            message: format!(
                "MIOpen searched for the fastest parameters for {}",
                brief(log.searched)
            ),
            hint:
                "the user's databases keep the result; if every run searches, see `gfxpack doctor`"
                    .to_owned(),
        });
        let mut timed = [(log.compiled, compiled), (log.searched, searched)];
        timed.sort_by_key(|(time, _)| Reverse(*time));
        causes.extend(timed.into_iter().filter_map(|(_, cause)| cause));
        causes
    }

    /// The reason that no installed kdb has `missed` kernels.
    fn not_installed(&self, missed: usize) -> Cause {
        let package = self.target.as_ref().map_or_else(
            || "a package for this GPU".to_owned(),
            |target| package_name::for_target(DEFAULT_NAME_TEMPLATE, target),
        );
        let layout = self.layout();
        let place = layout.as_ref().map(|layout| format!(" where it looks, {}", layout.kdb_dir()));
        let place = place.unwrap_or_default();
        let is_pythons = layout.is_some_and(|layout| layout.is_pythons()) || self.has_wheels();
        let whose = if is_pythons {
            "PyTorch's own MIOpen, which reads no package of the system,"
        } else {
            "MIOpen"
        };
        Cause {
            cause: "not-installed",
            message: format!(
                "{whose} compiled {} in {}: none is installed{place}",
                counted(missed, "kernel"),
                brief(self.log.compiled)
            ),
            hint: format!("{package}, made by the commands below, would have them"),
        }
    }

    /// Where the MIOpen that ran looks, as far as the log says.
    fn layout(&self) -> Option<InstallLayout> {
        let kdb = self.log.kdbs.iter().find(|kdb| is_system(kdb)).and_then(|kdb| kdb.parent());
        let dirs = [kdb, self.log.databases.as_deref()].into_iter().flatten();
        dirs.filter_map(Path::to_str).find_map(|dir| match InstallLayout::of_dir(dir)? {
            (layout, "miopen") => Some(layout),
            _ => None,
        })
    }

    /// Whether wheels of gfxpack told MIOpen where to look.
    fn has_wheels(&self) -> bool {
        let dirs = self.log.kdbs.iter().filter_map(|kdb| kdb.parent()?.parent());
        dirs.into_iter().any(|cache| cache.ends_with("gfxpack/miopen-databases"))
    }

    /// The commands that make a package from the kernels in this list. MIOpen
    /// opens only one installed kdb, so the package also gets the kernels of an
    /// installed one.
    pub(super) fn commands(&self, keys: &Path) -> Vec<String> {
        let target = self.target.as_ref().map_or_else(|| "TARGET".to_owned(), ToString::to_string);
        let keys = keys.display().to_string();
        let inputs = ["--keys", &keys, "--source-dir", "kernels", "--target", &target];
        let (library, layout) = match self.layout() {
            Some(layout @ (InstallLayout::Debian | InstallLayout::Fhs)) => {
                (Some("/usr".to_owned()), layout_options(&layout))
            }
            Some(layout) => (Some(layout.prefix()), layout_options(&layout)),
            None if self.has_wheels() => {
                (Some("torch".to_owned()), vec!["--format".to_owned(), "wheel".to_owned()])
            }
            None => (None, Vec::new()),
        };
        let mut package: Vec<&str> = vec!["--license", "MIT"];
        package.extend(layout.iter().map(String::as_str));
        package.extend(["--out", "dist"]);
        let mut sources = vec!["gfxpack", "miopen"];
        sources.extend(library.iter().flat_map(|library| ["--miopen", library]));
        let sources = command(&[&sources[..], &["--sources", "kernels"]].concat());
        let Some(installed) = self.found.keys().find(|kdb| is_system(kdb)) else {
            return vec![sources, command(&[&["gfxpack", "dist"][..], &inputs, &package].concat())];
        };
        let installed = installed.display().to_string();
        let name =
            self.target.as_ref().map_or_else(|| "TARGET.kdb".to_owned(), Target::kdb_file_name);
        let (new, all) = (format!("new/kdb/{name}"), format!("new/{name}"));
        vec![
            sources,
            command(&[&["gfxpack", "build"][..], &inputs, &["--out", "new"]].concat()),
            command(&["gfxpack", "kdb", "merge", &installed, &new, "--out", &all]),
            command(&[&["gfxpack", "package", &all][..], &package].concat()),
        ]
    }
}

/// Whether this is an installed kdb.
fn is_system(kdb: &Path) -> bool {
    kdb.extension().is_some_and(|ending| ending == "kdb")
}

/// Whether files can be made in the directory, or in the one in which it would be made.
fn is_writable(dir: &Path) -> bool {
    let existing = dir.ancestors().find(|dir| dir.exists());
    existing.is_none_or(|dir| rustix::fs::access(dir, Access::WRITE_OK).is_ok())
}

/// The options of `dist` and `package` that install into this layout.
fn layout_options(layout: &InstallLayout) -> Vec<String> {
    if layout.is_pythons() {
        return ["--format", "wheel"].map(str::to_owned).into();
    }
    vec!["--layout".to_owned(), layout.name()]
}

/// The command quoted for a shell.
fn command(args: &[&str]) -> String {
    shlex::try_join(args.iter().copied()).unwrap_or_else(|_| args.join(" "))
}

/// Kernels that a database had from the start, by the first kdb that has them.
fn found(log: &RunSummary) -> BTreeMap<PathBuf, u64> {
    let hits = log.kernels.iter().filter(|(_, counts)| counts.hits > 0 && counts.misses == 0);
    let mut left: HashSet<&KernelKey> = hits.map(|(key, _)| key).collect();
    let mut found = BTreeMap::new();
    for kdb in &log.kdbs {
        let before = left.len();
        // MIOpen leaves its user databases in WAL mode. A kdb that can't be read
        // now counts no kernel.
        let read = Reader::open_at_rest(kdb).and_then(|reader| {
            reader.for_each_key(|key| {
                left.remove(&key);
                Ok::<(), ReadError>(())
            })
        });
        read.ok();
        let count = (before - left.len()) as u64;
        if count > 0 {
            found.insert(kdb.clone(), count);
        }
    }
    found
}
