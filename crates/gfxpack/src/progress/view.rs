//! How one build is shown to people: the trait that bars and lines implement.

use std::time::Duration;

use gfxpack_compile::Event;
use gfxpack_model::KdbId;
use gfxpack_pipeline::build_status::{BuildCount, FailureTexts};
use gfxpack_plan::plan::Plan;

use crate::output::Output;

/// After so long without a line, the next event brings one: whoever watches
/// a log takes silence for a hang.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// Shows a build. It decides nothing.
pub(crate) trait BuildView: Send {
    /// Something happened to a job; `count` knows of it already.
    fn event(&mut self, plan: &Plan, event: &Event, count: &BuildCount);
    /// Rows of a kdb were written, or it lies there `unchanged` from an earlier run.
    fn assembled(&mut self, plan: &Plan, kdb: KdbId, rows: u64, total: u64, unchanged: bool);
    /// Everything is done, or was given up; what was compiled is kept.
    fn finish(&mut self, count: &BuildCount);
}

/// Prints what people read when a build is done or given up.
pub(super) fn say_at_the_end(output: &Output, failures: &FailureTexts, count: &BuildCount) {
    for line in failures.rest() {
        output.stderr(&line);
    }
    if count.done() < count.to_do {
        output.say(&format!("{} of {} are compiled and kept", count.compiled, count.to_do));
    }
}
