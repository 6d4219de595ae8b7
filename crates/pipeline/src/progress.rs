//! The progress of a run. The caller of the pipeline implements [`Progress`]: for
//! a terminal, JSON lines, or nothing at all.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use gfxpack_compile::{Cancel, Event as JobEvent};
use gfxpack_miopen::Problem;
use gfxpack_model::{KdbId, Target};
use gfxpack_plan::plan::Plan;
use gfxpack_tuning::Finding;
use serde_json::Value;

use crate::report::FailureFiles;

/// Receives the events of a run, from any thread. It has no influence on the run
/// except for cancelling it.
pub trait Progress: Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);

    /// Set if the run is to stop.
    fn cancel(&self) -> &Cancel;

    /// Something is wrong, but the run continues.
    fn warning(&self, text: &str) {
        self.event(Event::Warning(text));
    }

    /// A sentence about what is being done.
    fn note(&self, text: &str) {
        self.event(Event::Note(text));
    }

    /// Like [`Progress::note`], for people only.
    fn info(&self, text: &str) {
        self.event(Event::Info(text));
    }
}

/// Something that happened in a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something is wrong, but the run continues.
    Warning(&'a str),
    /// A sentence about what is being done.
    Note(&'a str),
    /// The same, for people only.
    Info(&'a str),
    /// The progress of a long step.
    Step {
        /// What is being done, such as `reading`.
        what: &'static str,
        /// The unit of the counts.
        unit: Unit,
        /// How much is done.
        done: u64,
        /// The total; 0 if unknown.
        total: u64,
    },
    /// The long step is over.
    StepEnded,
    /// MIOpen failed on a problem, on this GPU and for this reason.
    ProblemFailed(&'a Target, &'a Problem, &'a gfxpack_miopen::Failure),
    /// A tuning database that is to be packaged has a flaw.
    TuningFinding(&'a Path, &'a Finding),
    /// Jobs of a plan will run, whose failures can be read in these files; from now on files are
    /// written.
    BuildStarted(&'a Plan, &'a FailureFiles),
    /// Something happened to a job of a plan.
    Job(&'a Plan, &'a JobEvent),
    /// Rows of a kdb were written, or the kdb is up to date.
    KdbProgress {
        /// The plan of the kdb.
        plan: &'a Plan,
        /// The kdb.
        kdb: KdbId,
        /// Rows written.
        rows: u64,
        /// Rows in all.
        total: u64,
        /// Whether the kdb was up to date.
        unchanged: bool,
    },
    /// The build is over.
    BuildEnded,
    /// A line that a CI service reads from the log.
    Annotation(&'a str),
    /// The facts in the build report.
    Report(&'a Value),
    /// An outdated package of an earlier run is removed.
    PackageRemoved {
        /// The file.
        path: &'a Path,
        /// Whether this run made packages.
        replaced: bool,
    },
}

/// The unit of a step's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes read or fetched.
    Bytes,
    /// Kernels.
    Kernels,
    /// Problems that were asked.
    Problems,
}

/// Reports the progress of one long step, which ends when this is dropped. Any
/// thread may update it.
pub struct Step<'a> {
    progress: &'a dyn Progress,
    what: &'static str,
    unit: Unit,
    done: AtomicU64,
    total: u64,
}

impl<'a> Step<'a> {
    /// A step that does `what`, such as `reading`; `total` is 0 if it is unknown.
    pub fn new(progress: &'a dyn Progress, what: &'static str, unit: Unit, total: u64) -> Self {
        let step = Self { progress, what, unit, done: AtomicU64::new(0), total };
        step.at(0, total);
        step
    }

    /// Adds to what is done.
    pub fn add(&self, more: u64) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        self.at(done, self.total);
    }

    /// Sets what is done, and the total.
    pub fn at(&self, done: u64, total: u64) {
        self.progress.event(Event::Step { what: self.what, unit: self.unit, done, total });
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.progress.event(Event::StepEnded);
    }
}
