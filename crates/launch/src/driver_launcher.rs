//! Runs the driver itself, hipcc or clang, with the planned arguments. Every shortcut must give the
//! same objects.

use gfxpack_process::watch::{Recorder, recorded};
use gfxpack_process::{Program, run};
use gfxpack_toolchain::ToolchainError;

use crate::arguments::deps_arguments;
use crate::launcher::{Command, CompilerRun, Launcher, RunPaths};
use crate::session::Session;

/// Runs every command by its driver.
#[derive(Debug)]
pub struct DriverLauncher<'a> {
    session: &'a Session<'a>,
}

impl<'a> DriverLauncher<'a> {
    /// For the commands of a build.
    #[must_use]
    pub fn new(session: &'a Session<'a>) -> Self {
        Self { session }
    }
}

impl Launcher for DriverLauncher<'_> {
    fn run(
        &self,
        command: &Command<'_>,
        paths: &RunPaths<'_>,
    ) -> Result<Option<CompilerRun>, ToolchainError> {
        let toolchain = self.session.toolchain(command.toolchain);
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
                environment: self.session.environment(command.toolchain),
                temp_dir: paths.scratch,
                time_limit: self.session.time_limit,
                record,
            };
            run(&program, self.session.cancel)
        })?;
        Ok(Some(CompilerRun::new(output, record, true)))
    }
}
