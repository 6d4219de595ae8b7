//! How one worker starts compilers: by fork servers of its own where they
//! can be had, else as programs of their own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fork_server::{ForkServer, Request};
use crate::error::CompileError;
use crate::process::{self, Cancel, End, Output, Program};

/// A server that breaks down so often is not started again.
const MAX_BREAKDOWNS: u32 = 3;

/// Starts compilers for one worker.
#[derive(Default)]
pub(crate) struct Starter {
    servers: HashMap<PathBuf, Seat>,
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
}

impl Starter {
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
        process::run(
            &Program {
                path: &program,
                arguments: start.words[1..].to_vec(),
                directory: start.directory,
                environment: start.environment,
                temp_dir: start.temp_dir,
                time_limit: start.time_limit,
            },
            cancel,
        )
    }

    fn by_server(&mut self, program: &Path, start: &Start<'_>, cancel: &Cancel) -> Option<Output> {
        let seat = self.servers.entry(program.to_owned()).or_default();
        if seat.server.is_none() && seat.breakdowns < MAX_BREAKDOWNS {
            seat.server = ForkServer::start(program, start.environment, cancel);
            seat.breakdowns += 1;
        }
        let request = Request {
            arguments: &start.words,
            directory: start.directory,
            temp_dir: start.temp_dir,
            time_limit: start.time_limit,
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
