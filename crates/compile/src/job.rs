//! One job: starts a compiler and checks its result.
//!
//! A job ends with an `Outcome`, for the worker that stores the object. Events report
//! [`Compiled`] or [`Failure`] instead.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use gfxpack_launch::{CompilerRun, RunPaths};
use gfxpack_model::Error;
use gfxpack_model::code_object::{self, UnfitError};
use gfxpack_plan::plan::Job;
use gfxpack_process::{ProgramEnd, Usage, interrupted};

use crate::context::{BuildContext, command_of};
use crate::declare::Declared;
use crate::diagnostics;
use crate::judge::{self, Judged};
use crate::store::ObjectInfo;

pub use crate::failure_kind::FailureKind;

/// A job that made an object, as reported by events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The stored object.
    pub object: ObjectInfo,
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
    /// A code object that is not stored yet.
    Object {
        bytes: Vec<u8>,
        /// Whether it is a function of its key. Otherwise it is for one build only.
        is_known: bool,
    },
    /// No object.
    Nothing {
        kind: FailureKind,
        /// What the compiler wrote.
        output: String,
        /// Whether the failure is to be kept: the next run would not end otherwise.
        is_kept: bool,
    },
}

impl Made {
    /// A failure that is not to be kept, without output.
    pub(crate) fn nothing(kind: FailureKind) -> Self {
        Self::Nothing { kind, output: String::new(), is_kept: false }
    }
}

/// Runs a job in the directory of its staged source, with a `scratch` directory of its own.
pub(crate) fn run(
    context: &BuildContext<'_>,
    job: &Job,
    declared: &Declared,
    stage: &Path,
    scratch: &Path,
) -> Result<Outcome, Error> {
    let started = Instant::now();
    let mut usage = Usage::default();
    if let Some(dir) = declared.inputs.as_ref().and_then(|inputs| inputs.searches.clone()) {
        let (made, duration) = (Made::nothing(FailureKind::Searches(dir)), started.elapsed());
        return Ok(Outcome { made, duration, usage, site: Site::Here });
    }
    let mut run_by =
        |by_driver: bool| attempt(context, by_driver, job, declared, (stage, scratch), &mut usage);
    let made = match run_by(false)? {
        Some(
            made @ (Made::Object { .. } | Made::Nothing { kind: FailureKind::TimedOut(_), .. }),
        ) => made,
        by_shortcut => {
            // A failure of a shortcut is not reported; the driver runs next.
            if let Some(Made::Nothing { kind, output, .. }) = by_shortcut {
                tracing::debug!(%kind, output, "a shortcut failed");
            }
            run_by(true)?.unwrap_or_else(|| Made::nothing(FailureKind::NoOutput))
        }
    };
    Ok(Outcome { made, duration: started.elapsed(), usage, site: Site::Here })
}

/// Starts a job's compiler by its driver or by a shortcut, and adds up the resources used. `None` if
/// there is no shortcut.
fn attempt(
    context: &BuildContext<'_>,
    by_driver: bool,
    job: &Job,
    declared: &Declared,
    (stage, scratch): (&Path, &Path),
    usage: &mut Usage,
) -> Result<Option<Made>, Error> {
    let (output, deps_file) = (&scratch.join("o"), &scratch.join("d"));
    for file in [output, deps_file] {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", file)(error));
            }
            _ => {}
        }
    }
    let inputs = declared.inputs.as_deref();
    let visible = inputs.map(|inputs| inputs.visible(stage));
    let visible = visible.as_ref();
    let paths = RunPaths { stage, scratch, output, deps_file, visible };
    let command = command_of(job);
    let launched = if by_driver {
        context.session.run_driver(&command, &paths).map(Some)
    } else {
        context.session.run_shortcut(&command, &paths)
    };
    let run = match launched {
        Ok(Some(run)) => run,
        Ok(None) => return Ok(None),
        // The kernel's arguments are too long for any program.
        Err(error) if error.io_kind() == Some(io::ErrorKind::ArgumentListTooLong) => {
            return Ok(Some(Made::nothing(FailureKind::TooLong)));
        }
        Err(error) => return Err(error),
    };
    *usage = usage.then(run.usage);
    let judged = judge::judge(context, job, inputs, &paths, &run);
    let mut made = ended(context, job, run, &judged, &paths)?;
    match (&mut made, &judged) {
        (Made::Object { .. }, Judged::Unknown(reason)) => context.unwatched(job, reason),
        (Made::Nothing { kind: kind @ FailureKind::Refused(_), output, .. }, _) => {
            let undeclared = inputs.and_then(|inputs| inputs.undeclared(output));
            if let Some(reads) = undeclared {
                *kind = reads;
            }
        }
        _ => {}
    }
    Ok(Some(made))
}

/// The outcome of a run, from how it ended and its judgement.
fn ended(
    context: &BuildContext<'_>,
    job: &Job,
    run: CompilerRun,
    judged: &Judged,
    paths: &RunPaths<'_>,
) -> Result<Made, Error> {
    let is_known = matches!(judged, Judged::Known);
    let (kind, is_kept) = match (run.end, judged) {
        (ProgramEnd::Cancelled, _) => return Err(interrupted()),
        (_, Judged::Failed(kind)) => (kind.clone(), false),
        (ProgramEnd::Exited(0), _) => match checked(job, read_output(paths.output)?) {
            Ok(bytes) => return Ok(Made::Object { bytes, is_known }),
            Err(kind) => (kind, is_known),
        },
        (ProgramEnd::Exited(_), _) if diagnostics::lacks_room(&run.output) => {
            tracing::debug!(run.output, "the compiler could not write");
            let full = io::ErrorKind::StorageFull.into();
            return Err(Error::io("write", paths.scratch)(full));
        }
        (ProgramEnd::Exited(code), _) => match diagnostics::killed(&run.output) {
            Some(signal) => (FailureKind::Crashed(signal), false),
            None => (FailureKind::Refused(code), is_known),
        },
        (ProgramEnd::Killed(signal), _) => (FailureKind::Crashed(signal), false),
        (ProgramEnd::TimedOut, _) => (FailureKind::TimedOut(context.time_limit), false),
    };
    // Only the driver's own failure is reported, so no other one is kept.
    let keep = run.by_driver && diagnostics::is_kernels_fault(&kind, &run.output);
    Ok(Made::Nothing { kind, output: run.output, is_kept: is_kept && keep })
}

/// The file that a compiler wrote; empty if there is none.
fn read_output(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(Error::io("read", file)(error)),
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
