//! How compilers are started: by fork servers where they can be had, else as
//! programs of their own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use gfxpack_model::ToolchainId;
use gfxpack_process::watch::Recorder;
use gfxpack_process::{Cancel, End, Output, Program, run};

use crate::error::LaunchError;
use crate::fork_server::{ForkServer, Loaded};
use crate::session::Session;

/// A server that breaks down so often is not started again.
const MAX_BREAKDOWNS: u32 = 3;

/// A program as it is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// A program that is loaded by whoever needs it first; `None` if that failed.
type Shared = Arc<OnceLock<Option<Arc<Loaded>>>>;

/// The programs that are loaded, each once for all workers.
#[derive(Debug, Default)]
struct LoadedPrograms {
    loaded: Mutex<HashMap<Key, Shared>>,
}

impl LoadedPrograms {
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

/// Starts the compilers of a build.
#[derive(Debug)]
pub(crate) struct Starter<'a> {
    session: &'a Session<'a>,
    /// Whether fork servers may do it.
    fork_server: bool,
    loaded: LoadedPrograms,
    /// Those that run nothing now: there are as many as ran at once.
    idle: Mutex<Vec<Servers>>,
}

impl<'a> Starter<'a> {
    pub(crate) fn new(session: &'a Session<'a>, fork_server: bool) -> Self {
        let (loaded, idle) = (LoadedPrograms::default(), Mutex::default());
        Self { session, fork_server, loaded, idle }
    }

    /// Runs a toolchain's program to its end, its time limit, or cancellation:
    /// its words, the program first, in a directory and with another one for
    /// temporary files.
    pub(crate) fn run(
        &self,
        toolchain: ToolchainId,
        words: Vec<OsString>,
        (directory, temp_dir): (&Path, &Path),
        record: Option<&Recorder>,
    ) -> Result<Output, LaunchError> {
        let mut words = words.into_iter();
        let path = PathBuf::from(words.next().unwrap_or_default());
        let program = Program {
            path: &path,
            arguments: words.collect(),
            directory,
            environment: self.session.environment(toolchain),
            temp_dir,
            time_limit: self.session.time_limit,
            record,
        };
        let cancel = self.session.cancel;
        if self.fork_server {
            let idle = || self.idle.lock().expect("no panic inside");
            let mut servers = idle().pop().unwrap_or_default();
            let output = servers.run(&self.loaded, &program, cancel);
            idle().push(servers);
            if let Some(output) = output {
                return Ok(output);
            }
        }
        Ok(run(&program, cancel)?)
    }
}

/// One server for each program; they run one command at a time.
#[derive(Debug, Default)]
struct Servers {
    all: Vec<(Key, ServerSlot)>,
}

/// One program's server, if it has one.
#[derive(Debug, Default)]
struct ServerSlot {
    server: Option<ForkServer>,
    breakdowns: u32,
}

impl Servers {
    /// Has a server run a program; `None` where there is none that does.
    fn run(
        &mut self,
        loaded: &LoadedPrograms,
        program: &Program<'_>,
        cancel: &Cancel,
    ) -> Option<Output> {
        let known = self.all.iter().position(|(key, _)| {
            key.program == program.path && key.environment == program.environment
        });
        let at = known.unwrap_or_else(|| {
            let (path, environment) = (program.path.to_owned(), program.environment.to_vec());
            self.all.push((Key { program: path, environment }, ServerSlot::default()));
            self.all.len() - 1
        });
        let (key, slot) = &mut self.all[at];
        if slot.server.is_none() && slot.breakdowns < MAX_BREAKDOWNS {
            slot.server = loaded.server(key, cancel);
            slot.breakdowns += 1;
        }
        match slot.server.as_mut()?.run(program, cancel) {
            Ok(output) => {
                if matches!(output.end, End::TimedOut | End::Cancelled) {
                    slot.server = None;
                    // It was we who ended it.
                    slot.breakdowns -= 1;
                }
                Some(output)
            }
            Err(error) => {
                let program = program.path.display();
                tracing::debug!(%program, %error, "a fork server broke down");
                slot.server = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// What a shell prints.
    fn printed(servers: &mut Servers, loaded: &LoadedPrograms, script: &str) -> String {
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
        let by_server = servers.run(loaded, &program, &cancel);
        by_server.unwrap_or_else(|| run(&program, &cancel).unwrap()).stdout
    }

    #[test]
    fn workers_share_a_loaded_program_and_have_it_loaded_again_when_it_dies() {
        let programs = LoadedPrograms::default();
        let printed = |servers: &mut Servers, script: &str| printed(servers, &programs, script);
        let [first, second, third] = &mut [(); 3].map(|()| Servers::default());
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
        assert_eq!(printed(&mut Servers::default(), script), again);
    }
}
