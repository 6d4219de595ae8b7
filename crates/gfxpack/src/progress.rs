//! What a person sees while a build runs: bars on a terminal, plain lines
//! elsewhere.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gfxpack_compile::{Event, Failure};
use gfxpack_plan::Language;
use gfxpack_plan::plan::Plan;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::estimate::{Estimator, brief};
use crate::failures::{Groups, told_reason};
use crate::messages::Messages;
use crate::output::Output;

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
    fn assembled(&mut self, plan: &Plan, kdb: usize, rows: u64, total: u64);
    /// Everything is done, or was given up.
    fn finish(&mut self);
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
        Box::new(Bars::new(output, plan, report))
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
            to_do: 0,
            compiled: 0,
            failed: 0,
        }
    }

    fn event(&mut self, plan: &Plan, event: &Event) {
        let now = self.begun.elapsed();
        match event {
            Event::Looked { cached } => {
                self.cached = cached.len();
                self.to_do = plan.jobs.len() - cached.len();
                (self.compiled, self.failed) = (0, 0);
            }
            Event::Queued { workers, jobs } => {
                let queue = jobs.iter().map(|(job, expected)| {
                    (*job, language_class(plan.jobs[*job].language), *expected)
                });
                self.estimator.queued(*workers, queue, now);
            }
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
    fn one(&mut self, plan: &Plan, job: usize, failure: &Failure) -> Option<String> {
        let (_, before) = self.groups.add(job, failure);
        let mut text = format!("failed to compile `{}`: {}", plan.jobs[job].key, failure.kind);
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

fn say_at_the_end(output: &Output, failures: &FailureTexts, count: &Count) {
    for line in failures.all() {
        output.stderr(&line);
    }
    if count.done() < count.to_do {
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
            Event::Looked { cached } => {
                self.tenths = 0;
                self.output.say(&format!(
                    "{} kernels to compile, {} are in the cache",
                    self.count.to_do,
                    cached.len()
                ));
            }
            Event::Queued { .. } => self.said = Instant::now(),
            Event::Started { .. } => {}
            Event::Finished { job, .. } => {
                if self.output.verbose {
                    self.output.say(&format!("compiled {}", plan.jobs[*job].key));
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

    fn assembled(&mut self, plan: &Plan, kdb: usize, rows: u64, total: u64) {
        if rows == total {
            let name = plan.kdbs[kdb].target.kdb_file_name();
            self.output.say(&format!("assembled {name}: {total} kernels"));
        }
    }

    fn finish(&mut self) {
        say_at_the_end(self.output, &self.failures, &self.count);
    }
}

/// Bars: one for everything, one per target, and the kernels in flight.
struct Bars<'a> {
    output: &'a Output,
    multi: MultiProgress,
    /// Counts milliseconds of expected work.
    all: ProgressBar,
    targets: Vec<ProgressBar>,
    /// By job: the targets whose kdbs want it.
    wanted: Vec<Vec<usize>>,
    in_flight: Vec<usize>,
    count: Count,
    failures: FailureTexts,
    /// When the build will probably be done; the bar reads it as it is drawn.
    end: Arc<Mutex<Option<Instant>>>,
}

impl<'a> Bars<'a> {
    fn new(output: &'a Output, plan: &Plan, report: Option<&Path>) -> Self {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let mut wanted = vec![Vec::new(); plan.jobs.len()];
        let style = ProgressStyle::with_template("{prefix:>20} [{bar:30}] {pos}/{len} {msg}")
            .expect("a valid template")
            .progress_chars("=> ");
        let width = 12;
        let mut targets = Vec::new();
        for (index, kdb) in plan.kdbs.iter().enumerate() {
            for row in &kdb.rows {
                if wanted[row.job].last() != Some(&index) && !wanted[row.job].contains(&index) {
                    wanted[row.job].push(index);
                }
            }
            let jobs = wanted.iter().filter(|targets| targets.last() == Some(&index)).count();
            let bar = multi.add(ProgressBar::new(jobs as u64).with_style(style.clone()));
            bar.set_prefix(format!("{:width$}", kdb.target.to_string()));
            targets.push(bar);
        }
        let end: Arc<Mutex<Option<Instant>>> = Arc::default();
        let known = Arc::clone(&end);
        let left = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            if let Some(end) = *known.lock().expect("no panic inside") {
                let left = end.saturating_duration_since(Instant::now());
                write!(text, "{} left, ", brief(left.max(Duration::from_secs(1)))).ok();
            }
        };
        let style =
            ProgressStyle::with_template("{prefix:>20} [{bar:30}] {percent:>3} % {left}{msg}")
                .expect("a valid template")
                .with_key("left", left)
                .progress_chars("=> ");
        let all = multi.add(ProgressBar::new(1).with_style(style));
        all.set_prefix("all");
        Self {
            output,
            multi,
            all,
            targets,
            wanted,
            in_flight: Vec::new(),
            count: Count::new(),
            failures: FailureTexts::new(report),
            end,
        }
    }

    fn advance(&self, job: usize) {
        for &target in &self.wanted[job] {
            self.targets[target].inc(1);
        }
    }

    fn show(&self, plan: &Plan) {
        let names: Vec<&str> = self
            .in_flight
            .iter()
            .take(4)
            .map(|&job| plan.jobs[job].key.source_name().unwrap_or_default())
            .collect();
        *self.end.lock().expect("no panic inside") =
            self.count.left().map(|left| Instant::now() + left);
        let Count { cached, compiled, to_do, .. } = self.count;
        let failed = self.count.failed_words();
        self.all.set_message(format!(
            "{cached} cached, {compiled} of {to_do} compiled{failed} {}",
            names.join(" ")
        ));
        if to_do > 0 {
            // In parts that no bar shows.
            self.all.set_length(10_000);
            self.all.set_position((self.count.estimator.fraction() * 10_000.0) as u64);
        }
    }

    fn ended(&mut self, job: usize) {
        self.in_flight.retain(|&other| other != job);
        self.advance(job);
    }
}

impl Progress for Bars<'_> {
    fn event(&mut self, plan: &Plan, event: &Event) {
        self.count.event(plan, event);
        match event {
            Event::Looked { cached } => {
                self.in_flight.clear();
                self.targets.iter().for_each(|bar| bar.set_position(0));
                for (job, _) in cached {
                    self.advance(*job);
                }
                if self.count.to_do == 0 {
                    self.all.set_position(1);
                }
            }
            // The time left runs while nothing happens.
            Event::Queued { .. } => self.all.enable_steady_tick(Duration::from_secs(1)),
            Event::Started { job, .. } => self.in_flight.push(*job),
            Event::Finished { job, .. } => self.ended(*job),
            Event::Failed { job, failure, .. } => {
                self.ended(*job);
                if let Some(text) = self.failures.one(plan, *job, failure) {
                    self.multi.suspend(|| self.output.stderr(&text));
                }
            }
        }
        self.show(plan);
    }

    fn assembled(&mut self, _plan: &Plan, kdb: usize, rows: u64, total: u64) {
        let bar = &self.targets[kdb];
        bar.set_message(if rows == total {
            format!("kdb done: {total} kernels")
        } else {
            format!("assembling kdb {rows}/{total}")
        });
    }

    fn finish(&mut self) {
        self.all.disable_steady_tick();
        // Above the bars, which stay as they are.
        self.multi.suspend(|| say_at_the_end(self.output, &self.failures, &self.count));
        for bar in self.targets.iter().chain([&self.all]) {
            bar.abandon();
        }
    }
}
