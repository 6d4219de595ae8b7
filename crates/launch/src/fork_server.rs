//! A compiler that is started once and forks for every job. Its libraries are linked and
//! initialised by then, which takes most of the time of small kernels.
//!
//! The process runs the compiler's own program; a preloaded library stops it before its `main`.
//! Jobs run the very same program, so their output is the same, too.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gfxpack_model::ToolchainId;
use gfxpack_process::watch::Recorder;
use gfxpack_process::{
    Cancel, Capture, Group, Output, Program, ProgramEnd, TICK, Usage, ended, fixed, preload,
    wait_readable,
};

use crate::wrappers::is_elf;

/// The protocol is described in `preload/fork_server.c` of gfxpack-process.
const HELLO: [u8; 4] = 0x3158_4647_u32.to_ne_bytes();
/// Length of an answer.
const ANSWER: usize = 32;
/// How long it may take to load a compiler, on a machine under load.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a killed job may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// A program whose servers fail this often is not loaded again.
const MAX_BREAKDOWNS: u32 = 5;

/// A compiler that is loaded and stopped before its `main`, and forks for one job after the other.
/// It ends when this value is dropped.
#[derive(Debug)]
struct ForkServer {
    _group: Group,
    requests: UnixStream,
    answers: Capture,
    stdout: Capture,
    stderr: Capture,
}

impl ForkServer {
    /// Starts the program.
    ///
    /// # Errors
    /// If the program can't be stopped before `main`: it is statically linked, a script, or the
    /// kernel is too old.
    fn start(
        program: &Path,
        environment: &[(OsString, OsString)],
        cancel: &Cancel,
    ) -> io::Result<Self> {
        if !is_elf(program) {
            return Err(io::Error::other("it is a script, or can't be read"));
        }
        let mut environment = environment.to_vec();
        preload::fork_server_into(&mut environment)?;
        let (requests, theirs) = UnixStream::pair()?;
        #[expect(clippy::disallowed_methods, reason = "the compiler as a server")]
        let mut command = Command::new(program);
        command
            .current_dir("/")
            .env_clear()
            .envs(environment)
            .env("GFXPACK_FORK_SERVER", "1")
            // Resolves functions once here instead of in every job.
            .env("LD_BIND_NOW", "1")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = fixed(|| command.spawn())?;
        // The command holds the other end of the socket. It is dropped so that the end of the
        // process closes the socket.
        drop(command);
        let stdout = Capture::new(child.stdout.take().expect("stdout is piped"));
        let stderr = Capture::new(child.stderr.take().expect("stderr is piped"));
        let group = Group::new(child);
        group.limit_memory();
        let answers = Capture::new(requests.try_clone()?);
        let mut server = Self { _group: group, requests, answers, stdout, stderr };
        server.wait(HELLO.len(), START_LIMIT, cancel)?;
        if server.answers.bytes() == HELLO {
            Ok(server)
        } else {
            Err(io::Error::other("it did not say hello"))
        }
    }

    /// Runs one job to its end, its time limit or cancellation.
    ///
    /// # Errors
    /// If the server has ended. It can't be used any more then, nor after a job that was stopped.
    fn run(&mut self, program: &Program<'_>, cancel: &Cancel) -> io::Result<Output> {
        for pipe in [&mut self.answers, &mut self.stdout, &mut self.stderr] {
            pipe.clear();
        }
        self.requests.write_all(&encode(program)?)?;
        let stopped = self.wait(ANSWER, program.time_limit, cancel)?;
        if stopped.is_some() {
            // The server kills the job, and answers when the job has ended.
            self.requests.shutdown(Shutdown::Write).ok();
            self.wait(ANSWER, STOP_LIMIT, &Cancel::default())?;
        }
        let (end, usage) = match (stopped, decode(self.answers.bytes())) {
            (Some(end), answer) => (end, answer.map_or_else(Usage::default, |(_, usage)| usage)),
            (None, Some(answer)) => answer,
            (None, None) => return Err(io::Error::other("the fork server is gone")),
        };
        // All output of the job is in the pipes by now.
        let mut pipes = [&mut self.stdout, &mut self.stderr];
        wait_readable(&mut pipes, Duration::ZERO)?;
        Ok(Output { end, stdout: self.stdout.text(), stderr: self.stderr.text(), usage })
    }

