//! Runs a program of the user in the foreground. It gets the terminal, the environment and the
//! signals as from a shell, and its standard error is read on the way.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The number of bytes read at once.
const PIECE_BYTES: usize = 64 << 10;
/// The longest wait before the program is checked again.
const LOOK: Duration = Duration::from_secs(1);

/// Signals that are passed on to the program, and SIGCHLD, which tells that it ended.
const SIGNALS: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD];

/// A program and how to run it.
#[derive(Debug)]
pub struct Foreground<'a> {
    /// The program, searched for on `PATH` unless it has a slash, and its
    /// arguments. Not empty.
    pub args: &'a [OsString],
    /// Additional environment variables.
    pub variables: &'a [(&'a str, String)],
    /// Whether its standard output goes to this process's standard error.
    pub output_to_stderr: bool,
}

impl Foreground<'_> {
    /// Runs the program to its end, and passes its standard error to `each` as it comes. Processes
    /// that it leaves behind may keep its standard error open longer. Signals that other processes
    /// send meanwhile are passed on; the terminal's signals reach the program anyway.
    ///
    /// Must be called while this process has a single thread, since the signals of other threads
    /// are not blocked.
    ///
    /// # Errors
    /// The system's error, if it can't be started or waited for.
    pub fn run(&self, mut each: impl FnMut(&[u8])) -> io::Result<ExitStatus> {
        let (program, arguments) = self.args.split_first().expect("a program");
        #[expect(clippy::disallowed_methods, reason = "the user's own program")]
        let mut command = Command::new(program);
        command.args(arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stderr(Stdio::piped());
        if self.output_to_stderr {
            let stderr = io::stderr().as_fd().try_clone_to_owned()?;
            command.stdout(stderr);
        }
        let mut child = command.spawn()?;
        // Blocked only now, since a program inherits blocked signals.
        let signals = Signals::hold()?;
        // The command would keep a copy of standard error open.
        drop(command);
        let stderr = child.stderr.take().expect("stderr is piped");
        follow(&mut child, stderr, &signals, &mut each)
    }
}

/// Reads the output and passes signals on until the program ends.
fn follow(
    child: &mut Child,
    stderr: ChildStderr,
    signals: &Signals,
    each: &mut impl FnMut(&[u8]),
) -> io::Result<ExitStatus> {
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let timeout = Timespec::try_from(LOOK).map_err(io::Error::other)?;
    let mut open = Some(stderr);
    let mut piece = vec![0; PIECE_BYTES];
    let mut status = None;
    loop {
        if status.is_none() {
            status = child.try_wait()?;
        }
        if let (Some(status), None) = (status, &open) {
            return Ok(status);
        }
        // After its end, all its output is in the pipe.
        let timeout = if status.is_some() { Timespec { tv_sec: 0, tv_nsec: 0 } } else { timeout };
        let mut watched = vec![PollFd::new(&signals.descriptor, PollFlags::IN)];
        watched.extend(open.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let readable = watched.get(1).is_some_and(|stderr| !stderr.revents().is_empty());
        drop(watched);
        // After its end, there is no process to signal.
        signals.pass_on(status.is_none().then_some(pid));
        if let (Some(status), false) = (status, readable) {
            return Ok(status);
        }
        if let (true, Some(stderr)) = (readable, &mut open) {
            match stderr.read(&mut piece) {
                Ok(0) => open = None,
                Ok(read) => each(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The blocked signals of this process while the program runs.
struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    fn hold() -> nix::Result<Self> {
        let held: SigSet = SIGNALS.into_iter().collect();
        let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        // After an error, signals stay blocked, but this process is about to end.
        Ok(Self { descriptor: SignalFd::with_flags(&held, flags)?, before })
    }

    /// Reads pending signals, and passes on those that the program does not get otherwise.
    fn pass_on(&self, to: Option<Pid>) {
        while let Ok(Some(signal)) = self.descriptor.read_signal() {
            // The kernel sends the terminal's signals to the whole foreground group, so the program
            // has them already. For signals of processes, the code is at most 0.
            let by_process = signal.ssi_code <= 0;
            let number = i32::try_from(signal.ssi_signo).map(Signal::try_from);
            if let (true, Ok(Ok(signal)), Some(program)) = (by_process, number, to)
                && signal != Signal::SIGCHLD
            {
                kill(program, signal).ok();
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // The same holds after an error here.
        self.before.thread_set_mask().ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::time::Instant;

    use super::*;

    fn run(script: &str) -> (ExitStatus, String) {
        let args = ["sh", "-c", script].map(OsString::from);
        let variables = [("GIVEN", "6".to_owned())];
        let program = Foreground { args: &args, variables: &variables, output_to_stderr: true };
        let mut read = Vec::new();
        let end = program.run(|piece| read.extend_from_slice(piece)).expect("it starts");
        (end, String::from_utf8(read).expect("text"))
    }

    #[test]
    fn standard_error_is_read_and_the_exit_code_returned() {
        let (status, read) = run("echo $GIVEN >&2; exit 7");
        assert_eq!((status.code(), read.as_str()), (Some(7), "6\n"));
        let (status, read) = run("exec 2>&-; sleep 0.2; exit 3");
        assert_eq!((status.code(), read.as_str()), (Some(3), ""));
        let (_, read) = run("for i in $(seq 20000); do echo $i; done >&2");
        assert!(read.ends_with("\n20000\n") && read.lines().count() == 20_000);
    }

    #[test]
    fn processes_left_behind_are_not_waited_for() {
        let begun = Instant::now();
        assert_eq!(run("sleep 30 & echo x >&2").1, "x\n");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_signal_that_ends_the_program_is_reported() {
        assert_eq!(run("kill -KILL $$").0.signal(), Some(9));
        // The program does not inherit the blocked signals of its parent.
        assert_eq!(run("kill -TERM $$").0.signal(), Some(15));
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let args = ["/no/such/program".into()];
        let program = Foreground { args: &args, variables: &[], output_to_stderr: false };
        let error = program.run(|_| ()).expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
