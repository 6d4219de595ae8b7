//! The progress of a build on a terminal, as bars.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gfxpack_compile::Event;
use gfxpack_model::{JobId, KdbId};
use gfxpack_pipeline::text::brief;
use gfxpack_plan::plan::Plan;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::{BuildCount, BuildView};
use crate::output::{Output, counted, harmless};

/// Columns of a terminal that has room for long bars.
const WIDE: u16 = 120;

/// A bar for everything, one per target, and the kernels that are being compiled.
pub(super) struct Bars {
    output: Output,
    /// The position is in milliseconds of expected work.
    all: ProgressBar,
    targets: Vec<ProgressBar>,
    /// By job: the targets whose kdbs want it.
    wanted: Vec<Vec<usize>>,
    in_flight: Vec<JobId>,
    /// When the build will probably be done. The bar reads it when it is drawn.
    end: Arc<Mutex<Option<Instant>>>,
}

impl Bars {
    pub(super) fn new(output: &Output, plan: &Plan) -> Self {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let mut wanted = vec![Vec::new(); plan.jobs.len()];
        let head = head(plan);
        let style = line_style(&format!("{head} {{pos}}/{{len}} {{wide_msg}}"));
        let mut targets = Vec::new();
        for (index, kdb) in plan.kdbs.iter().enumerate() {
            for row in &kdb.rows {
                let wanted = &mut wanted[row.job.0];
                if wanted.last() != Some(&index) && !wanted.contains(&index) {
                    wanted.push(index);
                }
            }
            let jobs = wanted.iter().filter(|targets| targets.last() == Some(&index)).count();
            let bar = multi.add(ProgressBar::new(jobs as u64).with_style(style.clone()));
            bar.set_prefix(kdb.target.to_string());
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
        let style = line_style(&format!("{head} {{percent:>3}} % {{left}}{{wide_msg}}"));
        let style = style.with_key("left", left);
        let all = multi.add(ProgressBar::new(1).with_style(style));
        all.set_prefix("all");
        output.draws(Some(&all));
        Self { output: output.clone(), all, targets, wanted, in_flight: Vec::new(), end }
    }

    fn advance(&self, job: JobId) {
        for &target in &self.wanted[job.0] {
            self.targets[target].inc(1);
        }
    }

    fn show(&self, plan: &Plan, count: &BuildCount) {
        let names: Vec<_> = self
            .in_flight
            .iter()
            .take(4)
            .map(|&job| harmless(plan[job].key.source_name().unwrap_or_default()))
            .collect();
        *self.end.lock().expect("no panic inside") = count.left().map(|left| Instant::now() + left);
        let BuildCount { cached, compiled, to_do, .. } = *count;
        let (refused, failed) = (count.refused_words(), count.failed_words());
        self.all.set_message(format!(
            "{cached} cached{refused}, {compiled} of {to_do} compiled{failed} {}",
            names.join(" ")
        ));
        if to_do > 0 {
            // Finer than the width of any bar.
            self.all.set_length(10_000);
            self.all.set_position((count.fraction() * 10_000.0) as u64);
        }
    }
}

/// The template for the beginning of every line. What follows is cut at the
/// terminal's edge: a line that wraps could not be redrawn.
fn head(plan: &Plan) -> String {
    let (_, columns) = console::Term::stderr().size();
    let bar = if columns < WIDE { 10 } else { 30 };
    let names = plan.kdbs.iter().map(|kdb| kdb.target.to_string().len());
    let width = names.max().unwrap_or_default().max("all".len());
    format!("{{prefix:>{width}}} [{{bar:{bar}.green}}]")
}

fn line_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template").progress_chars("=> ")
}

impl BuildView for Bars {
    fn event(&mut self, plan: &Plan, event: &Event, count: &BuildCount) {
        match event {
            Event::FoundInCache { cached, refused } => {
                self.in_flight.clear();
                self.targets.iter().for_each(|bar| bar.set_position(0));
                let cached = cached.iter().map(|(job, _)| job);
                for job in cached.chain(refused.iter().map(|(job, _)| job)) {
                    self.advance(*job);
                }
                if count.to_do == 0 {
                    self.all.set_position(1);
                }
            }
            // The time left counts down even without events.
            Event::Queued { .. } => self.all.enable_steady_tick(Duration::from_secs(1)),
            Event::HeadersPrecompiled { .. } | Event::Warning { .. } => {}
            Event::Started { job, .. } => self.in_flight.push(*job),
            Event::Finished { job, .. } | Event::Failed { job, .. } => {
                self.in_flight.retain(|other| other != job);
                self.advance(*job);
            }
        }
        self.show(plan, count);
    }

    fn assembled(&mut self, _: &Plan, kdb: KdbId, rows: u64, total: u64, unchanged: bool) {
        self.targets[kdb.0].set_message(if rows != total {
            format!("assembling kdb {rows}/{total}")
        } else {
            let verb = if unchanged { "unchanged" } else { "done" };
            format!("kdb {verb}: {}", counted(total, "kernel"))
        });
    }

    fn finish(&mut self) {
        self.all.disable_steady_tick();
        self.output.draws(None);
        // The bars stay.
        self.targets.iter().chain([&self.all]).for_each(ProgressBar::abandon);
    }
}
