//! How a job's compiler is run at the least cost for the same bytes: without
//! the driver, forked from one that is already loaded, with headers parsed
//! beforehand.
//!
//! Every shortcut can be turned off, none is taken where it might give other
//! bytes, and whatever fails by a shortcut is run again by the driver, whose
//! word counts.

mod action;
mod built_names;
mod command;
mod drivers;
mod fork_server;
mod library_headers;
mod precompiled;
mod prepare;
mod shortcuts;
mod starter;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use gfxpack_plan::plan::{Job, Plan};

pub(crate) use self::action::{Recipe, SCRATCH, SYSTEM};
pub(crate) use self::command::Filling;
use self::command::deps_arguments;
pub(crate) use self::drivers::Commands;
pub(crate) use self::drivers::Direct;
pub(crate) use self::drivers::{COMMANDS, Drivers};
use self::precompiled::PrecompiledHeader;
pub(crate) use self::prepare::Preparation;
pub use self::shortcuts::{Shortcut, Shortcuts};
use self::starter::Start;
pub(crate) use self::starter::{Compilers, Starter};
use crate::error::CompileError;
use crate::judge::ToolchainPlaces;
use crate::source::SourceSet;
use gfxpack_process::preload::{self, Environment};
use gfxpack_process::watch::{
    KeptAnswers, Landlock, Looks, Record, Recorder, RecorderOptions, Unwatched,
};
use gfxpack_process::{self as process, Cancel, End, FileDigests, Output, Usage};
use gfxpack_toolchain::Toolchain;

/// Jobs with arguments of more bytes are the driver's: any system starts a
/// program with less.
const MAX_DIRECT_BYTES: usize = 64 << 10;

/// What all jobs of a build are run with.
pub(crate) struct Engine<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sources: &'a SourceSet,
    pub(crate) toolchains: &'a [Toolchain],
    pub(crate) digests: &'a FileDigests,
    pub(crate) cancel: &'a Cancel,
    pub(crate) time_limit: Duration,
    pub(crate) shortcuts: Shortcuts,
    /// Where precompiled headers and the like are kept between builds.
    pub(crate) kept: &'a Path,
    /// A directory of this build alone.
    pub(crate) work: &'a Path,
    /// What drivers would run.
    pub(crate) drivers: &'a Drivers<'a>,
    pub(crate) compilers: Compilers,
    /// The whole environment of a toolchain's programs, by toolchain.
    pub(crate) environments: Vec<Environment>,
    /// By job.
    pub(crate) headers: RwLock<HashMap<usize, UsedHeader>>,
    /// What the file system says.
    pub(crate) looks: &'a Looks<'a>,
    /// Where everything lies, by toolchain.
    pub(crate) places: Vec<ToolchainPlaces>,
    /// Jobs whose compilers could not be watched, and why the first could not.
    pub(crate) unwatched: Mutex<(usize, Option<String>)>,
}

/// The environment of a toolchain's compilers, and of the drivers that hand it
/// on to them.
pub(crate) fn compiler_environment(toolchain: &Toolchain) -> Environment {
    preload::environment(&toolchain.environment)
}

/// What became of a job's compiler.
pub(crate) struct Run {
    pub(crate) end: End,
    /// What it wrote, standard error first.
    pub(crate) words: String,
    pub(crate) usage: Usage,
    /// What its programs asked of the file system, one after the other.
    pub(crate) records: Vec<Result<Record, Unwatched>>,
    /// The precompiled header that it used.
    pub(crate) header: Option<UsedHeader>,
}

/// A precompiled header as a job uses it.
#[derive(Debug, Clone)]
pub(crate) struct UsedHeader {
    pub(crate) header: Arc<PrecompiledHeader>,
    /// That nothing lies among the sources that would hide one of its headers.
    pub(crate) absent: Arc<KeptAnswers>,
}

/// How a job's compiler is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By whatever shortcuts there are for it.
    Short,
    /// By the driver.
    Driver,
}

/// A job with the places it works in.
pub(crate) struct Place<'a> {
    /// The directory of its staged source.
    pub(crate) stage: &'a Path,
    /// A directory of its own.
    pub(crate) scratch: &'a Path,
    pub(crate) output: &'a Path,
    pub(crate) deps_file: &'a Path,
}

