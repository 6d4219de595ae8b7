//! The fork servers of a build.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use gfxpack_model::ToolchainId;
use gfxpack_process::{Cancel, Output, Program, ProgramEnd};

use crate::fork_server::{ForkServer, LoadedCompiler};

/// A program whose servers fail this often is not loaded again.
const MAX_BREAKDOWNS: u32 = 5;

/// A program that fork servers run.
#[derive(Debug, Default)]
struct ServedProgram {
    /// Loaded when first needed; `None` if that failed.
    loaded: Arc<OnceLock<Option<Arc<LoadedCompiler>>>>,
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
        let mut server = self.server(&key, program, cancel)?;
        match server.run(program, cancel) {
            Ok(output) => {
                // A server whose job was stopped can't be used any more.
                let mut all = self.lock();
                let served = all.entry(key).or_default();
                served.breakdowns = 0;
                if !matches!(output.end, ProgramEnd::TimedOut | ProgramEnd::Cancelled) {
                    served.idle.push(server);
                }
                Some(output)
            }
            Err(error) => {
                let program = program.path.display();
                tracing::debug!(%program, %error, "a fork server broke down");
                self.lock().entry(key).or_default().breakdowns += 1;
                None
            }
        }
    }

    /// An idle server.
    fn server(&self, key: &Key, program: &Program<'_>, cancel: &Cancel) -> Option<ForkServer> {
        let loaded = {
            let mut all = self.lock();
            let served = all.entry(key.clone()).or_default();
            if let Some(idle) = served.idle.pop() {
                return Some(idle);
            }
            if served.breakdowns >= MAX_BREAKDOWNS {
                return None;
            }
            Arc::clone(&served.loaded)
        };
        let log = |reason: io::Error| {
            tracing::debug!(program = %program.path.display(), %reason, "no fork server");
        };
        let load =
            || LoadedCompiler::start(program.path, program.environment, cancel).map_err(log).ok();
        let loaded_program = loaded.get_or_init(load).as_ref();
        let server = loaded_program.and_then(|it| it.server(cancel).map_err(log).ok());
        if server.is_none()
            && let Some(served) = self.lock().get_mut(key)
            // Another thread may have replaced it already.
            && Arc::ptr_eq(&served.loaded, &loaded)
        {
            served.breakdowns += 1;
            // The next request loads the program again.
            served.loaded = Arc::default();
        }
        server
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, ServedProgram>> {
        self.0.lock().expect("no panic inside")
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;
    use std::time::Duration;

    use gfxpack_process::run;
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// The output of a shell script.
    fn printed(servers: &ForkServers, script: &str) -> String {
        let program = Program {
            path: Path::new("/bin/sh"),
            arguments: ["-c", script].map(OsString::from).into(),
            directory: Path::new("/"),
            environment: &[("PATH".into(), "/usr/bin:/bin".into())],
            temp_dir: Path::new("/tmp"),
            time_limit: Duration::from_secs(600),
            record: None,
        };
        let cancel = Cancel::default();
        let served = servers.run(ToolchainId(0), &program, &cancel);
        served.unwrap_or_else(|| run(&program, &cancel).unwrap()).stdout
    }

    /// Takes the idle servers away, as if they were busy.
    fn occupy(servers: &ForkServers) -> Vec<ForkServer> {
        servers.lock().values_mut().flat_map(|served| std::mem::take(&mut served.idle)).collect()
    }

    #[test]
    fn servers_share_a_loaded_program_which_is_loaded_again_when_it_dies() {
        let servers = ForkServers::default();
        // The parent of the server that is the parent of the job.
        let script =
            "while read name value; do [ $name = PPid: ] && echo $value; done </proc/$PPID/status";
        let loaded = printed(&servers, script);
        let first = occupy(&servers);
        assert_eq!(printed(&servers, script), loaded);
        let pid = Pid::from_raw(loaded.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        // The servers that it forked live on.
        assert_eq!(printed(&servers, "echo there"), "there\n");
        let second = occupy(&servers);
        // The first request finds that the program has ended and starts it anew; the next one gets
        // a new server.
        assert_eq!(printed(&servers, "echo there"), "there\n");
        let again = printed(&servers, script);
        assert_ne!(again, loaded);
        assert_eq!((first.len(), second.len(), occupy(&servers).len()), (1, 1, 1));
        assert_eq!(printed(&servers, script), again);
    }
}
