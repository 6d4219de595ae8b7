//! Starting a program and waiting for it: no shell, bounded output, a time
//! limit, and nothing left running.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use wait4::{ResUse, Wait4};

use crate::layout;
use crate::pipe::{Capture, wait_readable};
use crate::usage::{PeakWatch, Usage};
use crate::watch::Recorder;

/// How often a waiting thread looks at the clock and at [`Cancel`].
pub const TICK: Duration = Duration::from_millis(100);
/// How often an ended pipe's program is asked whether it has exited.
const REAP_TICK: Duration = Duration::from_millis(2);
/// When a started program's memory is first looked at; each further look
/// comes twice as late, up to [`TICK`].
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// A flag that stops every running and coming process of a build.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    own: Arc<AtomicBool>,
    above: Vec<Arc<AtomicBool>>,
}

impl Cancel {
    /// Asks everything to stop; running programs are killed.
    pub fn cancel(&self) {
        self.own.store(true, Ordering::SeqCst);
    }

    /// Whether someone asked.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let set = |flag: &Arc<AtomicBool>| flag.load(Ordering::SeqCst);
        set(&self.own) || self.above.iter().any(set)
    }

    /// A flag of its own that this one sets too, as do those above it.
    #[must_use]
    pub fn child(&self) -> Self {
        let above = self.above.iter().chain([&self.own]).map(Arc::clone).collect();
        Self { own: Arc::default(), above }
    }
}

/// A program to start, as plain data.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    /// Its file.
    pub path: &'a Path,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// Where it is started.
    pub directory: &'a Path,
    /// The whole environment: nothing is inherited.
    pub environment: &'a [(OsString, OsString)],
    /// `TMPDIR`.
    pub temp_dir: &'a Path,
    /// How long it may run.
    pub time_limit: Duration,
    /// What it and all that it starts write into what they ask of the file
    /// system. Where the library for that can't be had, nothing is written.
    pub record: Option<&'a Recorder>,
}

/// How a program ended.
#[derive(Debug)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// Killed at its time limit.
    TimedOut,
    /// Killed since someone asked to stop.
    Cancelled,
}

/// What became of a program.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub end: End,
    /// What it wrote, at most [`OUTPUT_LIMIT`](crate::OUTPUT_LIMIT) bytes;
    /// [`was_cut`](crate::was_cut) tells whether there was more. Bytes that are
    /// no UTF-8 are replaced.
    pub stdout: String,
    /// Likewise.
    pub stderr: String,
    /// What it used.
    pub usage: Usage,
}

/// A program that could not be started or waited for.
#[derive(Debug, thiserror::Error)]
#[error("failed to run `{program}`")]
pub struct StartError {
    /// The program's file.
    pub program: PathBuf,
    /// The reason.
    pub source: io::Error,
}

impl Output {
    /// Whether it ended with success.
    #[must_use]
    pub fn ok(&self) -> bool {
        matches!(self.end, End::Exited(0))
    }
}

/// Runs the program to its end, its time limit, or cancellation. It gets a
/// process group of its own, which is killed as a whole, so that a wrapper's
/// children never outlive it.
///
/// # Errors
/// [`StartError`], where it does not start. How it ended is no error.
pub fn run(program: &Program<'_>, cancel: &Cancel) -> Result<Output, StartError> {
    run_capturing(program, Capture::new, cancel)
}

/// The same with all of the program's standard output going into a file.
///
/// # Errors
/// [`StartError`], likewise where the file can't be written.
pub fn run_into(file: File, program: &Program<'_>, cancel: &Cancel) -> Result<Output, StartError> {
    run_capturing(program, |pipe| Capture::into_file(file, pipe), cancel)
}

fn run_capturing(
    program: &Program<'_>,
    capture: impl FnOnce(ChildStdout) -> Capture,
    cancel: &Cancel,
) -> Result<Output, StartError> {
    let start_error = |source| StartError { program: program.path.to_owned(), source };
    #[expect(clippy::disallowed_methods, reason = "compilers and probes, with limits")]
    let mut command = Command::new(program.path);
    command
        .args(&program.arguments)
        .current_dir(program.directory)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .env("TMPDIR", program.temp_dir)
        .envs(recording(program.record))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let inherited = PeakWatch::inherited();
    let mut child = Group::new(layout::fixed(|| command.spawn()).map_err(start_error)?);
    let mut watch = PeakWatch::new(child.child().id(), inherited);
    let mut look = FIRST_LOOK;
    let mut stdout = capture(child.child().stdout.take().expect("stdout is piped"));
    let mut stderr = Capture::new(child.child().stderr.take().expect("stderr is piped"));
    let started = Instant::now();
    let stopped = loop {
        if child.has_ended() {
            break None;
        }
        if cancel.is_cancelled() {
            break Some(End::Cancelled);
        }
        let left = program.time_limit.saturating_sub(started.elapsed());
        if left.is_zero() {
            break Some(End::TimedOut);
        }
        let open = stdout.is_open() || stderr.is_open();
        let tick = if open { look } else { REAP_TICK }.min(left);
        wait_readable(&mut [&mut stdout, &mut stderr], tick).map_err(start_error)?;
        watch.look();
        look = (look * 2).min(TICK);
    };
    // Whoever of the group is left goes now; then both pipes reach their end,
    // but for a grandchild that left the group, which nobody waits for.
    let ResUse { status, rusage } = child.kill_and_reap().map_err(start_error)?;
    let end = stopped.unwrap_or_else(|| ended(status));
    let cpu = rusage.utime + rusage.stime;
    let usage = Usage { cpu, peak_memory: watch.peak(rusage.maxrss) };
    wait_readable(&mut [&mut stdout, &mut stderr], Duration::ZERO).map_err(start_error)?;
    Ok(Output { end, stdout: stdout.text(), stderr: stderr.text(), usage })
}