impl Engine<'_> {
    /// What starts a worker's compilers.
    pub(crate) fn starter(&self) -> Starter<'_> {
        Starter::new(&self.compilers)
    }

    /// Runs a job's compiler. `None` where there is no shortcut for it.
    pub(crate) fn run(
        &self,
        starter: &mut Starter<'_>,
        index: usize,
        place: &Place<'_>,
        way: Way,
    ) -> Result<Option<Run>, CompileError> {
        let job = &self.plan.jobs[index];
        match way {
            Way::Driver => self.by_driver(job, place).map(Some),
            Way::Short => self.by_shortcuts(starter, index, place),
        }
    }

    fn by_driver(&self, job: &Job, place: &Place<'_>) -> Result<Run, CompileError> {
        let toolchain = &self.toolchains[job.toolchain];
        let mut arguments: Vec<_> = job.arguments.iter().map(|word| toolchain.fill(word)).collect();
        arguments.extend(deps_arguments(job.language, place.deps_file));
        arguments.extend(["-o".into(), place.output.into()]);
        let program = process::Program {
            path: toolchain.program(job.program),
            arguments,
            directory: place.stage,
            environment: &self.environments[job.toolchain],
            temp_dir: place.scratch,
            time_limit: self.time_limit,
            record: None,
        };
        // Where it is not known what the driver would do, all that it asks
        // counts.
        let all = self.drivers.direct(job).is_none();
        let (output, record) = recorded(driver_recorder(place.scratch, all), |record| {
            let program = process::Program { record, ..program.clone() };
            Ok(process::run(&program, self.cancel)?)
        })?;
        Ok(Run::new(output, vec![record], None))
    }

    fn by_shortcuts(
        &self,
        starter: &mut Starter<'_>,
        index: usize,
        place: &Place<'_>,
    ) -> Result<Option<Run>, CompileError> {
        let job = &self.plan.jobs[index];
        let Some((defines, commands)) = self.commands_of(job) else { return Ok(None) };
        let header = self.headers.read().expect("no panic inside").get(&index).cloned();
        let mut run: Option<Run> = None;
        for command in &commands.list {
            let with_header = header.as_ref().and_then(|used| used.header.apply(command));
            let filling = Filling {
                input: &self.plan.sources[job.source].main,
                defines: &defines,
                output: place.output,
                deps_file: place.deps_file,
                scratch: place.scratch,
            };
            let start = Start {
                words: with_header.as_ref().unwrap_or(command).fill(&filling),
                directory: place.stage,
                environment: &self.environments[job.toolchain],
                temp_dir: place.scratch,
                time_limit: self.time_limit,
                fork_server: self.shortcuts.fork_server,
                record: None,
            };
            let (output, record) = recorded(recorder(place.scratch), |record| {
                starter.run(&Start { record, words: start.words.clone(), ..start }, self.cancel)
            })?;
            let ok = output.ok();
            let next = Run::new(output, vec![record], header.clone());
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

    /// Notes that a job's compiler could not be watched.
    pub(crate) fn unwatched(&self, job: &Job, reason: &str) {
        tracing::debug!(key = %job.key, reason, "what it read is not known");
        let mut unwatched = self.unwatched.lock().expect("no panic inside");
        unwatched.0 += 1;
        unwatched.1.get_or_insert_with(|| reason.to_owned());
    }

    /// What the user should hear of compilers that could not be watched.
    pub(crate) fn unwatched_warning(&self) -> Option<String> {
        let (count, reason) = &*self.unwatched.lock().expect("no panic inside");
        let kernels = if *count == 1 { "1 kernel".to_owned() } else { format!("{count} kernels") };
        reason.as_ref().map(|reason| {
            format!("it is not known what {kernels} were made of, which the next build makes again: {reason}")
        })
    }

    /// A job's macros and the commands that its driver would run.
    fn commands_of(&self, job: &Job) -> Option<Direct> {
        // Whether a program can be started with so much is for the driver to
        // find out, since a fork server takes any number of bytes.
        let size = || job.arguments.iter().map(str::len).sum::<usize>();
        if !self.shortcuts.direct || size() > MAX_DIRECT_BYTES {
            return None;
        }
        self.drivers.direct(job)
    }
}

impl Run {
    fn new(
        output: Output,
        records: Vec<Result<Record, Unwatched>>,
        header: Option<UsedHeader>,
    ) -> Self {
        let words = [output.stderr.trim_end(), output.stdout.trim_end()];
        let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
        Self { end: output.end, words: words.join("\n"), usage: output.usage, records, header }
    }

    /// The same with what a command did that was started after it.
    fn then(mut self, next: Self) -> Self {
        self.records.extend(next.records);
        Self {
            end: next.end,
            words: self.words + &next.words,
            usage: self.usage.then(next.usage),
            records: self.records,
            header: self.header,
        }
    }
}

/// A record of one compiler, which may write nothing but what is in `scratch`.
pub(crate) fn recorder(scratch: &Path) -> io::Result<Recorder> {
    Recorder::with(&RecorderOptions {
        writable: Some(&[scratch]),
        landlock: Some(Landlock::Compilers),
        ..RecorderOptions::default()
    })
}

/// Likewise of a driver and all that it starts, and whether it tells what it
/// asks too.
pub(crate) fn driver_recorder(scratch: &Path, all: bool) -> io::Result<Recorder> {
    Recorder::with(&RecorderOptions {
        all,
        writable: Some(&[scratch]),
        landlock: Some(Landlock::All),
        ..RecorderOptions::default()
    })
}

/// Runs something with a record of what it asks of the file system.
pub(crate) fn recorded<T>(
    recorder: io::Result<Recorder>,
    run: impl FnOnce(Option<&Recorder>) -> Result<T, CompileError>,
) -> Result<(T, Result<Record, Unwatched>), CompileError> {
    let recorder = recorder.ok();
    let done = run(recorder.as_ref())?;
    Ok((done, recorder.map_or(Err(Unwatched::Nothing), Recorder::finish)))
}

/// The words of a compiler that preprocesses only, into `file`; `None` where
/// they are not understood.
fn preprocessing(words: Vec<OsString>, file: &Path) -> Option<Vec<OsString>> {
    let mut changed = Vec::with_capacity(words.len());
    let mut emits = false;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-mlink-builtin-bitcode" | "-dependency-file") => {
                words.next()?;
            }
            Some("-emit-obj" | "-emit-pch") => {
                emits = true;
                changed.push("-E".into());
            }
            Some("-o") => {
                words.next()?;
                changed.extend([word, file.into()]);
            }
            _ => changed.push(word),
        }
    }
    emits.then_some(changed)
}
