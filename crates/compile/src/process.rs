//! Starting a program and waiting for it: no shell, bounded output, a time
//! limit, and nothing left running.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use wait4::{ResUse, Wait4};

use crate::error::CompileError;
use crate::usage::{PeakWatch, Usage};

/// Most bytes kept of a program's output; the rest is read and dropped.
const OUTPUT_LIMIT: usize = 256 * 1024;
/// How often a waiting thread looks at the clock and at [`Cancel`].
const TICK: Duration = Duration::from_millis(100);
/// How often an ended pipe's program is asked whether it has exited.
const REAP_TICK: Duration = Duration::from_millis(2);
/// When a started program's memory is first looked at; each further look
/// comes twice as late, up to [`TICK`].
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// A flag that stops every running and coming process of a build.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    own: Arc<AtomicBool>,
    parent: Option<Arc<AtomicBool>>,
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
        set(&self.own) || self.parent.as_ref().is_some_and(set)
    }

    /// A flag of its own that this one sets too.
    pub(crate) fn child(&self) -> Self {
        Self { own: Arc::default(), parent: Some(Arc::clone(&self.own)) }
    }
}

/// A program to start, as plain data.
#[derive(Debug, Clone)]
pub(crate) struct Program<'a> {
    pub(crate) path: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: &'a Path,
    /// The whole environment: nothing is inherited.
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) temp_dir: &'a Path,
    pub(crate) time_limit: Duration,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) enum End {
    Exited(i32),
    Killed(i32),
    TimedOut,
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) end: End,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) usage: Usage,
}

impl Output {
    pub(crate) fn ok(&self) -> bool {
        matches!(self.end, End::Exited(0))
    }
}

/// Runs the program to its end, its time limit, or cancellation. It gets a
/// process group of its own, which is killed as a whole, so that a wrapper's
/// children never outlive it.
pub(crate) fn run(program: &Program<'_>, cancel: &Cancel) -> Result<Output, CompileError> {
    run_into(program, None, cancel)
}

/// The same, with all of the program's standard output going into a file.
pub(crate) fn run_into(
    program: &Program<'_>,
    file: Option<File>,
    cancel: &Cancel,
) -> Result<Output, CompileError> {
    let start_error = |source| CompileError::Start { program: program.path.to_owned(), source };
    #[expect(clippy::disallowed_methods, reason = "the one place that starts programs")]
    let mut command = Command::new(program.path);
    command
        .args(&program.arguments)
        .current_dir(program.directory)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .env("TMPDIR", program.temp_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let inherited = PeakWatch::inherited();
    let mut child = Group(Some(command.spawn().map_err(start_error)?));
    let mut watch = PeakWatch::new(child.child().id(), inherited);
    let mut look = FIRST_LOOK;
    let mut stdout = Capture::new(child.child().stdout.take().expect("stdout is piped"));
    stdout.file = file;
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
        let open = stdout.open || stderr.open;
        let tick = if open { look } else { REAP_TICK }.min(left);
        wait_readable(&mut stdout, &mut stderr, tick).map_err(start_error)?;
        watch.look();
        look = (look * 2).min(TICK);
    };
    // Whoever of the group is left goes now; then both pipes reach their end,
    // but for a grandchild that left the group, which nobody waits for.
    let ResUse { status, rusage } = child.kill_and_reap().map_err(start_error)?;
    let end = stopped.unwrap_or_else(|| ended(status));
    let cpu = rusage.utime + rusage.stime;
    let usage = Usage { cpu, peak_memory: watch.peak(rusage.maxrss) };
    wait_readable(&mut stdout, &mut stderr, Duration::ZERO).map_err(start_error)?;
    Ok(Output { end, stdout: stdout.text(), stderr: stderr.text(), usage })
}

fn ended(status: ExitStatus) -> End {
    match status.code() {
        Some(code) => End::Exited(code),
        None => End::Killed(status.signal().unwrap_or_default()),
    }
}

/// A child that leads its own process group. It is reaped last, so that its
/// number can't have become a stranger's when the group is killed.
struct Group(Option<Child>);

impl Group {
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

    fn kill_and_reap(&mut self) -> std::io::Result<ResUse> {
        if let Some(group) = self.pid() {
            // Gone already is what is wanted.
            kill_process_group(group, Signal::KILL).ok();
        }
        let mut child = self.0.take().expect("reaped once");
        loop {
            match child.wait4() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
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

/// One of a child's output pipes, read without blocking.
struct Capture<R> {
    pipe: R,
    /// Where all of it goes, instead of being kept.
    file: Option<File>,
    kept: Vec<u8>,
    dropped: bool,
    open: bool,
}

impl<R: Read + AsFd> Capture<R> {
    fn new(pipe: R) -> Self {
        Self { pipe, file: None, kept: Vec::new(), dropped: false, open: true }
    }

    fn read_once(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        let count = self.pipe.read(&mut buffer)?;
        self.open = count > 0;
        if let Some(file) = &mut self.file {
            return file.write_all(&buffer[..count]);
        }
        let room = OUTPUT_LIMIT - self.kept.len();
        self.kept.extend_from_slice(&buffer[..count.min(room)]);
        self.dropped |= count > room;
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.kept).into_owned();
        if self.dropped {
            text.push_str("\n[more output was dropped]\n");
        }
        text
    }
}

/// Waits until one of the pipes has something or ended, and reads all that
/// is there.
fn wait_readable<A: Read + AsFd, B: Read + AsFd>(
    a: &mut Capture<A>,
    b: &mut Capture<B>,
    timeout: Duration,
) -> std::io::Result<()> {
    if !a.open && !b.open {
        std::thread::sleep(timeout);
        return Ok(());
    }
    let mut timeout = timeout;
    while a.open || b.open {
        let limit = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let (ready_a, ready_b) = {
            // A closed pipe would be ready at once, for ever.
            let mut fds = Vec::with_capacity(2);
            if a.open {
                fds.push(PollFd::new(&a.pipe, PollFlags::IN));
            }
            if b.open {
                fds.push(PollFd::new(&b.pipe, PollFlags::IN));
            }
            match poll(&mut fds, Some(&limit)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            (a.open && ready.next().unwrap_or(false), b.open && ready.next().unwrap_or(false))
        };
        if ready_a {
            a.read_once()?;
        }
        if ready_b {
            b.read_once()?;
        }
        if !ready_a && !ready_b {
            return Ok(());
        }
        timeout = Duration::ZERO;
    }
    Ok(())
}

/// The first executable file of that name in the directories of `path`.
pub(crate) fn find_in_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    std::env::split_paths(path).map(|dir| dir.join(name)).find(|file| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration, cancel: &Cancel) -> Output {
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let program = Program {
            path: Path::new("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            directory: Path::new("/"),
            environment: &environment,
            temp_dir: Path::new("/tmp"),
            time_limit: limit,
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
