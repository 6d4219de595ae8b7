//! Runs a program without a shell, with bounded output and a time limit, and leaves no process
//! behind.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gfxpack_model::{Error, ErrorKind};
use nix::sys::personality::{self, Persona};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process_group, prlimit,
    setrlimit, waitid,
};
use wait4::{ResUse, Wait4};

use crate::memory::compiler_memory;
use crate::pipe::{Capture, wait_readable};
use crate::usage::{Usage, peak, peak_so_far};
use crate::watch::Recorder;

/// How often a waiting thread checks the clock and [`Cancel`].
pub const TICK: Duration = Duration::from_millis(100);
/// How often a program whose pipes are closed is asked whether it has exited.
const REAP_TICK: Duration = Duration::from_millis(2);
/// The time until a program's memory is first read; the interval then doubles up to [`TICK`].
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// Enough for thousands of compilers. Programs inherit the limit, and some close that many files
/// one by one.
const MANY: u64 = 1 << 16;

/// A flag that stops all running and future processes of a build.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    own: Arc<AtomicBool>,
    above: Vec<Arc<AtomicBool>>,
}

impl Cancel {
    /// Stops everything; running programs are killed.
    pub fn cancel(&self) {
        self.own.store(true, Ordering::SeqCst);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        let set = |flag: &Arc<AtomicBool>| flag.load(Ordering::SeqCst);
        set(&self.own) || self.above.iter().any(set)
    }

    /// A new flag that is also set when this one or one above it is.
    pub fn child(&self) -> Self {
        let above = self.above.iter().chain([&self.own]).map(Arc::clone).collect();
        Self { own: Arc::default(), above }
    }

    /// Cancels when the current thread panics before the result is dropped. Otherwise, other threads
    /// could wait for ever for what this one left undone.
    #[must_use]
    pub fn on_panic(&self) -> CancelOnPanic<'_> {
        CancelOnPanic(self)
    }
}

/// The error of a build that [`Cancel`] stopped.
pub fn interrupted() -> Error {
    let hint = "run the same command again: what is built already is kept";
    Error::new(ErrorKind::Interrupted, "failed to finish: interrupted", hint)
}

/// The result of [`Cancel::on_panic`].
#[derive(Debug)]
pub struct CancelOnPanic<'a>(&'a Cancel);

impl Drop for CancelOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

/// A program to start, as plain data.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    /// The program's file.
    pub path: &'a Path,
    /// The arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// The working directory.
    pub directory: &'a Path,
    /// The complete environment: nothing is inherited.
    pub environment: &'a [(OsString, OsString)],
    /// `TMPDIR`.
    pub temp_dir: &'a Path,
    /// How long it may run.
    pub time_limit: Duration,
    /// The record for the file accesses of the program and everything that it starts. Without the
    /// preload library, nothing is written.
    pub record: Option<&'a Recorder>,
}

/// How a program ended.
#[derive(Debug)]
pub enum ProgramEnd {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// Killed at its time limit.
    TimedOut,
    /// Killed because the build was cancelled.
    Cancelled,
}

/// The result of a program.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub end: ProgramEnd,
    /// Its standard output, at most [`OUTPUT_LIMIT`](crate::OUTPUT_LIMIT) bytes; see
    /// [`was_cut`](crate::was_cut). Bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error, in the same form.
    pub stderr: String,
    /// The resources that it used.
    pub usage: Usage,
}

impl Output {
    /// Whether it ended with success.
    pub fn ok(&self) -> bool {
        matches!(self.end, ProgramEnd::Exited(0))
    }
}

