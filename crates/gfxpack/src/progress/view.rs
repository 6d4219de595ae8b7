//! How one build is shown: the trait that bars, lines and JSON implement.

use std::time::Duration;

use gfxpack_compile::Event;
use gfxpack_model::KdbId;
use gfxpack_pipeline::build_view::{BuildCount, BuildMessages, FailureTexts};
use gfxpack_plan::plan::Plan;

use crate::output::Output;

/// After so long without a line, the next event brings one: whoever watches
/// a log takes silence for a hang.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// Shows a build. It decides nothing.
pub(crate) trait BuildView: Send {
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

/// Tells machines of a build.
pub(super) struct Messages {
    pub(super) output: Output,
    pub(super) messages: BuildMessages,
}

impl BuildView for Messages {
    fn event(&mut self, plan: &Plan, event: &Event) {
        let Self { output, messages } = self;
        messages.event(plan, event, &mut |kind, body| output.message(kind, &body));
    }

    fn assembled(&mut self, _plan: &Plan, _kdb: KdbId, _rows: u64, _total: u64) {}

    fn unchanged(&mut self, _plan: &Plan, _kdb: KdbId, _rows: u64) {}

    fn finish(&mut self, _kept: bool) {}
}

/// What people are told when a build is done or given up.
pub(super) fn say_at_the_end(
    output: &Output,
    failures: &FailureTexts,
    count: &BuildCount,
    kept: bool,
) {
    for line in failures.rest() {
        output.stderr(&line);
    }
    if count.done() < count.to_do && kept {
        output.say(&format!("{} of {} are compiled and kept", count.compiled, count.to_do));
    }
}