    /// Waits for this many bytes of an answer. Returns how the wait was stopped, if it was.
    fn wait(
        &mut self,
        bytes: usize,
        limit: Duration,
        cancel: &Cancel,
    ) -> io::Result<Option<ProgramEnd>> {
        let started = Instant::now();
        while self.answers.bytes().len() < bytes && self.answers.is_open() {
            if cancel.is_cancelled() {
                return Ok(Some(ProgramEnd::Cancelled));
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(Some(ProgramEnd::TimedOut));
            }
            let mut pipes = [&mut self.answers, &mut self.stdout, &mut self.stderr];
            wait_readable(&mut pipes, TICK.min(left))?;
        }
        Ok(None)
    }
}

fn encode(program: &Program<'_>) -> io::Result<Vec<u8>> {
    let count = u32::try_from(program.arguments.len() + 1).map_err(io::Error::other)?;
    let mut text = count.to_ne_bytes().to_vec();
    let record = program.record.map(Recorder::path).unwrap_or_default();
    let paths = [program.directory, program.temp_dir, &record, program.path].map(Path::as_os_str);
    for string in paths.into_iter().chain(program.arguments.iter().map(OsString::as_os_str)) {
        if string.as_bytes().contains(&0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        text.extend_from_slice(string.as_bytes());
        text.push(0);
    }
    let size = u32::try_from(text.len()).map_err(io::Error::other)?;
    let mut message = size.to_ne_bytes().to_vec();
    message.append(&mut text);
    Ok(message)
}

fn decode(answer: &[u8]) -> Option<(ProgramEnd, Usage)> {
    let (numbers, []) = answer.as_chunks::<8>() else { return None };
    let [status, user, system, peak_kib] = *numbers else { return None };
    let [user, system] =
        [user, system].map(|number| Duration::from_micros(u64::from_ne_bytes(number)));
    let status = ExitStatus::from_raw(u64::from_ne_bytes(status) as i32);
    let peak_memory = u64::from_ne_bytes(peak_kib).saturating_mul(1024);
    Some((ended(status), Usage { cpu: user + system, peak_memory }))
}

/// A program that fork servers run.
#[derive(Debug, Default)]
struct ServedProgram {
    /// Idle servers. There are as many servers as ran at once.
    idle: Vec<ForkServer>,
    breakdowns: u32,
}

/// Identifies a program: its toolchain, which decides its environment, and its path.
type Key = (ToolchainId, PathBuf);

/// The fork servers of a build.
#[derive(Debug, Default)]
pub(crate) struct ForkServers(Mutex<HashMap<Key, ServedProgram>>);

impl ForkServers {
    /// Runs a program by a server; `None` if no server can run it.
    pub(crate) fn run(
        &self,
        toolchain: ToolchainId,
        program: &Program<'_>,
        cancel: &Cancel,
    ) -> Option<Output> {
        let key = (toolchain, program.path.to_owned());
        let idle = {
            let mut all = self.lock();
            let served = all.entry(key.clone()).or_default();
            if served.breakdowns >= MAX_BREAKDOWNS {
                return None;
            }
            served.idle.pop()
        };
        let start = || ForkServer::start(program.path, program.environment, cancel);
        let ran = idle.map_or_else(start, Ok).and_then(|mut server| {
            let output = server.run(program, cancel)?;
            Ok((server, output))
        });
        let mut all = self.lock();
        let served = all.entry(key).or_default();
        match ran {
            Ok((server, output)) => {
                served.breakdowns = 0;
                // A server whose job was stopped can't be used any more.
                if !matches!(output.end, ProgramEnd::TimedOut | ProgramEnd::Cancelled) {
                    served.idle.push(server);
                }
                Some(output)
            }
            Err(error) => {
                let program = program.path.display();
                tracing::debug!(%program, %error, "a fork server broke down");
                served.breakdowns += 1;
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, ServedProgram>> {
        self.0.lock().expect("no panic inside")
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_process as process;
    use gfxpack_process::watch::RecorderOptions;
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn request<'a>(args: &'a [OsString], time_limit: Duration) -> Program<'a> {
        Program {
            path: Path::new(&args[0]),
            arguments: args[1..].to_vec(),
            directory: Path::new("/usr"),
            environment: &[],
            temp_dir: Path::new("/tmp"),
            time_limit,
            record: None,
        }
    }

    fn shell() -> ForkServer {
        let environment = [("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b".into())];
        ForkServer::start(Path::new("/bin/sh"), &environment, &Cancel::default()).unwrap()
    }

    fn run(server: &mut ForkServer, script: &str) -> Output {
        let arguments = ["sh", "-c", script].map(OsString::from);
        server.run(&request(&arguments, LONG), &Cancel::default()).unwrap()
    }

    #[test]
    fn every_job_is_a_fresh_process_with_its_own_arguments() {
        let mut server = shell();
        let first = run(
            &mut server,
            "x=1; pwd; echo $TMPDIR $A $LD_PRELOAD$LD_BIND_NOW; echo err >&2; exit 3",
        );
        assert!(matches!(first.end, ProgramEnd::Exited(3)));
        assert_eq!((first.stdout.as_str(), first.stderr.as_str()), ("/usr\n/tmp b\n", "err\n"));
        let second = run(&mut server, "echo \"[$x]\"; kill -SEGV $$");
        assert!(matches!(second.end, ProgramEnd::Killed(11)), "{second:?}");
        assert_eq!(second.stdout, "[]\n");
        let busy = run(&mut server, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
        assert!(busy.ok() && busy.usage.cpu > Duration::from_millis(5), "{busy:?}");
        assert!(busy.usage.peak_memory > 100 << 10, "{busy:?}");
    }

    #[test]
    fn much_output_does_not_block_it() {
        let mut server = shell();
        let output = run(&mut server, "head -c 3000000 /dev/zero | tr '\\0' x >&2");
        assert!(output.ok() && output.stderr.ends_with("dropped]\n"));
        assert_eq!(run(&mut server, "echo next").stdout, "next\n");
    }

    #[test]
    fn the_time_limit_and_cancelling_stop_a_job() {
        let hang = ["sh", "-c", "sleep 100000"].map(OsString::from);
        let limit = request(&hang, Duration::from_millis(1));
        let mut server = shell();
        let output = server.run(&limit, &Cancel::default()).unwrap();
        assert!(
            matches!(output.end, ProgramEnd::TimedOut) && output.usage.peak_memory > 0,
            "{output:?}"
        );
        let cancel = Cancel::default();
        let mut server = shell();
        cancel.cancel();
        let output = server.run(&request(&hang, LONG), &cancel).unwrap();
        assert!(matches!(output.end, ProgramEnd::Cancelled));
        assert!(server.run(&request(&hang, LONG), &Cancel::default()).is_err());
    }

    #[test]
    fn children_of_a_stopped_job_are_stopped_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "sleep 100000 & echo $! > {0}.new; mv {0}.new {0}; exec sleep 100000",
            file.display()
        );
        let arguments = ["sh", "-c", &script].map(OsString::from);
        let cancel = Cancel::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !file.exists() {
                    std::thread::yield_now();
                }
                cancel.cancel();
            });
            let output = shell().run(&request(&arguments, LONG), &cancel).unwrap();
            assert!(matches!(output.end, ProgramEnd::Cancelled));
        });
        wait_for_end(&std::fs::read_to_string(&file).unwrap());
    }

    fn wait_for_end(pid: &str) {
        let stat = format!("/proc/{}/stat", pid.trim());
        let alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
        let patience = Instant::now();
        while alive() && patience.elapsed() < LONG {
            std::thread::yield_now();
        }
        assert!(!alive());
    }

    /// A replacement for LLVM's library. It counts the calls of the function that programs call
    /// first, and has work to do at exit.
    const LLVM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int registrations, resets;
