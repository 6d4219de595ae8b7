//! The progress of one long step: a bar on a terminal, otherwise one line per
//! minute.

use std::time::{Duration, Instant};

use gfxpack_pipeline::progress::Unit;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{Output, size};

/// After this time without a line, the next event prints one, so that a log does
/// not look as if the work hangs.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

pub(super) struct Bar {
    output: Output,
    what: &'static str,
    shown: Option<ProgressBar>,
    /// When progress was last written as a line, for logs.
    last_line: Instant,
}

impl Bar {
    /// A new bar; `total` is 0 if it is unknown.
    pub(super) fn new(output: &Output, what: &'static str, unit: Unit, total: u64) -> Self {
        let shown = output.bars.then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(None, target).with_prefix(what);
            // The time left counts down even without events.
            bar.enable_steady_tick(Duration::from_secs(1));
            output.draws(Some(&bar));
            bar
        });
        let bar = Self { output: output.clone(), what, shown, last_line: Instant::now() };
        bar.style(unit, total);
        bar
    }

    fn style(&self, unit: Unit, total: u64) {
        let Some(bar) = &self.shown else { return };
        let template = match (unit, total) {
            (Unit::Bytes, 0) => "{prefix:>12} {spinner} {bytes}, {bytes_per_sec}",
            (Unit::Bytes, _) => "{prefix:>12} [{bar:20.green}] {bytes}/{total_bytes}, {eta} left",
            (_, 0) => "{prefix:>12} {spinner} {pos} {msg}",
            (_, _) => "{prefix:>12} [{bar:20.green}] {pos}/{len} {msg}, {eta} left",
        };
        bar.set_message(match unit {
            Unit::Bytes => "",
            Unit::Kernels => "kernels",
            Unit::Problems => "problems",
        });
        let style = ProgressStyle::with_template(template).expect("a valid template");
        bar.set_style(style.progress_chars("=> "));
        if total > 0 {
            bar.set_length(total);
        }
    }

    /// Sets how much is done, and the total.
    pub(super) fn at(&mut self, unit: Unit, done: u64, total: u64) {
        let Some(bar) = &self.shown else { return self.line(unit, done, total) };
        if total > 0 && bar.length() != Some(total) {
            self.style(unit, total);
        }
        bar.set_position(done);
    }

    fn line(&mut self, unit: Unit, done: u64, total: u64) {
        if self.output.json || self.output.quiet {
            return;
        }
        if self.last_line.elapsed() >= SILENCE {
            self.last_line = Instant::now();
            let text_of = |number: u64| match unit {
                Unit::Bytes => size(number),
                _ => number.to_string(),
            };
            let of = if total > 0 { format!(" of {}", text_of(total)) } else { String::new() };
            self.output.info(&format!("{}: {}{of}", self.what, text_of(done)));
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
