//! The trait of bars and lines, which show a build to people.

use std::time::Duration;

use gfxpack_compile::Event;
use gfxpack_model::KdbId;
use gfxpack_pipeline::build_status::{BuildCount, FailureTexts};
use gfxpack_plan::plan::Plan;

use crate::output::Output;

/// After this time without a line, the next event prints one, so that a log does
/// not look as if the build hangs.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// Shows a build, without any influence on it.
pub(crate) trait BuildView: Send {
    /// Something happened to a job; `count` has been updated already.
    fn event(&mut self, plan: &Plan, event: &Event, count: &BuildCount);
    /// Rows of a kdb were written, or it is `unchanged` since an earlier run.
    fn assembled(&mut self, plan: &Plan, kdb: KdbId, rows: u64, total: u64, unchanged: bool);
    /// The build is done or was stopped; what was compiled is kept.
    fn finish(&mut self, count: &BuildCount);
}

/// Prints the final text when a build is done or was stopped.
pub(super) fn say_at_the_end(output: &Output, failures: &FailureTexts, count: &BuildCount) {
    for line in failures.rest() {
        output.stderr(&line);
    }
    if count.done() < count.to_do {
        output.info(&format!("{} of {} are compiled and kept", count.compiled, count.to_do));
    }
}
