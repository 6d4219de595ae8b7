//! What a run reports while it goes on. Whoever calls the pipeline implements
//! [`Progress`]: a terminal, JSON lines, or nothing at all.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use gfxpack_compile::{Cancel, Event as JobEvent};
use gfxpack_miopen::Problem;
use gfxpack_model::{KdbId, Target};
use gfxpack_plan::plan::Plan;
use gfxpack_tuning::Finding;
use serde_json::Value;

use crate::failure_log::FailureFiles;

/// Receives the events of a run, from any thread. It decides nothing but
/// whether the run goes on.
pub trait Progress: Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);

    /// Set if the run is to stop.
    fn cancel(&self) -> &Cancel;

    /// Something is wrong, and the run goes on.
    fn warning(&self, text: &str) {
        self.event(Event::Warning(text));
    }

    /// A sentence about what is being done.
    fn note(&self, text: &str) {
        self.event(Event::Note(text));
    }
}

/// Something that happened in a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Something is wrong, and the run goes on.
    Warning(&'a str),
    /// A sentence about what is being done.
    Note(&'a str),
    /// A long step has come so far.
    Step {
        /// What is being done, as `reading`.
        what: &'static str,
        /// What is counted.
        unit: Unit,
        /// How much is done.
        done: u64,
        /// How much there is in all; 0 where that is not known.
        total: u64,
    },
    /// The long step is over.
    StepEnded,
    /// MIOpen failed on a problem.
    ProblemFailed {
        /// For which GPU.
        target: &'a Target,
        /// What it was asked.
        problem: &'a Problem,
        /// Why it failed.
        reason: &'a gfxpack_miopen::Failure,
    },
    /// A tuning database that is to be packaged has a flaw.
    TuningFinding {
        /// The database.
        file: &'a Path,
        /// The flaw.
        finding: &'a Finding,
    },
    /// Toolchains are chosen, and something will be written from now on.
    ToolchainUsed {
        /// The toolchain's identity.
        identity: &'a str,
        /// The targets that it builds.
        targets: &'a [String],
    },
    /// Jobs of a plan will run.
    BuildStarted {
        /// The plan.
        plan: &'a Plan,
        /// Where failures can be read in full.
        files: &'a FailureFiles,
    },
    /// Something happened to a job.
    Job {
        /// The plan that the job is of.
        plan: &'a Plan,
        /// What happened.
        event: &'a JobEvent,
    },
    /// Rows of a kdb were written, or it already lies there as it would be made.
    KdbProgress {
        /// The plan that the kdb is of.
        plan: &'a Plan,
        /// The kdb.
        kdb: KdbId,
        /// Rows written.
        rows: u64,
        /// Rows in all.
        total: u64,
        /// Whether it lies there.
        unchanged: bool,
    },
    /// The build is over.
    BuildEnded,
    /// A line that a CI service reads from the log.
    Annotation(&'a str),
    /// The build's facts, as the report has them.
    Report(&'a Value),
    /// A package was written, or lies there as it would be written.
    Package {
        /// The file's name.
        file_name: &'a str,
        /// Bytes.
        size: u64,
        /// Whether it was written by this run.
        new: bool,
    },
    /// A package of an earlier run was out of date and is removed.
    PackageRemoved {
        /// The file.
        path: &'a Path,
    },
    /// Objects were evicted from the cache.
    Evicted {
        /// Files removed.
        files: u64,
        /// Bytes freed.
        bytes: u64,
    },
}

/// What the progress of a step is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes read or fetched.
    Bytes,
    /// Kernels.
    Kernels,
    /// Problems asked.
    Problems,
}

/// A long step, which ends when this is dropped.
pub(crate) struct Step<'a> {
    progress: &'a dyn Progress,
    what: &'static str,
    unit: Unit,
    done: AtomicU64,
}

impl<'a> Step<'a> {
    pub(crate) fn new(progress: &'a dyn Progress, what: &'static str, unit: Unit) -> Self {
        progress.event(Event::Step { what, unit, done: 0, total: 0 });
        Self { progress, what, unit, done: AtomicU64::new(0) }
    }

    /// So many more are done.
    pub(crate) fn add(&self, more: u64) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        self.at(done, 0);
    }

    /// So many of so many are done.
    pub(crate) fn at(&self, done: u64, total: u64) {
        let (what, unit) = (self.what, self.unit);
        self.progress.event(Event::Step { what, unit, done, total });
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.progress.event(Event::StepEnded);
    }
}
