//! Shows the pipeline's events on a terminal, in a log, or as JSON messages.

mod bar;
mod bars;
mod count;
mod estimate;
mod failure_texts;
mod lines;
mod messages;

use std::sync::{Mutex, MutexGuard, PoisonError};

use gfxpack_compile::{Cancel, Event as JobEvent};
use gfxpack_model::KdbId;
use gfxpack_pipeline::progress::{Event, Progress};
use gfxpack_pipeline::report::FailureFiles;
use gfxpack_plan::plan::Plan;

use self::bar::Bar;
use self::bars::Bars;
use self::count::BuildCount;
use self::failure_texts::FailureTexts;
use self::lines::Lines;
use self::messages::messages;
use crate::context::Context;
use crate::output::{Output, display, message};
use crate::tuning_findings;

/// Reports a run in the selected way.
pub(crate) struct Reporter {
    output: Output,
    cancel: Cancel,
    build: Mutex<Option<Build>>,
    step: Mutex<Option<Bar>>,
}

struct Build {
    count: BuildCount,
    failures: FailureTexts,
    /// The view for people; `None` if only messages are written.
    view: Option<Box<dyn BuildView>>,
}

/// Shows a build to people, without any influence on it: as bars or as lines.
trait BuildView: Send {
    /// Something happened to a job; `count` has been updated already.
    fn event(&mut self, plan: &Plan, event: &JobEvent, count: &BuildCount);
    /// Rows of a kdb were written, or it is `unchanged` since an earlier run.
    fn assembled(&mut self, plan: &Plan, kdb: KdbId, rows: u64, total: u64, unchanged: bool);
    /// The build is done or was stopped.
    fn finish(&mut self) {}
}

impl Reporter {
    pub(crate) fn new(context: &Context) -> Self {
        let (output, cancel) = (context.output.clone(), context.cancel.clone());
        Self { output, cancel, build: Mutex::default(), step: Mutex::default() }
    }

    fn build(&self) -> MutexGuard<'_, Option<Build>> {
        self.build.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self) -> MutexGuard<'_, Option<Bar>> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_build(&self, plan: &Plan, files: &FailureFiles) {
        let output = &self.output;
        output.building();
        let view: Option<Box<dyn BuildView>> = match (output.bars, output.json) {
            (true, _) => Some(Box::new(Bars::new(output, plan))),
            (false, false) => Some(Box::new(Lines::new(output))),
            (false, true) => None,
        };
        let (count, failures) = (BuildCount::default(), FailureTexts::new(files));
        *self.build() = Some(Build { count, failures, view });
    }

    fn job(&self, plan: &Plan, event: &JobEvent) {
        let (output, mut build) = (&self.output, self.build());
        let Some(Build { count, failures, view }) = &mut *build else {
            // A job without a build only warns.
            if let JobEvent::Warning { message } = event {
                output.warn(message);
            }
            return;
        };
        count.event(plan, event);
        if output.messages {
            messages(plan, event, count, output);
        }
        let Some(view) = view else { return };
        let mut texts = failures.event(plan, event);
        if let JobEvent::Warning { message } = event {
            output.above(|| output.show_warning(message));
        }
        let print = |texts: &mut Vec<String>| {
            texts.drain(..).for_each(|text| output.above(|| output.stderr(&text)));
        };
        // A failure comes before the line about progress, kept ones after what the cache has.
        if matches!(event, JobEvent::Failed { .. }) {
            print(&mut texts);
        }
        view.event(plan, event, count);
        print(&mut texts);
    }

    fn end_build(&self) {
        let Some(Build { count, failures, view: Some(mut view) }) = self.build().take() else {
            return;
        };
        let output = &self.output;
        output.above(|| {
            failures.rest().iter().for_each(|line| output.stderr(line));
            if count.done() < count.to_do {
                let BuildCount { compiled, to_do, .. } = count;
                output.info(&format!("{compiled} of {to_do} are compiled and kept"));
            }
        });
        view.finish();
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
            Event::Info(text) => output.info(text),
            Event::Step { what, unit, done, total } => {
                let mut step = self.step();
                let bar = step.get_or_insert_with(|| Bar::new(output, what, unit, total));
                bar.at(unit, done, total);
            }
            Event::StepEnded => *self.step() = None,
            Event::ProblemFailed(target, problem, reason) => {
                let (problem, reason) = (problem.to_string(), reason.to_string());
                message!(output, "problem-failed", {
                    "target": target, "problem": problem, "reason": reason,
                });
                output.show_warning(&format!("{target}: `{problem}`: {reason}"));
            }
            Event::TuningFinding(file, finding) => tuning_findings::report(file, finding, output),
            Event::BuildStarted(plan, files) => self.start_build(plan, files),
            Event::Job(plan, event) => self.job(plan, event),
            Event::KdbProgress { plan, kdb, rows, total, unchanged } => {
                if let Some(Build { view: Some(view), .. }) = &mut *self.build() {
                    view.assembled(plan, kdb, rows, total, unchanged);
                }
            }
            Event::BuildEnded => self.end_build(),
            Event::Annotation(line) => output.command(line),
            Event::Report(summary) => output.message("report", summary),
            Event::PackageRemoved { path, replaced } => {
                message!(output, "package-removed", { "file": display(path) });
                let name = path.file_name().map(display).unwrap_or_default();
                let say = if replaced { Output::info } else { Output::show_warning };
                say(output, &format!("removed {name}, which is out of date"));
            }
        }
    }
}
