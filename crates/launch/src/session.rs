//! Starts the commands of a build: by their drivers, or by shortcuts, which start the compiler
//! without its driver, forked from a loaded one, with precompiled headers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use gfxpack_model::{Digest, Error, ToolchainId};
use gfxpack_process::preload::{self, Environment};
use gfxpack_process::watch::{Recorder, recorded};
use gfxpack_process::{Cancel, Output, Program, Usage, run};
use gfxpack_toolchain::Toolchain;

use crate::arguments::deps_arguments;
use crate::drivers::{Direct, Drivers};
use crate::fork_server::ForkServers;
use crate::headers::{HeaderMaker, HeaderOptions, PrecompiledHeader, groups};
use crate::launcher::{Command, CompilerRun, RunPaths};

/// Commands with longer arguments are left to the driver. Any system starts a program with fewer
/// bytes.
const MAX_DIRECT_BYTES: usize = 64 << 10;

/// The compilers of a build, and settings for every program that is started.
#[derive(Debug)]
pub struct Session<'a> {
    pub(crate) drivers: &'a Drivers<'a>,
    /// The complete environment of each toolchain's programs.
    environments: Vec<Environment>,
    servers: ForkServers,
    time_limit: Duration,
    pub(crate) cancel: &'a Cancel,
    /// How precompiled headers are made; `None` if no command has a shortcut.
    shortcuts: Option<HeaderOptions<'a>>,
    /// The precompiled header of each job that uses one, by the job's digest.
    headers: RwLock<HashMap<Digest, Arc<PrecompiledHeader>>>,
}

impl<'a> Session<'a> {
    /// For the toolchains of these drivers. Each program may run for `time_limit`; `cancel` ends
    /// it. Without `shortcuts`, no command has a shortcut.
    pub fn new(
        drivers: &'a Drivers<'a>,
        time_limit: Duration,
        cancel: &'a Cancel,
        shortcuts: Option<HeaderOptions<'a>>,
    ) -> Self {
        let environments = drivers.toolchains.iter();
        let environments = environments.map(|it| preload::environment(&it.environment)).collect();
        let (servers, headers) = Default::default();
        Self { drivers, environments, servers, time_limit, cancel, shortcuts, headers }
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

    /// Groups of commands, as indices into the list, for which [`Session::prepare`] should be called
    /// before they run; the largest first. No command is in two groups, and most may be in none.
    pub fn groups(&self, commands: &[Command<'_>]) -> Vec<Vec<usize>> {
        if self.shortcuts.is_some() { groups(commands) } else { Vec::new() }
    }

    /// Makes what the commands of a group share, and returns the resources used.
    ///
    /// # Errors
    /// If the disk is full or the build was cancelled. If it
    /// can't be made for another reason, commands run without it.
    pub fn prepare(&self, commands: &[Command<'_>]) -> Result<Usage, Error> {
        let Some(options) = &self.shortcuts else { return Ok(Usage::default()) };
        let direct =
            commands.iter().filter_map(|command| Some((*command, self.by_shortcut(command)?)));
        let (made, usage) = HeaderMaker::new(self, options).make(direct)?;
        self.headers.write().expect("no panic inside").extend(made);
        Ok(usage)
    }

    /// Runs a command by a shortcut to its end, its time limit or cancellation; `None` if there is
    /// none. One that fails must be run again by [`Session::run_driver`], whose result counts.
    ///
    /// # Errors
    /// If a program can't be started. A program that fails is no error: [`CompilerRun::end`] says how
    /// it ended.
    pub fn run_shortcut(
        &self,
        command: &Command<'_>,
        paths: &RunPaths<'_>,
    ) -> Result<Option<CompilerRun>, Error> {
        let Some((defines, commands)) = self.by_shortcut(command) else { return Ok(None) };
        let used = self.headers.read().expect("no panic inside").get(&command.job).cloned();
        let values = paths.values(command.main(), &defines);
        let visible = paths.visible.map(|visible| match &used {
            Some(header) => {
                let mut visible = visible.clone();
                visible.names.extend([header.file.clone(), header.source.clone()]);
                Cow::Owned(visible)
            }
            None => Cow::Borrowed(visible),
        });
        let mut run: Option<CompilerRun> = None;
        for template in &commands.list {
            let with_header = used.as_ref().and_then(|header| header.apply(template));
            let template = with_header.unwrap_or_else(|| template.clone()).with_deps_file();
            let args = template.fill(&values);
            let recorder = Recorder::of_compiler(paths.scratch, visible.as_deref());
            let (output, record) = recorded(recorder, |record| {
                self.run_compiler(command.toolchain, args, (paths.stage, paths.scratch), record)
            })?;
            let ok = output.ok();
            let next = CompilerRun::new(output, record, false);
            run = Some(match run {
                Some(before) => before.then(next),
                None => next,
            });
            if !ok {
                break;
            }
        }
        Ok(run)
    }

    /// The macros of a command for which there is a shortcut, and the commands that its driver would
    /// run.
    fn by_shortcut(&self, command: &Command<'_>) -> Option<Direct> {
        // A fork server takes any number of bytes, so the driver has to find out whether a program
        // can be started with this many.
        let size = || command.arguments.iter().map(|arg| arg.len()).sum::<usize>();
        if self.shortcuts.is_none() || size() > MAX_DIRECT_BYTES {
            return None;
        }
        self.drivers.direct(command).filter(|(_, commands)| !commands.by_driver)
    }

    pub(crate) fn toolchain(&self, toolchain: ToolchainId) -> &'a Toolchain {
        &self.drivers.toolchains[toolchain.0]
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
