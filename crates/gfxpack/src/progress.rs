//! What a person sees while a build runs: bars on a terminal, plain lines
//! elsewhere.

pub(crate) mod bar;
mod bars;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gfxpack_compile::{CompileError, Event, Failure};
use gfxpack_model::{JobId, KdbId, Language};
use gfxpack_plan::plan::Plan;
use gfxpack_toolchain::ToolchainError;

use crate::estimate::{Estimator, brief};
use crate::failures::{Groups, told_reason};
use crate::messages::Messages;
use crate::output::{Output, counted};

/// After so long without a line, the next event brings one: whoever watches
/// a log takes silence for a hang.
const SILENCE: Duration = Duration::from_secs(60);
/// So many kernels that fail like an earlier one are named as they do.
const NAMED: usize = 5;

/// Shows a build. One event stream feeds it; it never decides anything.
pub(crate) trait Progress: Send {
    /// Something happened to a job.
    fn event(&mut self, plan: &Plan, event: &Event);
    /// Rows of a kdb were written.
    fn assembled(&mut self, plan: &Plan, kdb: KdbId, rows: u64, total: u64);
    /// A kdb lies there from an earlier run as it would be made now.
    fn unchanged(&mut self, plan: &Plan, kdb: KdbId, rows: u64);
    /// Everything is done, or was given up; what was compiled is `kept` or
    /// thrown away.
    fn finish(&mut self, kept: bool);
}

/// The progress that fits the output. `report` is where more can be read
/// later.
pub(crate) fn of<'a>(
    output: &'a Output,
    plan: &Plan,
    report: Option<&Path>,
) -> Box<dyn Progress + 'a> {
    if output.json {
        Box::new(Messages::new(output))
    } else if output.bars {
        Box::new(bars::Bars::new(output, plan, report))
    } else {
        Box::new(Lines::new(output, report))
    }
}

/// Languages are estimated apart.
pub(crate) fn language_class(language: Language) -> usize {
    match language {
        Language::Hip => 0,
        Language::OpenclC => 1,
        Language::Assembly => 2,
    }
}

/// How far a build is, in jobs and in work.
struct Count {
    begun: Instant,
    estimator: Estimator,
    cached: usize,
    /// Known to be refused.
    refused: usize,
    to_do: usize,
    compiled: usize,
    failed: usize,
}

impl Count {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            estimator: Estimator::default(),
            cached: 0,
            refused: 0,
            to_do: 0,
            compiled: 0,
            failed: 0,
        }
    }

    fn event(&mut self, plan: &Plan, event: &Event) {
        let now = self.begun.elapsed();
        match event {
            Event::Looked { cached, refused } => {
                (self.cached, self.refused) = (cached.len(), refused.len());
                self.to_do = plan.jobs.len() - cached.len() - refused.len();
                (self.compiled, self.failed) = (0, 0);
            }
            Event::Queued { workers, jobs } => {
                let queue = jobs
                    .iter()
                    .map(|(job, expected)| (*job, language_class(plan[*job].language), *expected));
                self.estimator.queued(*workers, queue, now);
            }
            Event::Warning { .. } | Event::Prepared { .. } => {}
            Event::Started { job, .. } => self.estimator.started(*job, now),
            Event::Finished { job, .. } => {
                self.compiled += 1;
                self.estimator.ended(*job, now);
            }
            Event::Failed { job, .. } => {
                self.failed += 1;
                self.estimator.ended(*job, now);
            }
        }
    }

    fn done(&self) -> usize {
        self.compiled + self.failed
    }

    fn left(&self) -> Option<Duration> {
        let left = self.estimator.left(self.begun.elapsed());
        left.filter(|_| self.done() < self.to_do)
    }

    fn refused_words(&self) -> String {
        match self.refused {
            0 => String::new(),
            refused => format!(", {refused} refused before"),
        }
    }

    fn failed_words(&self) -> String {
        if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() }
    }
}

/// Tells of failures: the first of each reason in full, the next few by name,
/// and how many there were at the end.
struct FailureTexts {
    groups: Groups,
    report: Option<PathBuf>,
}

impl FailureTexts {
    fn new(report: Option<&Path>) -> Self {
        Self { groups: Groups::default(), report: report.map(Path::to_owned) }
    }

    /// What to say of one as it happens.
    fn one(&mut self, plan: &Plan, job: JobId, failure: &Failure) -> Option<String> {
        let (_, before) = self.groups.add(job, failure);
        let mut text = format!("failed to compile `{}`: {}", plan[job].key, failure.kind);
        if before == 0 {
            for line in failure.output.lines() {
                text.push_str("\n    ");
                text.push_str(line);
            }
        } else if before <= NAMED {
            text.push_str(", as above");
            if let Some(reason) = told_reason(&failure.output) {
                text.push_str(&format!(": {}", reason.trim()));
            }
        } else {
            return None;
        }
        Some(text)
    }

