//! Problems of other primitives: MIOpenDriver computes them, with the
//! stand-ins preloaded.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::AskError;
use crate::library::{Library, file_of};
use crate::probe::{Answer, End, is_sqlite, library_environment, stood_in, temporary_directory};
use crate::{elf, stubs};

/// The library to preload, beside the probe.
const PRELOAD: &str = "libgfxpack_miopen_preload.so";
/// What is appended to each line: nothing is verified, and once is enough.
const ONCE: [&str; 4] = ["-V", "0", "-i", "1"];
/// How often it is looked whether a run has ended.
const TICK: Duration = Duration::from_millis(5);
/// How much of what a run says is looked through.
const MAX_OUTPUT: u64 = 64 << 10;

/// MIOpenDriver, and what to start it with.
#[derive(Debug)]
pub(crate) struct Driver<'a> {
    library: &'a Library,
    program: &'a Path,
    preload: PathBuf,
    device: String,
    databases: Option<PathBuf>,
    sqlite: Option<PathBuf>,
    time_limit: Duration,
    runs: AtomicUsize,
    directory: TempDir,
}

/// What a driver is started for.
#[derive(Debug)]
pub(crate) struct DriverSettings<'a> {
    pub(crate) library: &'a Library,
    pub(crate) probe: &'a Path,
    pub(crate) scratch: &'a Path,
    pub(crate) architecture: String,
    pub(crate) compute_units: u32,
    pub(crate) databases: Option<PathBuf>,
    pub(crate) real_kernels: bool,
    pub(crate) time_limit: Duration,
}

impl<'a> Driver<'a> {
    /// Where to find what is preloaded, for a probe.
    pub(crate) fn preload(probe: &Path) -> PathBuf {
        probe.with_file_name(PRELOAD)
    }

    /// None where the library comes without MIOpenDriver.
    ///
    /// # Errors
    /// [`AskError`].
    pub(crate) fn prepare(settings: DriverSettings<'a>) -> Result<Option<Self>, AskError> {
        let library = settings.library;
        let Some(program) = library.driver.as_deref() else { return Ok(None) };
        let preload = Self::preload(settings.probe);
        if !preload.is_file() {
            return Err(AskError::Start { probe: preload, source: io::ErrorKind::NotFound.into() });
        }
        let directory = temporary_directory(settings.scratch)?;
        for name in ["stubs", "tmp", "no-databases"] {
            let path = directory.path().join(name);
            fs::create_dir(&path).map_err(|source| AskError::Scratch { path, source })?;
        }
        let object = elf::Library::open(&library.file)?.shared_object()?;
        let needed = [object.needed.clone(), elf::Library::open(program)?.shared_object()?.needed];
        let stubs = directory.path().join("stubs");
        stubs::write(&stubs, object.machine, &stood_in(&needed.concat()))
            .map_err(|source| AskError::Scratch { path: stubs, source })?;
        let sqlite = file_of(&object, &library.search_path, is_sqlite);
        Ok(Some(Self {
            library,
            program,
            preload,
            device: format!("{} {}", settings.architecture, settings.compute_units),
            databases: settings.databases,
            sqlite: sqlite.filter(|_| settings.real_kernels),
            time_limit: settings.time_limit,
            runs: AtomicUsize::new(0),
            directory,
        }))
    }

    /// Computes one problem, in a process of its own.
    ///
    /// # Errors
    /// [`AskError::Cancelled`] where `cancelled` says so meanwhile,
    /// [`AskError::Scratch`] where files can't be written.
    pub(crate) fn run(
        &self,
        line: &str,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Answer, AskError> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let place = self.directory.path().join(format!("run-{number}"));
        let scratch = |source| AskError::Scratch { path: place.clone(), source };
        fs::create_dir(&place).map_err(scratch)?;
        let said = place.join("output");
        let output = File::create(&said).map_err(scratch)?;
        let mut command = self.command(&place);
        command.args(line.split_ascii_whitespace()).args(ONCE);
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(scratch)?).stderr(output);
        let ended = wait(command, self.time_limit, cancelled)?;
        let end = match ended {
            Ended::Overdue => End::Overdue,
            Ended::Failed(reason) => End::Failed(reason),
            Ended::With(status) => end(status, &said),
        };
        let mut answer = match File::open(place.join("notes")) {
            // Notes have no end of their own.
            Ok(notes) => Answer::read(&mut BufReader::new(notes)).map_err(scratch)?,
            Err(_) => Answer::ended(End::Gone),
        };
        answer.end = end;
        fs::remove_dir_all(&place).map_err(scratch)?;
        Ok(answer)
    }

    fn command(&self, place: &Path) -> Command {
        let stubs = self.directory.path().join("stubs");
        let search_path = self.library.search_path_behind(&stubs);
        #[expect(clippy::disallowed_methods, reason = "MIOpenDriver is asked as the probe is")]
        let mut command = match &self.library.loader {
            Some(loader) => {
                let mut command = Command::new(loader);
                command.arg("--preload").arg(&self.preload);
                command.arg("--library-path").arg(&search_path).arg(self.program);
                command
            }
            None => Command::new(self.program),
        };
        command.env_clear();
        if self.library.loader.is_none() {
            command.env("LD_PRELOAD", &self.preload).env("LD_LIBRARY_PATH", &search_path);
        }
        let databases = self.databases.clone();
        let databases = databases.unwrap_or_else(|| self.directory.path().join("no-databases"));
        library_environment(&mut command, self.directory.path(), &databases, &self.preload);
        command
            .current_dir(place)
            .env("GFXPACK_PRELOAD_DEVICE", &self.device)
            .env("GFXPACK_PRELOAD_NOTES", place.join("notes"));
        if let Some(sqlite) = &self.sqlite {
            command.env("GFXPACK_PRELOAD_SQLITE", sqlite);
        }
        command
    }
}

/// How a run ended.
enum Ended {
    With(ExitStatus),
    Overdue,
    Failed(String),
}

fn wait(
    mut command: Command,
    limit: Duration,
    cancelled: &dyn Fn() -> bool,
) -> Result<Ended, AskError> {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Ended::Failed(format!("MIOpenDriver did not start: {error}"))),
    };
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Ended::With(status)),
            Err(error) => return Ok(Ended::Failed(error.to_string())),
            Ok(None) => {}
        }
        let overdue = Instant::now() >= deadline;
        let stopped = cancelled();
        if overdue || stopped {
            let _ = child.kill();
            let _ = child.wait();
            return if stopped { Err(AskError::Cancelled) } else { Ok(Ended::Overdue) };
        }
        thread::sleep(TICK);
    }
}

/// MIOpenDriver also ends with 0 where MIOpen fails, or an option is unknown
/// to it.
fn end(status: ExitStatus, said: &Path) -> End {
    if let Some(signal) = status.signal() {
        return End::Killed(signal);
    }
    let mut output = Vec::new();
    let _ = File::open(said).and_then(|file| file.take(MAX_OUTPUT).read_to_end(&mut output));
    let output = String::from_utf8_lossy(&output);
    let is_complaint = |line: &&str| {
        line.contains("MIOpen Error") || (line.contains("Input Flag:") && line.contains("Not Found"))
    };
    match (output.lines().find(is_complaint), status.code()) {
        (Some(line), _) => End::Failed(format!("MIOpenDriver said: {}", line.trim())),
        (None, Some(0)) => End::Done,
        (None, code) => End::Exited(code.unwrap_or(-1)),
    }
}
