//! The shortcuts: starts the compiler without its driver, forked from a loaded one, with
//! precompiled headers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use gfxpack_model::{Digest, Error};
use gfxpack_process::Usage;
use gfxpack_process::watch::{Recorder, recorded};

use crate::drivers::Direct;
use crate::headers::{HeaderMaker, HeaderOptions, PrecompiledHeader, groups};
use crate::launcher::{Command, CompilerRun, RunPaths};
use crate::session::Session;
use crate::template::TemplateValues;

/// Commands with longer arguments are left to the driver. Any system starts a program with fewer
/// bytes.
const MAX_DIRECT_BYTES: usize = 64 << 10;

/// Runs the commands for which there are shortcuts. A command that fails must be run again by
/// [`Session::run_driver`], whose result counts.
#[derive(Debug)]
pub struct FastLauncher<'a> {
    session: &'a Session<'a>,
    is_on: bool,
    headers: HeaderOptions<'a>,
    /// The precompiled header of each job that uses one, by the job's digest.
    made: RwLock<HashMap<Digest, Arc<PrecompiledHeader>>>,
}

impl<'a> FastLauncher<'a> {
    /// For the commands of a build. If `is_on` is false, no command has a shortcut.
    pub fn new(session: &'a Session<'a>, is_on: bool, headers: HeaderOptions<'a>) -> Self {
        Self { session, is_on, headers, made: RwLock::default() }
    }

    /// A command's macros and the commands that its driver would run.
    fn direct(&self, command: &Command<'_>) -> Option<Direct> {
        // A fork server takes any number of bytes, so the driver has to find out whether a program
        // can be started with this many.
        let size = || command.arguments.iter().map(|arg| arg.len()).sum::<usize>();
        if !self.is_on || size() > MAX_DIRECT_BYTES {
            return None;
        }
        self.session.drivers.direct(command).filter(|(_, commands)| !commands.by_driver)
    }

    /// Groups of commands, as indices into the list, for which [`FastLauncher::prepare`] should be
    /// called before they run; the largest first. No command is in two groups, and most may be in
    /// none.
    pub fn groups(&self, commands: &[Command<'_>]) -> Vec<Vec<usize>> {
        if self.is_on { groups(commands) } else { Vec::new() }
    }

    /// Makes what the commands of a group share, and returns the resources used.
    ///
    /// # Errors
    /// If the disk is full or the build was cancelled. If it
    /// can't be made for another reason, commands run without it.
    pub fn prepare(&self, commands: &[Command<'_>]) -> Result<Usage, Error> {
        let direct = commands.iter().filter_map(|command| Some((*command, self.direct(command)?)));
        let headers = HeaderMaker::new(self.session, &self.headers);
        let (made, usage) = headers.make(direct)?;
        self.made.write().expect("no panic inside").extend(made);
        Ok(usage)
    }

    /// Runs a command to its end, its time limit or cancellation. `None` if there is no shortcut.
    ///
    /// # Errors
    /// If a program can't be started. A program that fails is no error: [`CompilerRun::end`] says how
    /// it ended.
    pub fn run(
        &self,
        command: &Command<'_>,
        paths: &RunPaths<'_>,
    ) -> Result<Option<CompilerRun>, Error> {
        let Some((defines, commands)) = self.direct(command) else { return Ok(None) };
        let used = self.made.read().expect("no panic inside").get(&command.job).cloned();
        let values = TemplateValues {
            input: command.main(),
            defines: &defines,
            output: paths.output,
            deps_file: paths.deps_file,
            scratch: paths.scratch,
        };
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
                let dirs = (paths.stage, paths.scratch);
                self.session.run_compiler(command.toolchain, args, dirs, record)
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
}