/// Runs the program to its end, its time limit, or cancellation. It gets a process group of its
/// own, which is killed as a whole, so that children of a wrapper never outlive it.
///
/// # Errors
/// If it can't be started or waited for, with the system's error as the cause. A program that
/// fails is no error.
pub fn run(program: &Program<'_>, cancel: &Cancel) -> Result<Output, Error> {
    let start_error = |source: io::Error| {
        let message = format!("failed to run `{}`", program.path.display());
        let hint = "check that the program is there and may be run, and that memory is left";
        Error::internal(message, hint).caused_by(source)
    };
    #[expect(clippy::disallowed_methods, reason = "compilers and probes, with limits")]
    let mut command = Command::new(program.path);
    command
        .args(&program.arguments)
        .current_dir(program.directory)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .env("TMPDIR", program.temp_dir)
        .envs(program.record.and_then(|record| record.environment().ok()).into_iter().flatten())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let inherited = peak_so_far("self").unwrap_or(0);
    let mut start = || fixed(|| command.spawn());
    let started = match program.record {
        Some(record) => record.start(program.path, start),
        None => start(),
    };
    let mut child = Group::new(started.map_err(start_error)?);
    child.limit_memory();
    let (process, mut seen) = (child.child().id().to_string(), None);
    let mut look = FIRST_LOOK;
    let mut stdout = Capture::new(child.child().stdout.take().expect("stdout is piped"));
    let mut stderr = Capture::new(child.child().stderr.take().expect("stderr is piped"));
    let started = Instant::now();
    let stopped = loop {
        if child.has_ended() {
            break None;
        }
        if cancel.is_cancelled() {
            break Some(ProgramEnd::Cancelled);
        }
        let left = program.time_limit.saturating_sub(started.elapsed());
        if left.is_zero() {
            break Some(ProgramEnd::TimedOut);
        }
        let open = stdout.is_open() || stderr.is_open();
        let tick = if open { look } else { REAP_TICK }.min(left);
        wait_readable(&mut [&mut stdout, &mut stderr], tick).map_err(start_error)?;
        seen = seen.max(peak_so_far(&process));
        look = (look * 2).min(TICK);
    };
    // The rest of the group is killed now. Then both pipes are closed, unless a grandchild that
    // left the group keeps them open; it is not waited for.
    let ResUse { status, rusage } = child.kill_and_reap().map_err(start_error)?;
    let end = stopped.unwrap_or_else(|| ended(status));
    let cpu = rusage.utime + rusage.stime;
    let usage = Usage { cpu, peak_memory: peak(rusage.maxrss, inherited, seen) };
    wait_readable(&mut [&mut stdout, &mut stderr], Duration::ZERO).map_err(start_error)?;
    Ok(Output { end, stdout: stdout.text(), stderr: stderr.text(), usage })
}

/// How a process ended, from its exit status.
pub fn ended(status: ExitStatus) -> ProgramEnd {
    match status.code() {
        Some(code) => ProgramEnd::Exited(code),
        None => ProgramEnd::Killed(status.signal().unwrap_or_default()),
    }
}

/// A child that leads a process group of its own. It is reaped last, so that its number can't
/// belong to another process when the group is killed.
#[derive(Debug)]
pub struct Group(Option<Child>);

impl Group {
    /// For a child that was started with a process group of its own.
    pub fn new(child: Child) -> Self {
        Self(Some(child))
    }

    /// Bounds the memory of the child and of each program that it starts: three quarters of what
    /// there is. An allocation beyond that fails.
    pub fn limit_memory(&self) {
        let Some((pid, limit)) = self.pid().zip(compiler_memory()) else { return };
        let own = getrlimit(Resource::Data);
        let limit = |own: Option<u64>| Some(own.map_or(limit, |own| own.min(limit)));
        let limits = Rlimit { current: limit(own.current), maximum: own.maximum };
        // The child may have ended.
        prlimit(Some(pid), Resource::Data, limits).ok();
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("not reaped yet")
    }

    fn pid(&self) -> Option<Pid> {
        self.0.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?))
    }

    /// Whether the child has exited; it stays a zombie until it is reaped.
    pub fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // The only possible error is that there is no such child.
        self.pid().is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), look), Ok(None)))
    }

    /// Waits until the child has exited, kills the rest of its group, and reaps it.
    ///
    /// # Errors
    /// The system's error.
    ///
    /// # Panics
    /// If it was reaped before.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            let end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            retry_on_intr(|| waitid(WaitId::Pid(pid), end))?;
        }
        Ok(self.kill_and_reap()?.status)
    }

    /// Kills the group; the child is reaped later.
    pub fn kill(&self) {
        if let Some(group) = self.pid() {
            // It is no error if the group has ended already.
            kill_process_group(group, Signal::KILL).ok();
        }
    }

    fn kill_and_reap(&mut self) -> io::Result<ResUse> {
        self.kill();
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

/// Starts a program without address-space randomisation, which its children inherit. If a kernel or
/// container does not allow this, the program is started anyway.
///
/// Source: personality(2), `ADDR_NO_RANDOMIZE`; a thread's own, which the
/// programs that it starts inherit.
///
/// # Errors
/// The errors of `start`.
pub fn fixed<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = personality::get().and_then(|before| {
        personality::set(before | Persona::ADDR_NO_RANDOMIZE)?;
        Ok(before)
    });
    let started = start();
    if let Ok(before) = before {
        personality::set(before).ok();
    }
    started
}

