//! The state that all commands of a build share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_model::{Error, ToolchainId};
use gfxpack_process::preload::{self, Environment};
use gfxpack_process::watch::{Recorder, recorded};
use gfxpack_process::{Cancel, Output, Program, run};
use gfxpack_toolchain::Toolchain;

use crate::arguments::deps_arguments;
use crate::drivers::Drivers;
use crate::fork_servers::ForkServers;
use crate::launcher::{Command, CompilerRun, RunPaths};

/// The compilers of a build, and settings for every program that is started.
#[derive(Debug)]
pub struct Session<'a> {
    pub(crate) drivers: &'a Drivers<'a>,
    /// The complete environment of each toolchain's programs.
    environments: Vec<Environment>,
    servers: ForkServers,
    time_limit: Duration,
    pub(crate) cancel: &'a Cancel,
}

impl<'a> Session<'a> {
    /// For the toolchains of these drivers. Each program may run for `time_limit`; `cancel` ends
    /// it.
    pub fn new(drivers: &'a Drivers<'a>, time_limit: Duration, cancel: &'a Cancel) -> Self {
        let environments = drivers.toolchains().iter();
        let environments = environments.map(|it| preload::environment(&it.environment)).collect();
        Self { drivers, environments, servers: ForkServers::default(), time_limit, cancel }
    }

    /// Runs a command by its driver, hipcc or clang, with the planned arguments, to its end, its time
    /// limit or cancellation. Every shortcut must give the same object.
    ///
    /// # Errors
    /// If the driver can't be started. One that fails is no error: [`CompilerRun::end`] says how it
    /// ended.
    pub fn run_driver(
        &self,
        command: &Command<'_>,
        paths: &RunPaths<'_>,
    ) -> Result<CompilerRun, Error> {
        let toolchain = self.toolchain(command.toolchain);
        let planned = command.arguments.iter().map(|arg| toolchain.fill(arg));
        let mut arguments: Vec<_> = planned.collect();
        arguments.extend(deps_arguments(command.language, paths.deps_file));
        arguments.extend(["-o".into(), paths.output.into()]);
        let recorder = Recorder::of_driver(paths.scratch, paths.visible);
        let (output, record) = recorded(recorder, |record| {
            let program = Program {
                path: toolchain.program(command.program),
                arguments,
                directory: paths.stage,
                environment: &self.environments[command.toolchain.0],
                temp_dir: paths.scratch,
                time_limit: self.time_limit,
                record,
            };
            run(&program, self.cancel)
        })?;
        Ok(CompilerRun::new(output, record, true))
    }

    pub(crate) fn toolchain(&self, toolchain: ToolchainId) -> &'a Toolchain {
        &self.drivers.toolchains()[toolchain.0]
    }

    /// Runs a toolchain's program to its end, its time limit, or cancellation: by a fork server if
    /// possible. `args` are the program and its arguments; the directories are the working directory
    /// and one for temporary files.
    pub(crate) fn run_compiler(
        &self,
        toolchain: ToolchainId,
        args: Vec<OsString>,
        (directory, temp_dir): (&Path, &Path),
        record: Option<&Recorder>,
    ) -> Result<Output, Error> {
        let mut args = args.into_iter();
        let path = PathBuf::from(args.next().unwrap_or_default());
        let program = Program {
            path: &path,
            arguments: args.collect(),
            directory,
            environment: &self.environments[toolchain.0],
            temp_dir,
            time_limit: self.time_limit,
            record,
        };
        let served = self.servers.run(toolchain, &program, self.cancel);
        served.map_or_else(|| run(&program, self.cancel), Ok)
    }
}
