//! A program's run, with what MIOpen's log tells of its kernels.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Instant;

use gfxpack_compile::Cancel;
use gfxpack_harvest::run_log::{LEVEL, RunLog, RunSummary};
use gfxpack_kdb::{ReadError, ReadOptions, Reader};
use gfxpack_model::{KernelKey, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{self, Error, Result};

/// The variable that has MIOpen tell of its kernels.
pub const LOG_LEVEL: &str = "MIOPEN_LOG_LEVEL";
/// How often it is seen to whether the program has ended, and whether somebody
/// asked to stop: what else holds its stderr open may live on.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Which program is run.
#[derive(Debug)]
pub struct ProgramRun<'a> {
    /// The program, which is searched for in `PATH`.
    pub program: &'a OsStr,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// What the user set `MIOPEN_LOG_LEVEL` to; 0 for nothing.
    pub log_level: u8,
}

/// How a program ended, and what MIOpen told.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// What MIOpen told.
    pub log: RunSummary,
    /// How many of the kernels that were found each kdb has.
    pub found: BTreeMap<PathBuf, u64>,
    /// The GPU, by the name of a kdb that MIOpen opened or wanted to open.
    pub target: Option<Target>,
}

impl ProgramRun<'_> {
    /// Runs the program to its end. It has the caller's stdin and stdout; what
    /// the user is to see of its stderr goes to `show` as it comes.
    ///
    /// # Errors
    /// Where the program can't be started. However it ends is no error.
    pub fn run(&self, cancel: &Cancel, show: &mut dyn FnMut(&[u8])) -> Result<Ran> {
        let program = Path::new(self.program);
        #[expect(
            clippy::disallowed_methods,
            reason = "it is the user's program, which has the user's environment, and no compiler"
        )]
        let mut command = Command::new(program);
        command.args(self.arguments).stderr(Stdio::piped());
        command.env(LOG_LEVEL, self.log_level.max(LEVEL).to_string());
        let mut child = command.spawn().map_err(|source| not_started(program, source))?;
        let mut stderr = child.stderr.take().expect("it was asked for");
        rustix::io::ioctl_fionbio(&stderr, true)
            .map_err(|errno| error::io("read", program)(errno.into()))?;
        let mut log = RunLog::new(self.log_level);
        let status = follow(&mut child, &mut stderr, &mut log, cancel, show)
            .map_err(error::io("run", program))?;
        let mut rest = Vec::new();
        let log = log.finish(Instant::now(), &mut rest);
        show(&rest);
        let targets = log.kdbs.iter().rev().filter_map(|kdb| kdb.file_stem()?.to_str());
        let target = targets.filter_map(|stem| stem.parse().ok()).next();
        Ok(Ran { status, found: found(&log), target, log })
    }
}

/// Reads what the program writes until it has ended.
fn follow(
    child: &mut Child,
    stderr: &mut ChildStderr,
    log: &mut RunLog,
    cancel: &Cancel,
    show: &mut dyn FnMut(&[u8]),
) -> std::io::Result<ExitStatus> {
    let (mut buffer, mut shown) = (vec![0; 64 << 10], Vec::new());
    let mut told_to_end = false;
    let mut status = None;
    loop {
        match stderr.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                log.push(&buffer[..count], Instant::now(), &mut shown);
                show(&shown);
                shown.clear();
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // All that it wrote was read, and it writes no more.
            Err(error) if error.kind() == ErrorKind::WouldBlock && status.is_some() => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if cancel.is_cancelled() && !told_to_end {
            told_to_end = true;
            end(child);
        }
        status = child.try_wait()?;
        if status.is_none() {
            let mut fds = [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::IN)];
            poll(&mut fds, Some(&TICK)).or_else(|errno| match errno {
                rustix::io::Errno::INTR => Ok(0),
                other => Err(other),
            })?;
        }
    }
    loop {
        if let Some(status) = status {
            return Ok(status);
        }
        if cancel.is_cancelled() && !told_to_end {
            told_to_end = true;
            end(child);
        }
        status = child.try_wait()?;
        if status.is_none() {
            poll(&mut [], Some(&TICK)).ok();
        }
    }
}

/// Ctrl-C reaches the program by itself, what is sent to gfxpack alone does
/// not.
fn end(child: &Child) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        kill_process(pid, Signal::TERM).ok();
    }
}

fn not_started(program: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::NotFound => error::usage(
            format!("failed to find the program `{}`", program.display()),
            "give its path, or a name that is in PATH: gfxpack run -- python3 train.py",
        ),
        _ => error::io("run", program)(source),
    }
}

/// Kernels that a database had from the start, by the first kdb that has them.
fn found(log: &RunSummary) -> BTreeMap<PathBuf, u64> {
    let hits = log.kernels.iter().filter(|(_, counts)| counts.hits > 0 && counts.misses == 0);
    let mut left: HashSet<&KernelKey> = hits.map(|(key, _)| key).collect();
    let mut found = BTreeMap::new();
    for kdb in &log.kdbs {
        let before = left.len();
        let mut options = ReadOptions::default();
        // MIOpen's own user databases are in that mode.
        options.wal = true;
        // What can't be read now is counted for no file.
        let read = Reader::open_with(kdb, options).and_then(|reader| {
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
