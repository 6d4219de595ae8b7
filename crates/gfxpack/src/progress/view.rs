//! How one build is shown: the trait that bars, lines and JSON implement.

use std::time::Duration;

use gfxpack_compile::Event;
use gfxpack_model::KdbId;
use gfxpack_plan::plan::Plan;

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