/// What has a program write into a record.
fn recording(record: Option<&Recorder>) -> Vec<(OsString, OsString)> {
    let environment = record.map(Recorder::environment);
    environment.and_then(Result::ok).map_or_else(Vec::new, Vec::from)
}

/// How a process ended, by its status.
#[must_use]
pub fn ended(status: ExitStatus) -> End {
    match status.code() {
        Some(code) => End::Exited(code),
        None => End::Killed(status.signal().unwrap_or_default()),
    }
}

/// A child that leads its own process group. It is reaped last, so that its
/// number can't have become a stranger's when the group is killed.
#[derive(Debug)]
pub struct Group(Option<Child>);

impl Group {
    /// Of a child that was started with a process group of its own.
    #[must_use]
    pub fn new(child: Child) -> Self {
        Self(Some(child))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("not reaped yet")
    }

    fn pid(&self) -> Option<Pid> {
        self.0.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?))
    }

    /// Whether the child has exited; it stays a zombie then.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // An error can only mean that there is nothing to wait for.
        self.pid().is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), look), Ok(None)))
    }

    fn kill_and_reap(&mut self) -> io::Result<ResUse> {
        if let Some(group) = self.pid() {
            // Gone already is what is wanted.
            kill_process_group(group, Signal::KILL).ok();
        }
        let mut child = self.0.take().expect("reaped once");
        loop {
            match child.wait4() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.kill_and_reap().ok();
        }
    }
}

/// The first executable file of that name in the directories of `path`.
#[must_use]
pub fn find_in_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    std::env::split_paths(path).map(|dir| dir.join(name)).find(|file| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::OUTPUT_LIMIT;

    fn sh(script: &str, limit: Duration, cancel: &Cancel) -> Output {
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let program = Program {
            path: Path::new("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            directory: Path::new("/"),
            environment: &environment,
            temp_dir: Path::new("/tmp"),
            time_limit: limit,
            record: None,
        };
        run(&program, cancel).unwrap()
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn output_and_code_come_back() {
        let output = sh("echo out; echo err >&2; exit 3", LONG, &Cancel::default());
        assert!(matches!(output.end, End::Exited(3)));
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn much_output_is_cut_and_the_program_ends() {
        let output = sh("head -c 3000000 /dev/zero | tr '\\0' x >&2", LONG, &Cancel::default());
        assert!(output.ok());
        assert!(output.stderr.len() < OUTPUT_LIMIT + 100);
        assert!(output.stderr.ends_with("dropped]\n"));
    }

    /// A program that writes its child's number to a file and hangs, stopped
    /// once the file is there.
    #[test]
    fn a_hanging_program_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "sleep 100000 & echo $! > {0}.new; mv {0}.new {0}; exec sleep 100000",
            file.display()
        );
        let cancel = Cancel::default();
        let output = std::thread::scope(|scope| {
            let running = scope.spawn(|| sh(&script, LONG, &cancel));
            while !file.exists() && !running.is_finished() {
                std::thread::yield_now();
            }
            cancel.cancel();
            running.join().unwrap()
        });
        assert!(matches!(output.end, End::Cancelled));
        let child = std::fs::read_to_string(file).unwrap();
        // The kernel may take a moment to bury it; a zombie is dead too.
        let stat = format!("/proc/{}/stat", child.trim());
        let alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
        let patience = Instant::now();
        while alive() && patience.elapsed() < LONG {
            std::thread::yield_now();
        }
        assert!(!alive());
    }

    #[test]
    fn the_time_limit_ends_it_and_the_longest_is_no_trouble() {
        let output = sh("sleep 100000", Duration::from_millis(1), &Cancel::default());
        assert!(matches!(output.end, End::TimedOut));
        assert!(sh("exit 0", Duration::MAX, &Cancel::default()).ok());
    }

    #[test]
    fn a_child_that_keeps_the_pipe_open_is_not_waited_for() {
        let output = sh("sleep 1000 & exit 0", LONG, &Cancel::default());
        assert!(output.ok());
    }

    #[test]
    fn cancelling_stops_it() {
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(matches!(sh("sleep 1000", LONG, &cancel).end, End::Cancelled));
    }

    #[test]
    fn what_it_used_is_told_with_its_children() {
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let used = |script: &str| sh(script, LONG, &Cancel::default()).usage;
        let (idle, busy) = (used("exit 0"), used(&format!("sh -c '{spin}'; exit 0")));
        assert!(busy.cpu > idle.cpu && busy.cpu > Duration::from_millis(5), "{idle:?} {busy:?}");
        // 64 MB of one line, which sort keeps in memory; more than this test has.
        let large = used("head -c 64000000 /dev/zero | sort -z --buffer-size=256M | tail -c 1");
        assert!(large.peak_memory > 64_000_000, "{large:?}");
    }

    #[test]
    fn a_crash_is_a_signal() {
        assert!(matches!(sh("kill -SEGV $$", LONG, &Cancel::default()).end, End::Killed(11)));
    }
}