void LLVMInitializeAMDGPUTarget(void) { registrations++; }
void _ZN4llvm2cl25ResetAllOptionOccurrencesEv(void) { resets++; }
static void of_the_start(void) { puts("of the start"); }
__attribute__((constructor)) static void start(void) { atexit(of_the_start); }
"#;
    const COMPILER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
extern int registrations, resets;
extern void LLVMInitializeAMDGPUTarget(void), _ZN4llvm2cl25ResetAllOptionOccurrencesEv(void);
static void of_the_job(void) { puts("of the job"); }
int main(int argc, char **argv) {
    atexit(of_the_job);
    LLVMInitializeAMDGPUTarget();
    _ZN4llvm2cl25ResetAllOptionOccurrencesEv();
    printf("%s: %d %d, ", argv[1], registrations, resets);
    _ZN4llvm2cl25ResetAllOptionOccurrencesEv();
    printf("%d, ", resets);
    return argc;
}
"#;

    #[test]
    fn llvm_starts_once_and_every_job_runs_its_exit_handlers() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let environment = [("PATH".into(), "/usr/bin:/bin".into())];
        let cancel = Cancel::default();
        let compile = |args: &str| {
            let compiler = process::Program {
                path: &process::find_in_path("cc", "/usr/bin:/bin".as_ref()).unwrap(),
                arguments: args.split(' ').map(OsString::from).collect(),
                directory: dir.path(),
                environment: &environment,
                temp_dir: dir.path(),
                time_limit: LONG,
                record: None,
            };
            let compiled = process::run(&compiler, &cancel).unwrap();
            assert!(compiled.ok(), "{}", compiled.stderr);
        };
        std::fs::write(path("llvm.c"), LLVM).unwrap();
        std::fs::write(path("compiler.c"), COMPILER).unwrap();
        compile("-shared -fPIC -o libllvm.so llvm.c");
        compile("-o compiler compiler.c -L. -lllvm -Wl,-rpath,$ORIGIN");
        let mut server = ForkServer::start(&path("compiler"), &environment, &cancel).unwrap();
        for name in ["one", "two"] {
            let arguments = ["compiler", name].map(OsString::from);
            let output = server.run(&request(&arguments, LONG), &cancel).unwrap();
            assert!(matches!(output.end, ProgramEnd::Exited(2)), "{output:?}");
            assert_eq!(output.stdout, format!("{name}: 1 2, 3, of the job\n"));
        }
    }

    #[test]
    fn each_job_has_its_own_record_or_none() {
        let mut server = shell();
        for script in [": first", ": second"] {
            let arguments = ["sh", "-c", script].map(OsString::from);
            assert!(run(&mut server, "exit 0").ok());
            let recorder = Recorder::with(&RecorderOptions::default()).unwrap();
            let request = Program { record: Some(&recorder), ..request(&arguments, LONG) };
            assert!(server.run(&request, &Cancel::default()).unwrap().ok());
            let record = recorder.finish().unwrap();
            assert_eq!(record.processes.len(), 1);
            assert_eq!(record.processes[0].arguments, arguments);
        }
    }

    #[test]
    fn scripts_and_missing_programs_are_not_served() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
        for program in [script.as_path(), Path::new("/nonexistent"), Path::new("/dev/null")] {
            assert!(ForkServer::start(program, &[], &Cancel::default()).is_err());
        }
    }

    /// The output of a shell script.
    fn printed(servers: &ForkServers, script: &str) -> String {
        let program = Program {
            path: Path::new("/bin/sh"),
            arguments: ["-c", script].map(OsString::from).into(),
            directory: Path::new("/"),
            environment: &[("PATH".into(), "/usr/bin:/bin".into())],
            temp_dir: Path::new("/tmp"),
            time_limit: LONG,
            record: None,
        };
        let cancel = Cancel::default();
        let served = servers.run(ToolchainId(0), &program, &cancel);
        served.unwrap_or_else(|| process::run(&program, &cancel).unwrap()).stdout
    }

    #[test]
    fn a_server_is_used_again_and_replaced_when_it_dies() {
        let servers = ForkServers::default();
        let script = "echo $PPID";
        let server = printed(&servers, script);
        assert_eq!(printed(&servers, script), server);
        let pid = Pid::from_raw(server.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        assert_eq!(printed(&servers, "echo there"), "there\n");
        let another = printed(&servers, script);
        assert_ne!(another, server);
        assert_eq!(printed(&servers, script), another);
    }
}
