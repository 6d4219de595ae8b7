//! One job: starts a compiler and checks its result.
//!
//! A job ends with an `Outcome`, for the worker that stores the object. Events report
//! [`Compiled`] or [`Failure`] instead.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use gfxpack_launch::{CompilerRun, Launcher, RunPaths};
use gfxpack_model::code_object::{self, UnfitError};
use gfxpack_plan::plan::Job;
use gfxpack_process::{FileError, ProgramEnd, Timestamp, Usage};
use gfxpack_toolchain::ToolchainError;

use crate::context::{BuildContext, command_of};
use crate::diagnostics;
use crate::error::CompileError;
use crate::judge::{self, Judged, RecentlyChanged};
use crate::stage::Stage;
use crate::store::Dependencies;

pub use crate::failure_kind::FailureKind;

/// A job that made an object, as reported by events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// Bytes of the object.
    pub size: u64,
    /// How long the compiler ran.
    pub duration: Duration,
    /// The resources that the compiler used.
    pub usage: Usage,
    /// Where it was made.
    pub site: Site,
}

/// Where a job ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Site {
    /// On this machine.
    #[default]
    Here,
    /// On a remote worker.
    Remote {
        /// The worker, as the service calls it.
        worker: String,
        /// Whether the service had the object in its cache.
        cached: bool,
    },
}

/// A job that made no object, and why, as reported by events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// What the compiler wrote, cut at a limit.
    pub output: String,
    /// How long the compiler ran.
    pub duration: Duration,
    /// The resources that the compiler used.
    pub usage: Usage,
    /// Where the job ran.
    pub site: Site,
}

impl Failure {
    /// A failure on this machine that took no time.
    pub(crate) fn new(kind: FailureKind, output: String) -> Self {
        let (duration, usage, site) = (Duration::ZERO, Usage::default(), Site::Here);
        Self { kind, output, duration, usage, site }
    }

    /// Whether the kernel itself is wrong, rather than the machine or the moment, so that another
    /// run would fail in the same way.
    #[must_use]
    pub fn is_kernels_fault(&self) -> bool {
        diagnostics::is_kernels_fault(&self.kind, &self.output)
    }
}

/// How a job ended, with the time and resources that it took.
pub(crate) struct Outcome {
    pub(crate) made: Made,
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
    pub(crate) site: Site,
}

/// What a compiler made.
pub(crate) enum Made {
    /// A code object that is not stored yet, with its dependencies.
    Object(Vec<u8>, Dependencies),
    /// No object.
    Nothing {
        kind: FailureKind,
        /// What the compiler wrote.
        output: String,
        /// The dependencies of the failure, if it is to be kept: the next run would not end
        /// otherwise.
        keep_with: Option<Dependencies>,
    },
}

impl Made {
    /// A failure that is not to be kept, without output.
    pub(crate) fn nothing(kind: FailureKind) -> Self {
        Self::Nothing { kind, output: String::new(), keep_with: None }
    }
}

/// How often a compiler is started again because it looked for files among the sources that were
/// not laid out, or because files had just changed. Each start may reveal more files, which those
/// name in turn.
const ROUNDS: usize = 64;

/// Runs a job in the directory of its staged source, with a `scratch` directory of its own.
pub(crate) fn run(
    context: &BuildContext<'_>,
    job: &Job,
    stage: &Stage,
    scratch: &Path,
) -> Result<Outcome, CompileError> {
    let started = Instant::now();
    let mut usage = Usage::default();
    let mut run_by = |launcher| repeated(context, launcher, job, (stage, scratch), &mut usage);
    let made = match run_by(context.fast)? {
        Some(made @ (Made::Object(..) | Made::Nothing { kind: FailureKind::TimedOut(_), .. })) => {
            made
        }
        by_shortcut => {
            // A failure of a shortcut is not reported; the driver runs next.
            if let Some(Made::Nothing { kind, output, .. }) = by_shortcut {
                tracing::debug!(%kind, output, "a shortcut failed");
            }
            let endless = || Made::nothing(FailureKind::Endless(ROUNDS));
            run_by(context.driver)?.unwrap_or_else(endless)
        }
    };
    Ok(Outcome { made, duration: started.elapsed(), usage, site: Site::Here })
}

/// Starts a job's compiler again until it does not have to run again, and adds up the resources
/// used. `None` if the launcher can't run this job, or if the compiler has to run again each time.
fn repeated(
    context: &BuildContext<'_>,
    launcher: &dyn Launcher,
    job: &Job,
    place: (&Stage, &Path),
    usage: &mut Usage,
) -> Result<Option<Made>, CompileError> {
    let mut fresh = RecentlyChanged::new();
    for _ in 0..=ROUNDS {
        match attempt(context, launcher, job, place, &mut fresh, usage)? {
            Attempt::Again => {}
            Attempt::NotThisWay => return Ok(None),
            Attempt::Done(made) => return Ok(Some(*made)),
        }
    }
    Ok(None)
}

