//! Shows the pipeline's events on a terminal, in a log, or as JSON messages.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gfxpack_compile::{Cancel, Event as JobEvent};
use gfxpack_pipeline::build_status::{BuildCount, messages};
use gfxpack_pipeline::failure_log::FailureFiles;
use gfxpack_pipeline::progress::{Event, Progress, Unit};
use gfxpack_plan::plan::Plan;

use super::bar::Bar;
use super::bars::Bars;
use super::lines::Lines;
use super::view::BuildView;
use crate::context::Context;
use crate::output::{Output, display, message, size};
use crate::tuning_findings;

/// Reports a run in the selected way.
pub(crate) struct Reporter {
    output: Output,
    cancel: Cancel,
    build: Mutex<Option<Build>>,
    step: Mutex<Option<Bar>>,
}

/// A build that is running.
struct Build {
    count: BuildCount,
    /// The view for people; `None` if only messages are written.
    view: Option<Box<dyn BuildView>>,
}

impl Reporter {
    pub(crate) fn new(context: &Context) -> Self {
        let (output, cancel) = (context.output.clone(), context.cancel.clone());
        Self { output, cancel, build: Mutex::default(), step: Mutex::default() }
    }

    fn build(&self) -> MutexGuard<'_, Option<Build>> {
        self.build.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_build(&self, plan: &Plan, files: &FailureFiles) {
        let output = &self.output;
        output.building();
        let view: Option<Box<dyn BuildView>> = match (output.bars, output.json) {
            (true, _) => Some(Box::new(Bars::new(output, plan, files))),
            (false, false) => Some(Box::new(Lines::new(output, files))),
            (false, true) => None,
        };
        *self.build() = Some(Build { count: BuildCount::default(), view });
    }

    fn job(&self, plan: &Plan, event: &JobEvent) {
        let (output, mut build) = (&self.output, self.build());
        let Some(Build { count, view }) = &mut *build else {
            // A job without a build only warns.
            if let JobEvent::Warning { message } = event {
                output.warn(message);
            }
            return;
        };
        count.event(plan, event);
        if output.messages {
            messages(plan, event, count, &mut |kind, body| output.message(kind, &body));
        }
        if let Some(view) = view {
            view.event(plan, event, count);
        }
    }

    fn with_view(&self, act: impl FnOnce(&mut dyn BuildView, &BuildCount)) {
        if let Some(Build { count, view: Some(view) }) = &mut *self.build() {
            act(&mut **view, count);
        }
    }

    fn step(&self, what: &'static str, unit: Unit, done: u64, total: u64) {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        step.get_or_insert_with(|| Bar::new(&self.output, what, unit, total)).at(unit, done, total);
    }

    fn end_step(&self) {
        self.step.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Progress for Reporter {
    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn event(&self, event: Event<'_>) {
        let output = &self.output;
        match event {
            Event::Warning(text) => output.above(|| output.warn(text)),
            Event::Note(text) => output.above(|| output.note(text)),
            Event::Step { what, unit, done, total } => self.step(what, unit, done, total),
            Event::StepEnded => self.end_step(),
            Event::ProblemFailed { target, problem, reason } => {
                let (problem, reason) = (problem.to_string(), reason.to_string());
                message!(output, "problem-failed", {
                    "target": target, "problem": problem, "reason": reason,
                });
                output.show_warning(&format!("{target}: `{problem}`: {reason}"));
            }
            Event::TuningFinding { file, finding } => {
                tuning_findings::report(file, finding, output);
            }
            Event::ToolchainUsed { identity, targets } => {
                output.info(&format!("using {identity} for {}", targets.join(", ")));
                output.building();
            }
            Event::BuildStarted { plan, files } => self.start_build(plan, files),
            Event::Job { plan, event } => self.job(plan, event),
            Event::KdbProgress { plan, kdb, rows, total, unchanged } => {
                self.with_view(|view, _| view.assembled(plan, kdb, rows, total, unchanged))
            }
            Event::BuildEnded => {
                self.with_view(|view, count| view.finish(count));
                *self.build() = None;
            }
            Event::Annotation(line) => output.command(line),
            Event::Report(summary) => output.message("report", summary),
            Event::Package { file_name, size: bytes, new } => {
                let verb = if new { "packaged" } else { "unchanged" };
                output.info(&format!("{verb} {file_name} ({})", size(bytes)));
            }
            Event::PackageRemoved { path } => {
                message!(output, "package-removed", { "file": display(path) });
                let name = path.file_name().map(display).unwrap_or_default();
                output.info(&format!("removed {name}, which is out of date"));
            }
            Event::Evicted { files, bytes } => {
                output.info(&format!("evicted {files} files from the cache, {}", size(bytes)));
            }
        }
    }
}
