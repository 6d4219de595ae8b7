//! Runs a program, and reads what MIOpen logs about its kernels.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

use gfxpack_harvest::run_log::{LEVEL, RunLog, RunSummary};
use gfxpack_kdb::{ReadError, Reader};
use gfxpack_model::{InstallLayout, KernelKey, Target};
use gfxpack_process::{Foreground, StartError};

use crate::error::{self, Error, Result};
use crate::fft_plans::{FftLogs, FftRun};
use crate::text::{brief, counted, if_any, joined};

/// The variable that makes MIOpen log its kernels.
pub const LOG_LEVEL: &str = "MIOPEN_LOG_LEVEL";
/// The program to run.
#[derive(Debug)]
pub struct ProgramRun<'a> {
    /// The program, which is searched for in `PATH`, and its arguments. Not empty.
    pub args: &'a [OsString],
    /// The user's `MIOPEN_LOG_LEVEL`; 0 if not set.
    pub log_level: u8,
    /// Whether the program's stdout goes to the caller's stderr.
    pub output_to_stderr: bool,
    /// Where rocFFT writes its logs, if they are wanted.
    pub fft_logs: Option<&'a FftLogs>,
}

/// How a program ended, and what MIOpen logged.
#[derive(Debug)]
pub struct ProgramResult {
    /// How it ended.
    pub status: ExitStatus,
    /// What MIOpen logged.
    pub log: RunSummary,
    /// By kdb: how many of the kernels that were found are in it.
    pub found: BTreeMap<PathBuf, u64>,
    /// The GPU, from the name of a kdb that MIOpen tried to open.
    pub target: Option<Target>,
    /// What rocFFT logged, if that is wanted.
    pub fft: Option<FftRun>,
}

impl ProgramRun<'_> {
    /// Runs the program to its end. It inherits stdin and stdout. What the user
    /// should see of its stderr is passed to `show` as it comes.
    ///
    /// # Errors
    /// If the program can't be started. Its exit status is not an error.
    pub fn run(&self, show: &mut dyn FnMut(&[u8])) -> Result<ProgramResult> {
        let mut variables = vec![(LOG_LEVEL, self.log_level.max(LEVEL).to_string())];
        variables.extend(self.fft_logs.iter().flat_map(|logs| logs.variables()));
        let (args, output_to_stderr) = (self.args, self.output_to_stderr);
        let program = Foreground { args, variables: &variables, output_to_stderr };
        let mut log = RunLog::new(self.log_level);
        let mut shown = Vec::new();
        let status = program.run(|piece| {
            log.push(piece, Instant::now(), &mut shown);
            show(&shown);
            shown.clear();
        });
        let status = status.map_err(not_started)?;
        let mut rest = Vec::new();
        let log = log.finish(Instant::now(), &mut rest);
        show(&rest);
        let targets = log.kdbs.iter().rev().filter_map(|kdb| kdb.file_stem()?.to_str());
        let target = targets.filter_map(|stem| stem.parse().ok()).next();
        let fft = self.fft_logs.map(FftLogs::read).transpose()?;
        Ok(ProgramResult { status, found: found(&log), target, log, fft })
    }
}

fn not_started(StartError { program, source }: StartError) -> Error {
    match source.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => error::usage(
            format!("failed to start the program `{}`: {source}", program.display()),
            "give its path, or a name that is in PATH: gfxpack run -- python3 train.py",
        ),
        _ => error::io("run", &program)(source),
    }
}

impl ProgramResult {
    /// The result as lines of text. `missed` kernels were in no kdb; MIOpen
    /// compiled and stored `stored` of them.
    pub fn in_words(&self, missed: usize, stored: usize) -> Vec<String> {
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

    /// The commands that make a package from the kernels in this list. MIOpen
    /// opens only one installed kdb, so the package also gets the kernels of an
    /// installed one.
    pub fn commands(&self, keys: &Path) -> Vec<String> {
        let target = self.target.as_ref().map_or_else(|| "TARGET".to_owned(), ToString::to_string);
        let keys = keys.display().to_string();
        let inputs = ["--keys", &keys, "--source-dir", "kernels", "--target", &target];
        let of_system = |kdb: &&PathBuf| kdb.extension().is_some_and(|ending| ending == "kdb");
        let dir = self.log.kdbs.iter().find(of_system).and_then(|kdb| kdb.parent());
        let installs = |layout: &InstallLayout| dir == Some(Path::new(&layout.kdb_dir()));
        let layouts = [(InstallLayout::Debian, "debian"), (InstallLayout::Fhs, "fhs")];
        let layout = layouts.iter().find(|(layout, _)| installs(layout));
        let mut package: Vec<&str> = vec!["--license", "MIT"];
        package.extend(layout.into_iter().flat_map(|(_, name)| ["--layout", name]));
        package.extend(["--out", "dist"]);
        let sources = command(&["gfxpack", "miopen", "--sources", "kernels"]);
        let Some(installed) = self.found.keys().find(of_system) else {
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