    /// What to say at the end, if anything is left to say.
    fn all(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut hidden = false;
        for group in self.groups.list().iter().filter(|group| group.jobs.len() > 1) {
            let count = group.jobs.len();
            let more = count.saturating_sub(NAMED + 1);
            let more = match more {
                0 => String::new(),
                more => format!(" ({more} of them not named above)"),
            };
            hidden |= !more.is_empty();
            lines.push(format!("{count} kernels failed for one reason{more}: {}", group.title()));
        }
        if hidden {
            lines.push(match &self.report {
                Some(report) => format!("every failed kernel is in {}", report.display()),
                None => "--report FILE.html and --message-format json name every one".to_owned(),
            });
        }
        lines
    }
}

/// Whether a build that ended so keeps what it compiled.
pub(crate) fn keeps<T>(ended: &anyhow::Result<T>) -> bool {
    let changed = |error: &(dyn std::error::Error + 'static)| {
        matches!(
            error.downcast_ref(),
            Some(CompileError::Toolchain(ToolchainError::Changed { .. }))
        )
    };
    !ended.as_ref().is_err_and(|error| error.chain().any(changed))
}

fn say_at_the_end(output: &Output, failures: &FailureTexts, count: &Count, kept: bool) {
    for line in failures.all() {
        output.stderr(&line);
    }
    if count.done() < count.to_do && kept {
        output.say(&format!("{} of {} are compiled and kept", count.compiled, count.to_do));
    }
}

/// Plain lines.
struct Lines<'a> {
    output: &'a Output,
    count: Count,
    failures: FailureTexts,
    tenths: usize,
    said: Instant,
}

impl<'a> Lines<'a> {
    fn new(output: &'a Output, report: Option<&Path>) -> Self {
        Self {
            output,
            count: Count::new(),
            failures: FailureTexts::new(report),
            tenths: 0,
            said: Instant::now(),
        }
    }

    fn step(&mut self) {
        let count = &self.count;
        let fraction = count.estimator.fraction();
        let tenths = (fraction * 10.0) as usize;
        if tenths > self.tenths || self.said.elapsed() >= SILENCE {
            self.tenths = tenths;
            self.said = Instant::now();
            let left = count.left().filter(|left| left.as_secs() > 0);
            let left = left.map(|left| format!(", {} left", brief(left)));
            self.output.say(&format!(
                "{} of {} kernels done{} ({} % of the work{})",
                count.done(),
                count.to_do,
                count.failed_words(),
                (fraction * 100.0) as usize,
                left.unwrap_or_default()
            ));
        }
    }
}

impl Progress for Lines<'_> {
    fn event(&mut self, plan: &Plan, event: &Event) {
        self.count.event(plan, event);
        match event {
            Event::Looked { cached, refused } => {
                self.tenths = 0;
                self.output.say(&format!(
                    "{} to compile, {} in the cache{}",
                    counted(self.count.to_do, "kernel"),
                    cached.len(),
                    self.count.refused_words()
                ));
                for (job, failure) in refused {
                    if let Some(text) = self.failures.one(plan, *job, failure) {
                        self.output.stderr(&text);
                    }
                }
            }
            Event::Queued { .. } => self.said = Instant::now(),
            Event::Prepared { .. } | Event::Started { .. } => {}
            Event::Warning { message } => self.output.warn(message),
            Event::Finished { job, .. } => {
                if self.output.verbose {
                    self.output.say(&format!("compiled {}", plan[*job].key));
                }
                self.step();
            }
            Event::Failed { job, failure, .. } => {
                if let Some(text) = self.failures.one(plan, *job, failure) {
                    self.output.stderr(&text);
                }
                self.step();
            }
        }
    }

    fn assembled(&mut self, plan: &Plan, kdb: KdbId, rows: u64, total: u64) {
        if rows == total {
            let name = plan[kdb].target.kdb_file_name();
            self.output.say(&format!("assembled {name}: {}", counted(total, "kernel")));
        }
    }

    fn unchanged(&mut self, plan: &Plan, kdb: KdbId, rows: u64) {
        let name = plan[kdb].target.kdb_file_name();
        self.output.say(&format!("unchanged {name}: {}", counted(rows, "kernel")));
    }

    fn finish(&mut self, kept: bool) {
        say_at_the_end(self.output, &self.failures, &self.count, kept);
    }
}
