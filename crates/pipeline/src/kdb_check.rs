//! Checks that the real libMIOpen finds its kernels in kdbs, with the real SQLite
//! and with compilers disabled.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gfxpack_miopen::{CheckReport, check};
use gfxpack_model::{KernelKey, Target};
use gfxpack_process::temporary_dir;

use crate::ask::{self, Question, show_progress};
use crate::error::{self, Error, ErrorKind, Result};
use crate::kernel_files;
use crate::ledger::{Absences, Reason};
use crate::options::{CacheDir, InputOptions};
use crate::progress::Progress;
use crate::text::joined;

/// What to do about kernels that are missing.
const BUILD_IT: &str = "build what is missing by `dist` with the same --problems, --miopen and --miopen-db, and \
     with --source-dir for kernels whose source the library does not carry";

/// The result for one device.
#[derive(Debug)]
pub struct TargetCheck {
    /// The device.
    pub target: Target,
    /// The result for each problem.
    pub report: CheckReport,
    /// Missing kernels whose source is not available.
    pub without_source: usize,
    /// Missing kernels that the build was to make, but that failed or are skipped.
    pub not_built: usize,
}

/// Checks kdbs for each of these targets, or if there is none, those in the
/// kdbs' names, and passes each result to `each`.
///
/// # Errors
/// If an input can't be read, or a kernel is missing.
pub fn check_kdbs(
    inputs: &InputOptions,
    jobs: usize,
    cache: &CacheDir,
    files: &[PathBuf],
    progress: &dyn Progress,
    each: &mut dyn FnMut(&TargetCheck),
) -> Result<()> {
    if inputs.asking.problems.is_empty() {
        return Err(error::usage(
            "failed to start: no problems are given",
            "give what programs compute, as --problems FILE",
        ));
    }
    let mut targets: BTreeSet<Target> = inputs.target.concat().into_iter().collect();
    if targets.is_empty() {
        let target = |file: &PathBuf| Ok(kernel_files::format_and_target(file)?.1);
        targets = files.iter().map(target).collect::<Result<_>>()?;
    }
    let (question, _) = Question::read(inputs, jobs, cache, progress)?;
    question.check(files, &targets, &Absences::default(), progress, each)
}

impl Question {
    /// Checks every target, even if kernels are missing for one. Those may be missing that failed or
    /// are skipped, or whose source is left out.
    pub(crate) fn check(
        &self,
        files: &[PathBuf],
        targets: &BTreeSet<Target>,
        absences: &Absences,
        progress: &dyn Progress,
        each: &mut dyn FnMut(&TargetCheck),
    ) -> Result<()> {
        let is_to_build = |reason: Reason| reason.is_missing() || reason == Reason::Skipped;
        let not_built = absences.all().filter(|(_, one)| is_to_build(one.reason));
        let not_built: BTreeSet<&KernelKey> = not_built.map(|(_, one)| &one.key).collect();
        let left_out = absences.without_source();
        let scratch = temporary_dir()?;
        let cancelled = || progress.cancel().is_cancelled();
        let mut incomplete = BTreeSet::new();
        let mut hint = None;
        let exact = targets.iter().map(ask::exact).collect::<Result<Vec<_>>>()?;
        for target in exact.into_iter().flatten() {
            let mut options = self.options(target.clone(), scratch.path())?;
            let refused = left_out.iter().chain(&not_built);
            options.refused = refused.map(|key| KernelKey::clone(key)).collect();
            let report = check(
                &self.library,
                &self.problems,
                files,
                &options,
                &cancelled,
                &mut show_progress(progress, "checking"),
            )?;
            let withheld = report.outcomes.iter().flat_map(|outcome| &outcome.withheld);
            let withheld: BTreeSet<&KernelKey> = withheld.collect();
            let (not_built, without_source): (Vec<_>, Vec<_>) =
                withheld.into_iter().partition(|key| not_built.contains(key));
            let (not_built, without_source) = (not_built.len(), without_source.len());
            let checked = TargetCheck { target, report, without_source, not_built };
            each(&checked);
            let failures = &checked.report.failures;
            hint = hint.or_else(|| failures.iter().find_map(|one| one.failure.hint()));
            if !checked.report.is_complete() {
                incomplete.insert(checked.target.db_basename());
            }
        }
        if incomplete.is_empty() {
            return Ok(());
        }
        let message =
            format!("failed to verify that MIOpen finds every kernel on {}", joined(incomplete));
        Err(Error::new(ErrorKind::Unsound, message, hint.unwrap_or(BUILD_IT)))
    }
}
