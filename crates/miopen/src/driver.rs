//! Problems of other primitives, which MIOpenDriver computes with the stand-ins preloaded.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gfxpack_model::{Error, Result};
use gfxpack_stock_library::{CANCELLED, DeadlineReader, ProbeDirectory, spawn};

use crate::failure::Failure;
use crate::library::MIOPEN;
use crate::probe::{Answers, ProbeAnswer, cancelled_error};
use crate::setup::{Setup, check_needs};

/// The library to preload, beside the probe.
const PRELOAD: &str = "libgfxpack_miopen_preload.so";
/// The file that says which kernels nobody can compile.
const WITHHELD: &str = "withheld";
/// Appended to each line: no verification, and one iteration.
const ONCE: [&str; 4] = ["-V", "0", "-i", "1"];
/// How long a line may take: a few fill gigabytes of host memory.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How much of a run's output is searched.
const MAX_OUTPUT: usize = 64 << 10;

/// MIOpenDriver, and the setup to start it with.
#[derive(Debug)]
pub(crate) struct Driver<'a> {
    setup: Setup<'a>,
    program: &'a Path,
    preload: PathBuf,
    directory: ProbeDirectory,
    runs: AtomicUsize,
}

impl<'a> Driver<'a> {
    /// `None` if the library comes without MIOpenDriver.
    pub(crate) fn prepare(setup: Setup<'a>) -> Result<Option<Self>> {
        let Some(program) = setup.library.driver.as_deref() else { return Ok(None) };
        let preload = setup.options.probe.with_file_name(PRELOAD);
        if !preload.is_file() {
            return Err(Error::usage(
                format!("failed to find `{}`, which MIOpenDriver is run with", preload.display()),
                "it comes with gfxpack's packages, and `cargo build` makes it beside gfxpack: copy \
                 it too",
            ));
        }
        check_needs(program, &setup.library.search_path, &preload)?;
        let directory = setup.create_directory(Some(program))?;
        let withheld = directory.path().join(WITHHELD);
        fs::write(&withheld, setup.withheld).map_err(MIOPEN.scratch(&withheld))?;
        Ok(Some(Self { setup, program, preload, directory, runs: AtomicUsize::new(0) }))
    }

