//! What a person sees while a build runs: bars on a terminal, plain lines
//! elsewhere, messages for machines.

use std::time::{Duration, Instant};

use gfxpack_compile::{Event, Failure};
use gfxpack_plan::Language;
use gfxpack_plan::plan::Plan;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::output::Output;

/// Shows a build. One event stream feeds it; it never decides anything.
pub(crate) trait Progress: Send {
    /// Something happened to a job.
    fn event(&mut self, plan: &Plan, event: &Event);
    /// Rows of a kdb were written.
    fn assembled(&mut self, plan: &Plan, kdb: usize, rows: u64, total: u64);
    /// Everything is done, or was given up.
    fn finish(&mut self);
}

/// The progress that fits the output.
pub(crate) fn of<'a>(output: &'a Output, plan: &Plan) -> Box<dyn Progress + 'a> {
    if output.bars { Box::new(Bars::new(output, plan)) } else { Box::new(Lines::new(output)) }
}

/// What a job costs next to others before anything is known of it: the
/// median milliseconds of its language.
fn cost(language: Language) -> u64 {
    match language {
        Language::Hip => 1600,
        Language::OpenclC => 170,
        Language::Assembly => 70,
    }
}

/// A failed kernel as everyone is told of it.
fn failure_text(plan: &Plan, job: usize, failure: &Failure) -> String {
    let job = &plan.jobs[job];
    let mut text = format!("failed to compile `{}`: {}", job.key, failure.kind);
    for line in failure.output.lines() {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}

/// Plain lines, or JSON messages.
struct Lines<'a> {
    output: &'a Output,
    done: usize,
    failed: usize,
    to_do: usize,
    tenths: usize,
}

impl<'a> Lines<'a> {
    fn new(output: &'a Output) -> Self {
        Self { output, done: 0, failed: 0, to_do: 0, tenths: 0 }
    }

    fn step(&mut self) {
        self.done += 1;
        let tenths = self.done * 10 / self.to_do.max(1);
        if tenths > self.tenths {
            self.tenths = tenths;
            let failed = match self.failed {
                0 => String::new(),
                failed => format!(", {failed} failed"),
            };
            self.output.say(&format!(
                "compiled {} of {} ({} %){failed}",
                self.done,
                self.to_do,
                tenths * 10
            ));
        }
    }
}

impl Progress for Lines<'_> {
    fn event(&mut self, plan: &Plan, event: &Event) {
        let output = self.output;
        let describe = |job: usize| {
            let job = &plan.jobs[job];
            json!({
                "job": job.digest, "kernel_name": job.key.kernel_name,
                "kernel_args": job.key.kernel_args, "target": job.target_id,
            })
        };
        match event {
            Event::Looked { cached } => {
                self.to_do = plan.jobs.len() - cached.len();
                let body = json!({ "jobs": plan.jobs.len(), "cached": cached.len() });
                output.message("build-started", &body);
                output.say(&format!(
                    "{} kernels to compile, {} are in the cache",
                    self.to_do,
                    cached.len()
                ));
            }
            Event::Started { job } => output.message("job-started", &describe(*job)),
            Event::Finished { job, built } => {
                let mut body = describe(*job);
                body["size"] = built.size.into();
                body["milliseconds"] = (built.duration.as_millis() as u64).into();
                output.message("job-finished", &body);
                if output.verbose {
                    output.say(&format!("compiled {}", plan.jobs[*job].key));
                }
                self.step();
            }
            Event::Failed { job, failure } => {
                self.failed += 1;
                let mut body = describe(*job);
                body["reason"] = failure.kind.name().into();
                body["message"] = failure.kind.to_string().into();
                body["output"] = failure.output.as_str().into();
                output.message("job-failed", &body);
                if !output.json {
                    output.stderr(&failure_text(plan, *job, failure));
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

    fn finish(&mut self) {}
}

/// Bars: one for everything, one per target, and the kernels in flight.
struct Bars<'a> {
    output: &'a Output,
    multi: MultiProgress,
    all: ProgressBar,
    targets: Vec<ProgressBar>,
    /// By job: the targets whose kdbs want it.
    wanted: Vec<Vec<usize>>,
    in_flight: Vec<usize>,
    /// Cost units in all and done, and since when.
    to_do: u64,
    done: u64,
    started: Instant,
    counts: (usize, usize, usize),
}

impl<'a> Bars<'a> {
    fn new(output: &'a Output, plan: &Plan) -> Self {
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
        let all = multi.add(ProgressBar::new(plan.jobs.len() as u64).with_style(style));
        all.set_prefix("all");
        Self {
            output,
            multi,
            all,
            targets,
            wanted,
            in_flight: Vec::new(),
            to_do: 0,
            done: 0,
            started: Instant::now(),
            counts: (0, 0, 0),
        }
    }

    fn ended(&mut self, plan: &Plan, job: usize) {
        self.in_flight.retain(|&other| other != job);
        self.done += cost(plan.jobs[job].language);
        self.advance(job);
    }

    fn advance(&self, job: usize) {
        self.all.inc(1);
        for &target in &self.wanted[job] {
            self.targets[target].inc(1);
        }
    }

    fn show(&self, plan: &Plan) {
        let (cached, compiled, failed) = self.counts;
        let names: Vec<&str> = self
            .in_flight
            .iter()
            .take(4)
            .map(|&job| plan.jobs[job].key.source_name().unwrap_or_default())
            .collect();
        let left = match self.estimate() {
            Some(left) if self.done < self.to_do => format!("{} left, ", brief(left)),
            _ => String::new(),
        };
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        self.all.set_message(format!(
            "{left}{cached} cached, {compiled} compiled{failed} {}",
            names.join(" ")
        ));
    }

    /// The time left, from what the work done so far cost.
    fn estimate(&self) -> Option<Duration> {
        let elapsed = self.started.elapsed();
        let rest = self.to_do.saturating_sub(self.done) as f64;
        (self.done > 0).then(|| elapsed.mul_f64(rest / self.done as f64))
    }
}

impl Progress for Bars<'_> {
    fn event(&mut self, plan: &Plan, event: &Event) {
        match event {
            Event::Looked { cached } => {
                self.started = Instant::now();
                self.counts.0 = cached.len();
                self.to_do = plan.jobs.iter().map(|job| cost(job.language)).sum::<u64>()
                    - cached.iter().map(|&job| cost(plan.jobs[job].language)).sum::<u64>();
                for &job in cached {
                    self.advance(job);
                }
            }
            Event::Started { job } => self.in_flight.push(*job),
            Event::Finished { job, .. } => {
                self.counts.1 += 1;
                self.ended(plan, *job);
            }
            Event::Failed { job, failure } => {
                self.counts.2 += 1;
                self.ended(plan, *job);
                let text = failure_text(plan, *job, failure);
                self.multi.suspend(|| self.output.stderr(&text));
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
        for bar in self.targets.iter().chain([&self.all]) {
            bar.abandon();
        }
    }
}

/// `1 h 5 min`, `3 min`, `12 s`.
fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
