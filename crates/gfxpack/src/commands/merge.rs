//! `merge`: makes the kdbs of a stored plan from its shards, or prints which
//! shards are missing.

use std::path::Path;
use std::time::Instant;

use gfxpack_pipeline::options::MergeOptions;
use gfxpack_pipeline::shards::merge::MergedKdbs;
use gfxpack_pipeline::shards::state::MissingShards;
use gfxpack_pipeline::text::brief;
use gfxpack_plan::shard::ranges;

use super::dist::report_kdbs;
use crate::context::Context;
use crate::fail::Result;
use crate::options::cache_options;
use crate::output::{Output, if_any, message};
use crate::progress::Reporter;

/// Checks the shards, and writes and verifies every kdb.
pub(crate) fn run(args: &MergeOptions, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let begun = Instant::now();
    let (Some(out), false) = (&args.out, args.missing) else { return print_missing(args, output) };
    let cache = cache_options(&args.cache, environment)?;
    let merged = MergedKdbs::merge(args, out, &cache, &Reporter::new(context))?;
    summarise(out, &merged, begun, output);
    merged.outcome(args.allow_partial)
}

fn summarise(out: &Path, merged: &MergedKdbs, begun: Instant, output: &Output) {
    report_kdbs(&merged.kdbs, output);
    let (jobs, failed) = (merged.jobs, merged.failed);
    message!(output, "merge-finished", {
        "jobs": jobs, "failed": failed, "plan": merged.plan.to_string(),
    });
    let lacking = if_any(failed, |failed| format!(", {failed} without an object"));
    let time = brief(begun.elapsed());
    output.info(&format!("{jobs} jobs merged{lacking}: {} in {time}", out.display()));
}

/// Prints which shards are to run; nothing if all are done.
fn print_missing(args: &MergeOptions, output: &Output) -> Result {
    let found = MissingShards::find(&args.dirs, &args.plan, args.shards)?;
    found.warnings.iter().for_each(|warning| output.warn(warning));
    let ranges = ranges(&found.missing);
    message!(output, "shards", {
        "plan": found.plan, "count": found.count, "missing": found.missing, "ranges": ranges,
    });
    if !ranges.is_empty() {
        output.text(&ranges);
    }
    Ok(())
}