    /// Computes one problem, in a process of its own.
    ///
    /// # Errors
    /// If `cancelled` returns true meanwhile, or files can't be written.
    pub(crate) fn run(
        &self,
        line: &str,
        answers: Answers,
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<ProbeAnswer> {
        let answer = self.run_once(line, answers, cancelled)?;
        let Some((other, mark)) = other_name(line).filter(|_| answer.keys.is_empty()) else {
            return Ok(answer);
        };
        let other = self.run_once(&other, answers, cancelled)?;
        let is_the_same = other.early_end.is_none()
            && !other.keys.is_empty()
            && other.keys.keys().all(|key| key.kernel_args.contains(mark));
        Ok(if is_the_same { other } else { answer })
    }

    fn run_once(
        &self,
        line: &str,
        answers: Answers,
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<ProbeAnswer> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let run_dir = self.directory.path().join(format!("run-{number}"));
        fs::create_dir(&run_dir).map_err(MIOPEN.scratch(&run_dir))?;
        let mut command = self.command(&run_dir);
        if answers == Answers::Compilable {
            command.env("GFXPACK_PRELOAD_WITHHELD", self.directory.path().join(WITHHELD));
        }
        command.args(line.split_ascii_whitespace()).args(ONCE).stdin(Stdio::null());
        let time_limit = self.setup.options.time_limit.min(TIME_LIMIT);
        // The program ends with the thread that waits for it.
        let ended = self.directory.confined(|| run(command, time_limit, cancelled));
        let early_end = match ended {
            Ok((Some(status), output)) => early_end(status, &output),
            Ok((None, _)) => Some(Failure::Overdue),
            Err(error) if error.kind() == CANCELLED => return Err(cancelled_error()),
            Err(error) => Some(Failure::Probe(format!("MIOpenDriver did not run: {error}"))),
        };
        let mut answer = match File::open(run_dir.join("notes")) {
            // Notes end without a marker.
            Ok(notes) => {
                ProbeAnswer::read(&mut BufReader::new(notes)).map_err(MIOPEN.scratch(&run_dir))?
            }
            Err(_) => ProbeAnswer::default(),
        };
        answer.early_end = early_end;
        fs::remove_dir_all(&run_dir).map_err(MIOPEN.scratch(&run_dir))?;
        Ok(answer)
    }

    fn command(&self, run_dir: &Path) -> Command {
        let setup = &self.setup;
        let mut command = setup.command(&self.directory, self.program, Some(&self.preload));
        command
            .current_dir(run_dir)
            .env(
                "GFXPACK_PRELOAD_DEVICE",
                format!("{} {}", setup.architecture, setup.compute_units),
            )
            .env("GFXPACK_PRELOAD_NOTES", run_dir.join("notes"));
        if let Some(sqlite) = self.directory.sqlite.as_ref().filter(|_| setup.real_kernels) {
            command.env("GFXPACK_PRELOAD_SQLITE", sqlite);
        }
        command
    }
}

/// MIOpenDriver's other name for a batch normalization of 16-bit tensors with 32-bit scales in some
/// releases, and the define of all its kernels. MIOpen logs `bnormfp16fp32`. Since 3.4,
/// MIOpenDriver uses 16-bit scales for that, which no solver supports, and 32-bit scales for
/// `bnormfp16`.
///
/// Source: ROCm/MIOpen 2d1fd997a, `BnDataType` in src/driver_arguments.cpp;
/// what MIOpenDriver 3.4.0 and 3.5.1 of Debian do.
fn other_name(line: &str) -> Option<(String, &'static str)> {
    let names = [
        ("bnormfp16fp32 ", "bnormfp16 ", "-DMIOPEN_USE_FPMIX=1 "),
        ("bnormbfp16fp32 ", "bnormbfp16 ", "-DMIOPEN_USE_BFPMIX=1 "),
    ];
    names.iter().find_map(|(name, other, mark)| {
        line.strip_prefix(name).map(|rest| (format!("{other}{rest}"), *mark))
    })
}

/// How the program ended, `None` if it took too long, and its output.
fn run(
    mut command: Command,
    limit: Duration,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> io::Result<(Option<ExitStatus>, Vec<u8>)> {
    let deadline = Instant::now() + limit;
    let (ours, theirs) = UnixStream::pair()?;
    command.stdout(OwnedFd::from(theirs.try_clone()?)).stderr(OwnedFd::from(theirs));
    let mut child = spawn(&mut command)?;
    // The command keeps the other end of the socket open.
    drop(command);
    let mut output = Vec::new();
    let mut patient = DeadlineReader::new(&ours, deadline, cancelled)?;
    let read = patient.by_ref().take(MAX_OUTPUT as u64).read_to_end(&mut output);
    match read.and_then(|_| io::copy(&mut patient, &mut io::sink())) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok((None, output)),
        // It has closed its output, so it is about to end.
        read => read.and_then(|_| Ok((Some(child.wait()?), output))),
    }
}

/// Why a run failed. MIOpenDriver also exits with 0 if MIOpen fails, or if it does not know an
/// option.
///
/// Source: ROCm/MIOpen 2d1fd997a, driver/main.cpp and `InputFlags::Parse` in
/// driver/InputFlags.cpp.
fn early_end(status: ExitStatus, output: &[u8]) -> Option<Failure> {
    if let Some(signal) = status.signal() {
        return Some(Failure::Killed(signal));
    }
    let output = String::from_utf8_lossy(output);
    let complains = |line: &&str| {
        line.contains("MIOpen Error") || line.contains("Not Found !") || line.contains(" FAILED")
    };
    // The dynamic loader writes a single line.
    let last = || output.lines().last().filter(|_| status.code() != Some(0));
    match (output.lines().find(complains).or_else(last), status.code()) {
        (Some(line), _) => Some(Failure::Driver(line.trim().to_owned())),
        (None, Some(0)) => None,
        (None, code) => Some(Failure::Exited(code.unwrap_or(-1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_exits_with_0_and_prints_an_error_has_failed() {
        let check = |status: i32, output: &str, expected: Option<Failure>| {
            assert_eq!(
                early_end(ExitStatus::from_raw(status), output.as_bytes()),
                expected,
                "{output}"
            );
        };
        let complaint = |line: &str| Some(Failure::Driver(line.to_owned()));
        check(0, "MIOpenDriver bnorm\nForward\n", None);
        check(0, "x\nMIOpen Error: a.cpp:1: no\ny\n", complaint("MIOpen Error: a.cpp:1: no"));
        check(0, "Input Flag: t Not Found !", complaint("Input Flag: t Not Found !"));
        check(0, "Long Name: forward Not Found !", complaint("Long Name: forward Not Found !"));
        check(127 << 8, "MIOpenDriver: no symbol x\n", complaint("MIOpenDriver: no symbol x"));
        check(1 << 8, "", Some(Failure::Exited(1)));
        check(11, "MIOpen Error", Some(Failure::Killed(11)));
    }

    #[test]
    fn batch_normalization_has_two_names() {
        let other = |line| other_name(line).map(|(line, _)| line);
        assert_eq!(other("bnormfp16fp32 -n 2").as_deref(), Some("bnormfp16 -n 2"));
        assert_eq!(other("bnormbfp16fp32 -n 2").as_deref(), Some("bnormbfp16 -n 2"));
        assert_eq!(other("bnormfp16 -n 2"), None);
    }

    fn shell(script: &str, limit: Duration) -> io::Result<(Option<ExitStatus>, Vec<u8>)> {
        #[expect(clippy::disallowed_methods, reason = "a program that behaves as the test wants")]
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit, &|| false)
    }

    #[test]
    fn a_run_is_judged_by_its_end_and_its_output() {
        let (status, output) = shell("echo one; echo two >&2; exit 3", TIME_LIMIT).unwrap();
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(output, b"one\ntwo\n");
        let (status, output) = shell("yes | head -c 1000000", TIME_LIMIT).unwrap();
        assert!(status.unwrap().success());
        assert_eq!(output.len(), MAX_OUTPUT);
        let (status, _) = shell("exec sleep 1000", Duration::from_millis(200)).unwrap();
        assert_eq!(status, None);
    }
}
