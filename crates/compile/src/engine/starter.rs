//! How one worker starts compilers: by fork servers of its own where they
//! can be had, else as programs of their own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::fork_server::{ForkServer, Loaded, Request};
use crate::error::CompileError;
use gfxpack_process::watch::Recorder;
use gfxpack_process::{self as process, Cancel, End, Output, Program};

/// A server that breaks down so often is not started again.
const MAX_BREAKDOWNS: u32 = 3;

/// A program as it is started.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// A program that is loaded by whoever needs it first; `None` if that failed.
type Shared = Arc<OnceLock<Option<Arc<Loaded>>>>;

/// The programs that are loaded, each once for all workers.
#[derive(Default)]
pub(crate) struct Compilers {
    loaded: Mutex<HashMap<Key, Shared>>,
}

impl Compilers {
    fn server(&self, key: &Key, cancel: &Cancel) -> Option<ForkServer> {
        let lock = || self.loaded.lock().expect("no panic inside");
        let shared = Arc::clone(lock().entry(key.clone()).or_default());
        let load = || Loaded::start(&key.program, &key.environment, cancel);
        let server = shared.get_or_init(load).as_ref().and_then(|loaded| loaded.server(cancel));
        if server.is_none() {
            // Whoever asks again has it loaded anew.
            let mut all = lock();
            if all.get(key).is_some_and(|now| Arc::ptr_eq(now, &shared)) {
                all.remove(key);
            }
        }
        server
    }
}

/// Starts compilers for one worker.
pub(crate) struct Starter<'a> {
    compilers: &'a Compilers,
    servers: Vec<(Key, Seat)>,
}

/// One program's server, if it has one.
#[derive(Default)]
struct Seat {
    server: Option<ForkServer>,
    breakdowns: u32,
}

/// What to start: its words, the program first.
pub(crate) struct Start<'a> {
    pub(crate) words: Vec<OsString>,
    pub(crate) directory: &'a Path,
    /// The whole environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) temp_dir: &'a Path,
    pub(crate) time_limit: Duration,
    /// Whether a fork server may do it.
    pub(crate) fork_server: bool,
    /// What it writes into what it asks of the file system.
    pub(crate) record: Option<&'a Recorder>,
}

impl<'a> Starter<'a> {
    pub(crate) fn new(compilers: &'a Compilers) -> Self {
        Self { compilers, servers: Vec::new() }
    }

    /// Runs a program to its end, its time limit, or cancellation.
    pub(crate) fn run(
        &mut self,
        start: &Start<'_>,
        cancel: &Cancel,
    ) -> Result<Output, CompileError> {
        let program = PathBuf::from(&start.words[0]);
        if start.fork_server
            && let Some(output) = self.by_server(&program, start, cancel)
        {
            return Ok(output);
        }
        let output = process::run(
            &Program {
                path: &program,
                arguments: start.words[1..].to_vec(),
                directory: start.directory,
                environment: start.environment,
                temp_dir: start.temp_dir,
                time_limit: start.time_limit,
                record: start.record,
            },
            cancel,
        )?;
        Ok(output)
    }

    fn by_server(&mut self, program: &Path, start: &Start<'_>, cancel: &Cancel) -> Option<Output> {
        let known = self
            .servers
            .iter()
            .position(|(key, _)| key.program == program && key.environment == start.environment);
        let at = known.unwrap_or_else(|| {
            let (program, environment) = (program.to_owned(), start.environment.to_vec());
            self.servers.push((Key { program, environment }, Seat::default()));
            self.servers.len() - 1
        });
        let (key, seat) = &mut self.servers[at];
        if seat.server.is_none() && seat.breakdowns < MAX_BREAKDOWNS {
            seat.server = self.compilers.server(key, cancel);
            seat.breakdowns += 1;
        }
        let request = Request {
            arguments: &start.words,
            directory: start.directory,
            temp_dir: start.temp_dir,
            time_limit: start.time_limit,
            record: start.record,
        };
        match seat.server.as_mut()?.run(&request, cancel) {
            Ok(output) => {
                if matches!(output.end, End::TimedOut | End::Cancelled) {
                    seat.server = None;
                    // It was we who ended it.
                    seat.breakdowns -= 1;
                }
                Some(output)
            }
            Err(error) => {
                tracing::debug!(program = %program.display(), %error, "a fork server broke down");
                seat.server = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// What a shell prints.
    fn printed(starter: &mut Starter<'_>, script: &str) -> String {
        let start = Start {
            words: ["/bin/sh", "-c", script].map(OsString::from).into(),
            directory: Path::new("/"),
            environment: &[("PATH".into(), "/usr/bin:/bin".into())],
            temp_dir: Path::new("/tmp"),
            time_limit: LONG,
            fork_server: true,
            record: None,
        };
        starter.run(&start, &Cancel::default()).unwrap().stdout
    }

    #[test]
    fn workers_share_a_loaded_program_and_have_it_loaded_again_when_it_dies() {
        let compilers = Compilers::default();
        let mut starters = [(); 3].map(|()| Starter::new(&compilers));
        let [first, second, third] = &mut starters;
        // The parent of the server that is the parent of the job.
        let script =
            "while read name value; do [ $name = PPid: ] && echo $value; done </proc/$PPID/status";
        let loaded = printed(first, script);
        assert_eq!(printed(second, script), loaded);
        let pid = Pid::from_raw(loaded.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        // Those that it forked live on.
        assert_eq!(printed(first, "echo there"), "there\n");
        // The worker that finds it gone starts a program, and then has a new one.
        assert_eq!(printed(third, "echo there"), "there\n");
        let again = printed(third, script);
        assert_ne!(again, loaded);
        assert_eq!(printed(&mut Starter::new(&compilers), script), again);
    }
}
