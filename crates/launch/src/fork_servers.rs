//! The fork servers of a build.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use gfxpack_model::ToolchainId;
use gfxpack_process::{Cancel, Output, Program, ProgramEnd};

use crate::fork_server::ForkServer;

/// A program whose servers fail this often is not loaded again.
const MAX_BREAKDOWNS: u32 = 5;

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