/// The result of starting a job's compiler once.
enum Attempt {
    /// The launcher can't run this job.
    NotThisWay,
    /// The compiler has to run again, as files that it looked for are laid out now, or had just
    /// changed.
    Again,
    /// The compiler ran to its end.
    Done(Box<Made>),
}

fn attempt(
    context: &BuildContext<'_>,
    launcher: &dyn Launcher,
    job: &Job,
    (stage, scratch): (&Stage, &Path),
    fresh: &mut RecentlyChanged,
    usage: &mut Usage,
) -> Result<Attempt, CompileError> {
    let (output, deps_file) = (&scratch.join("o"), &scratch.join("d"));
    for file in [output, deps_file] {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::io("remove", file)(error).into());
            }
            _ => {}
        }
    }
    let paths = RunPaths { stage: stage.dir(), scratch, output, deps_file };
    let since = Timestamp::now();
    let run = match launcher.run(&command_of(job), &paths) {
        Ok(Some(run)) => run,
        Ok(None) => return Ok(Attempt::NotThisWay),
        // The kernel's arguments are too long for any program.
        Err(ToolchainError::Start(error))
            if error.source.kind() == io::ErrorKind::ArgumentListTooLong =>
        {
            return Ok(Attempt::Done(Box::new(Made::nothing(FailureKind::TooLong))));
        }
        Err(error) => return Err(error.into()),
    };
    *usage = usage.then(run.usage);
    let (dependencies, unknown) = match judge::judge(
        context, job, stage, &paths, &run, since, fresh,
    )? {
        Judged::Again => return Ok(Attempt::Again),
        Judged::AgainAfter(changed) => {
            tracing::debug!(key = %job.key, ?changed, "compiled again, as files had just changed");
            *fresh = changed;
            return Ok(Attempt::Again);
        }
        Judged::Failed(kind) => (Err(kind), None),
        Judged::Known(dependencies) => (Ok(dependencies), None),
        Judged::Unknown(reason, sources) => {
            (Ok(Dependencies::for_one_build(sources)), Some(reason))
        }
    };
    let mut made = ended(context, job, run, dependencies, &paths)?;
    match (&mut made, unknown) {
        (Made::Object(..), Some(reason)) => context.unwatched(job, &reason),
        (Made::Nothing { keep_with, .. }, Some(_)) => *keep_with = None,
        (_, None) => {}
    }
    Ok(Attempt::Done(Box::new(made)))
}

/// The outcome of a run, from how it ended and the dependencies that it was judged to have.
fn ended(
    context: &BuildContext<'_>,
    job: &Job,
    run: CompilerRun,
    dependencies: Result<Dependencies, FailureKind>,
    paths: &RunPaths<'_>,
) -> Result<Made, CompileError> {
    let (kind, dependencies) = match (run.end, dependencies) {
        (ProgramEnd::Cancelled, _) => return Err(CompileError::Interrupted),
        (_, Err(kind)) => (kind, None),
        (ProgramEnd::Exited(0), Ok(dependencies)) => match checked(job, read_output(paths.output)?)
        {
            Ok(bytes) => return Ok(Made::Object(bytes, dependencies)),
            Err(kind) => (kind, Some(dependencies)),
        },
        (ProgramEnd::Exited(_), _) if diagnostics::lacks_room(&run.output) => {
            tracing::debug!(run.output, "the compiler could not write");
            let full = io::ErrorKind::StorageFull.into();
            return Err(FileError::io("write", paths.scratch)(full).into());
        }
        (ProgramEnd::Exited(code), Ok(dependencies)) => match diagnostics::killed(&run.output) {
            Some(signal) => (FailureKind::Crashed(signal), None),
            None => (FailureKind::Refused(code), Some(dependencies)),
        },
        (ProgramEnd::Killed(signal), _) => (FailureKind::Crashed(signal), None),
        (ProgramEnd::TimedOut, _) => (FailureKind::TimedOut(context.time_limit), None),
    };
    // Only the driver's own failure is reported, so no other one is kept.
    let keep = run.by_driver && diagnostics::is_kernels_fault(&kind, &run.output);
    Ok(Made::Nothing { kind, output: run.output, keep_with: dependencies.filter(|_| keep) })
}

/// The file that a compiler wrote; empty if there is none.
fn read_output(file: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(file).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(FileError::io("read", file)(error)),
    })
}

/// The bytes, if they are a valid object for a kdb of the job's target.
pub(crate) fn checked(job: &Job, bytes: Vec<u8>) -> Result<Vec<u8>, FailureKind> {
    if bytes.is_empty() {
        return Err(FailureKind::NoOutput);
    }
    match code_object::check_for_kdb(&bytes, &job.target_id) {
        Ok(()) => Ok(bytes),
        Err(UnfitError::OtherTarget { found, needed }) => Err(FailureKind::WrongTarget {
            expected: needed.to_string(),
            found: code_object::spelled(&found),
        }),
        Err(error) => Err(FailureKind::NoCodeObject(error.to_string())),
    }
}