/// Raises this process's limit of open files to the hard limit, but to 65,536 at most.
pub fn open_many() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MANY, |maximum| maximum.min(MANY));
    if current.is_some_and(|current| current < wanted) {
        // If this is refused, opening too many files fails later.
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).ok();
    }
}

/// The first executable file with that name in the directories of `path`.
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

    #[test]
    fn a_panic_cancels() {
        let (cancel, other) = (Cancel::default(), Cancel::default());
        let panicked = std::panic::catch_unwind(|| {
            drop(other.on_panic());
            let _cancelling = cancel.on_panic();
            panic!("the defect of a worker");
        });
        assert!(panicked.is_err() && cancel.is_cancelled() && !other.is_cancelled());
    }

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
        assert!(matches!(output.end, ProgramEnd::Exited(3)));
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn much_output_is_cut_and_the_program_ends() {
        let output = sh("head -c 3000000 /dev/zero | tr '\\0' x >&2", LONG, &Cancel::default());
        assert!(output.ok());
        assert!(output.stderr.len() < OUTPUT_LIMIT + 100);
        assert!(output.stderr.ends_with("dropped]\n"));
    }

    /// The program writes its child's number to a file and hangs; it is stopped once the file
    /// exists.
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
        assert!(matches!(output.end, ProgramEnd::Cancelled));
        let child = std::fs::read_to_string(file).unwrap();
        // The kernel may take a moment to remove it; a zombie counts as dead.
        let stat = format!("/proc/{}/stat", child.trim());
        let alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
        let patience = Instant::now();
        while alive() && patience.elapsed() < LONG {
            std::thread::yield_now();
        }
        assert!(!alive());
    }

    #[test]
    fn a_program_is_killed_at_its_time_limit_and_the_longest_limit_works() {
        let output = sh("sleep 100000", Duration::from_millis(1), &Cancel::default());
        assert!(matches!(output.end, ProgramEnd::TimedOut));
        assert!(sh("exit 0", Duration::MAX, &Cancel::default()).ok());
    }

    #[test]
    fn a_child_that_keeps_the_pipe_open_is_not_waited_for() {
        let output = sh("sleep 1000 & exit 0", LONG, &Cancel::default());
        assert!(output.ok());
    }

    #[test]
    fn usage_includes_that_of_children() {
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let used = |script: &str| sh(script, LONG, &Cancel::default()).usage;
        let (idle, busy) = (used("exit 0"), used(&format!("sh -c '{spin}'; exit 0")));
        assert!(busy.cpu > idle.cpu && busy.cpu > Duration::from_millis(5), "{idle:?} {busy:?}");
        // A line of 64 MB, which sort keeps in memory; more than this test uses.
        let large = used("head -c 64000000 /dev/zero | sort -z --buffer-size=256M | tail -c 1");
        assert!(large.peak_memory > 64_000_000, "{large:?}");
    }

    #[test]
    fn a_crash_is_a_signal() {
        assert!(matches!(
            sh("kill -SEGV $$", LONG, &Cancel::default()).end,
            ProgramEnd::Killed(11)
        ));
    }

    #[test]
    fn the_limit_of_open_files_is_raised() {
        let Rlimit { current: before, maximum } = getrlimit(Resource::Nofile);
        open_many();
        let wanted = maximum.map_or(MANY, |maximum| maximum.min(MANY));
        let now = getrlimit(Resource::Nofile).current;
        assert_eq!(now, before.map(|before| before.max(wanted)));
    }
}
