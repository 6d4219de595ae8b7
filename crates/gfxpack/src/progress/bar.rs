//! One long task: a bar on a terminal, elsewhere a line a minute.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gfxpack_kdb::Progress;
pub(crate) use gfxpack_pipeline::progress::Unit;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::view::SILENCE;
use crate::output::{Output, size};

/// Shows how far a task is; any thread may move it.
pub(crate) struct Bar {
    output: Output,
    what: &'static str,
    unit: Unit,
    shown: Option<ProgressBar>,
    lines: Mutex<Lines>,
}

/// Progress as lines, for logs.
struct Lines {
    said: Instant,
    done: u64,
    total: u64,
}

impl Bar {
    /// A bar; nothing is known of how much there is to do where `total` is 0.
    pub(crate) fn new(output: &Output, what: &'static str, unit: Unit, total: u64) -> Self {
        let shown = output.bars.then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(None, target).with_prefix(what);
            // The time left runs while nothing happens.
            bar.enable_steady_tick(Duration::from_secs(1));
            output.draws(Some(&bar));
            bar
        });
        let lines = Mutex::new(Lines { said: Instant::now(), done: 0, total });
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

    /// So many more bytes are done.
    pub(crate) fn add(&self, more: u64) {
        match &self.shown {
            Some(bar) => bar.inc(more),
            None => self.line(|lines| lines.done += more),
        }
    }

    /// So much of the work on a kdb is done.
    pub(crate) fn progress(&self, Progress { rows, total, pages, .. }: Progress) {
        if let Some(bar) =
            self.shown.as_ref().filter(|bar| total > 0 && bar.length() != Some(total))
        {
            bar.set_message(if pages { "pages" } else { "kernels" });
        }
        self.at(rows, total);
    }

    /// So many of so many are done.
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
        if lines.said.elapsed() >= SILENCE {
            lines.said = Instant::now();
            let Lines { done, total, .. } = *lines;
            let told = |number| match self.unit {
                Unit::Bytes => size(number),
                Unit::Kernels | Unit::Problems => number.to_string(),
            };
            let of = if total > 0 { format!(" of {}", told(total)) } else { String::new() };
            self.output.say(&format!("{}: {}{of}", self.what, told(done)));
        }
    }

    /// Says something above the bar.
    pub(crate) fn above(&self, say: impl FnOnce()) {
        match &self.shown {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        // What was done is said in words.
        if let Some(bar) = &self.shown {
            self.output.draws(None);
            bar.finish_and_clear();
        }
    }
}
