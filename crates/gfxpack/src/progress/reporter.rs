//! The pipeline's events on a terminal, in a log, or as JSON messages.

use std::sync::{Mutex, PoisonError};

use gfxpack_pipeline::build_view::BuildMessages;
use gfxpack_pipeline::failure_log::FailureFiles;
use gfxpack_pipeline::progress::{Event, Progress, Unit};
use gfxpack_plan::plan::Plan;
use serde_json::json;

use super::bar::Bar;
use super::bars::Bars;
use super::lines::Lines;
use super::view::{BuildView, Messages};
use crate::output::{Output, shown, size};
use crate::tuning_findings;

/// Reports a run in the way that was asked for.
pub(crate) struct Reporter {
    output: Output,
    /// For people, for machines, or for both.
    build: Mutex<Vec<Box<dyn BuildView>>>,
    step: Mutex<Option<Bar>>,
}

impl Reporter {
    pub(crate) fn new(output: &Output) -> Self {
        Self { output: output.clone(), build: Mutex::default(), step: Mutex::default() }
    }

    fn views(&self, plan: &Plan, files: &FailureFiles) -> Vec<Box<dyn BuildView>> {
        let output = &self.output;
        let mut views: Vec<Box<dyn BuildView>> = Vec::new();
        if output.messages {
            let (output, messages) = (output.clone(), BuildMessages::default());
            views.push(Box::new(Messages { output, messages }));
        }
        if output.bars {
            views.push(Box::new(Bars::new(output, plan, files)));
        } else if !output.json {
            views.push(Box::new(Lines::new(output, files)));
        }
        views
    }

    fn with_build(&self, act: impl Fn(&mut dyn BuildView)) {
        let mut build = self.build.lock().unwrap_or_else(PoisonError::into_inner);
        build.iter_mut().for_each(|view| act(&mut **view));
    }

    fn step(&self, what: &'static str, unit: Unit, done: u64, total: u64) {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        step.get_or_insert_with(|| Bar::new(&self.output, what, unit, total)).at(done, total);
    }

    fn end_step(&self) {
        self.step.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Progress for Reporter {
    fn event(&self, event: Event<'_>) {
        let output = &self.output;
        match event {
            Event::Warning(text) => output.warn_above(text),
            Event::Note(text) => output.say_above(text),
            Event::Step { what, unit, done, total } => self.step(what, unit, done, total),
            Event::StepEnded => self.end_step(),
            Event::ProblemFailed { target, problem, reason } => {
                let (problem, reason) = (problem.to_string(), reason.to_string());
                let body = json!({ "target": target, "problem": problem, "reason": reason });
                output.message("problem-failed", &body);
                output.show_warning(&format!("{target}: `{problem}`: {reason}"));
            }
            Event::TuningFinding { file, finding } => {
                tuning_findings::report(file, finding, output);
            }
            Event::ToolchainUsed { identity, targets } => {
                output.say(&format!("using {identity} for {}", targets.join(", ")));
                output.building();
            }
            Event::BuildStarted { plan, files } => {
                output.building();
                let views = self.views(plan, files);
                *self.build.lock().unwrap_or_else(PoisonError::into_inner) = views;
            }
            Event::Job { plan, event } => self.with_build(|view| view.event(plan, event)),
            Event::KdbProgress { plan, kdb, rows, total } => {
                self.with_build(|view| view.assembled(plan, kdb, rows, total));
            }
            Event::KdbUnchanged { plan, kdb, rows } => {
                self.with_build(|view| view.unchanged(plan, kdb, rows));
            }
            Event::BuildEnded { kept } => {
                self.with_build(|view| view.finish(kept));
                self.build.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            Event::Annotation(line) => output.stderr(line),
            Event::Report(summary) => output.message("report", summary),
            Event::Package { file_name, size: bytes, new } => {
                let verb = if new { "packaged" } else { "unchanged" };
                output.say(&format!("{verb} {file_name} ({})", size(bytes)));
            }
            Event::PackageRemoved { path } => {
                output.message("package-removed", &json!({ "file": shown(path) }));
                let name = path.file_name().map(shown).unwrap_or_default();
                output.say(&format!("removed {name}, which is out of date"));
            }
            Event::Evicted { files, bytes } => {
                output.say(&format!("evicted {files} files from the cache, {}", size(bytes)));
            }
            _ => {}
        }
    }
}
