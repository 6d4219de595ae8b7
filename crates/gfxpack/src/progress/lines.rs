//! The progress of a build as plain lines, if no bars can be drawn.

use std::time::Instant;

use gfxpack_compile::Event;
use gfxpack_model::KdbId;
use gfxpack_pipeline::text::brief;
use gfxpack_plan::plan::Plan;

use super::bar::SILENCE;
use super::{BuildCount, BuildView};
use crate::output::{Output, counted};

pub(super) struct Lines {
    output: Output,
    tenths: usize,
    last_line: Instant,
}

impl Lines {
    pub(super) fn new(output: &Output) -> Self {
        Self { output: output.clone(), tenths: 0, last_line: Instant::now() }
    }

    fn step(&mut self, count: &BuildCount) {
        let fraction = count.fraction();
        let tenths = (fraction * 10.0) as usize;
        if tenths > self.tenths || self.last_line.elapsed() >= SILENCE {
            self.tenths = tenths;
            self.last_line = Instant::now();
            let left = count.left().filter(|left| left.as_secs() > 0);
            let left = left.map(|left| format!(", {} left", brief(left)));
            self.output.info(&format!(
                "{} of {} done{} ({} % of the work{})",
                count.done(),
                counted(count.to_do, "kernel"),
                count.failed_words(),
                (fraction * 100.0) as usize,
                left.unwrap_or_default()
            ));
        }
    }
}

impl BuildView for Lines {
    fn event(&mut self, plan: &Plan, event: &Event, count: &BuildCount) {
        match event {
            Event::FoundInCache { cached, .. } => {
                self.tenths = 0;
                self.output.info(&format!(
                    "{} to compile, {} in the cache{}",
                    counted(count.to_do, "kernel"),
                    cached.len(),
                    count.refused_words()
                ));
            }
            Event::Queued { .. } => self.last_line = Instant::now(),
            Event::HeadersPrecompiled { .. } | Event::Started { .. } | Event::Warning { .. } => {}
            Event::Finished { job, .. } => {
                if self.output.verbose {
                    self.output.info(&format!("compiled {}", plan[*job].key));
                }
                self.step(count);
            }
            Event::Failed { .. } => self.step(count),
        }
    }

    fn assembled(&mut self, plan: &Plan, kdb: KdbId, rows: u64, total: u64, unchanged: bool) {
        if rows == total {
            let (name, kernels) = (plan[kdb].file_name(), counted(total, "kernel"));
            let verb = if unchanged { "unchanged" } else { "assembled" };
            self.output.info(&format!("{verb} {name}: {kernels}"));
        }
    }
}
