//! The progress of one long task: a bar on a terminal, otherwise one line per
//! minute.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gfxpack_kdb::Progress;
pub(crate) use gfxpack_pipeline::progress::Unit;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::view::SILENCE;
use crate::output::{Output, size};

/// Shows the progress of a task. Any thread may update it.
pub(crate) struct Bar {
    output: Output,
    what: &'static str,
    unit: Unit,
    shown: Option<ProgressBar>,
    lines: Mutex<Lines>,
}

/// Progress as lines, for logs.
struct Lines {
    last_line: Instant,
    done: u64,
    total: u64,
}

impl Bar {
    /// A new bar; `total` is 0 if it is unknown.
    pub(crate) fn new(output: &Output, what: &'static str, unit: Unit, total: u64) -> Self {
        let shown = output.bars.then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(None, target).with_prefix(what);
            // The time left counts down even without events.
            bar.enable_steady_tick(Duration::from_secs(1));
            output.draws(Some(&bar));
            bar
        });
        let lines = Mutex::new(Lines { last_line: Instant::now(), done: 0, total });
        let bar = Self { output: output.clone(), what, unit, shown, lines };
        bar.style(total);
        bar
    }

    fn style(&self, total: u64) {
        let Some(bar) = &self.shown else { return };
        let template = match (self.unit, total) {
            (Unit::Bytes, 0) => "{prefix:>12} {spinner} {bytes}, {bytes_per_sec}",
            (Unit::Bytes, _) => "{prefix:>12} [{bar:20.green}] {bytes}/{total_bytes}, {eta} left",
            (Unit::Kernels | Unit::Problems, 0) => "{prefix:>12} {spinner} {pos} {msg}",
            (Unit::Kernels | Unit::Problems, _) => {
                "{prefix:>12} [{bar:20.green}] {pos}/{len} {msg}, {eta} left"
            }
        };
        let style = ProgressStyle::with_template(template).expect("a valid template");
        bar.set_style(style.progress_chars("=> "));
        if total > 0 {
            bar.set_length(total);
        }
    }

    /// Adds bytes that are done.
    pub(crate) fn add(&self, more: u64) {
        match &self.shown {
            Some(bar) => bar.inc(more),
            None => self.line(|lines| lines.done += more),
        }
    }

    /// Shows the progress of work on a kdb.
    pub(crate) fn progress(&self, Progress { rows, total, pages, .. }: Progress) {
        if let Some(bar) =
            self.shown.as_ref().filter(|bar| total > 0 && bar.length() != Some(total))
        {
            bar.set_message(if pages { "pages" } else { "kernels" });
        }
        self.at(rows, total);
    }

    /// Sets how much is done, and the total.
    pub(crate) fn at(&self, done: u64, total: u64) {
        let Some(bar) = &self.shown else {
            return self.line(|lines| (lines.done, lines.total) = (done, total));
        };
        if total > 0 && bar.length() != Some(total) {
            self.style(total);
        }
        bar.set_position(done);
    }

    fn line(&self, change: impl FnOnce(&mut Lines)) {
        if self.output.json || self.output.quiet {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut lines);
        if lines.last_line.elapsed() >= SILENCE {
            lines.last_line = Instant::now();
            let Lines { done, total, .. } = *lines;
            let text_of = |number| match self.unit {
                Unit::Bytes => size(number),
                Unit::Kernels | Unit::Problems => number.to_string(),
            };
            let of = if total > 0 { format!(" of {}", text_of(total)) } else { String::new() };
            self.output.say(&format!("{}: {}{of}", self.what, text_of(done)));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        // The final result is printed as text.
        if let Some(bar) = &self.shown {
            self.output.draws(None);
            bar.finish_and_clear();
        }
    }
}
