//! `merge`: makes the kdbs of a stored plan from its shards.

use std::time::Instant;

use gfxpack_pipeline::shards::merge::{MergeShards, MergedKdbs};
use gfxpack_pipeline::text::brief;

use super::dist::report_kdbs;
use crate::args::Merge;
use crate::context::Context;
use crate::fail::Result;
use crate::options::{cache_options, kdb_form};
use crate::output::{Output, if_any, message};
use crate::progress::Reporter;

/// Checks the shards, and writes and verifies every kdb.
pub(crate) fn run(args: &Merge, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let begun = Instant::now();
    let merge = MergeShards {
        dirs: &args.dirs,
        plan: &args.plan,
        out: &args.out,
        allow_partial: args.allow_partial,
        form: kdb_form(args.form),
        cache: &cache_options(&args.cache, environment)?,
    };
    let merged = merge.run(&Reporter::new(context))?;
    summarise(args, &merged, begun, output);
    merged.outcome(args.allow_partial)
}

fn summarise(args: &Merge, merged: &MergedKdbs, begun: Instant, output: &Output) {
    report_kdbs(&merged.kdbs, output);
    let (jobs, failed) = (merged.jobs, merged.failed);
    message!(output, "merge-finished", {
        "jobs": jobs, "failed": failed, "plan": merged.plan.to_string(),
    });
    let lacking = if_any(failed, |failed| format!(", {failed} without an object"));
    let time = brief(begun.elapsed());
    output.info(&format!("{jobs} jobs merged{lacking}: {} in {time}", args.out.display()));
}
