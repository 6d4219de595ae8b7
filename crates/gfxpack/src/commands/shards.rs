//! `build --shard` and `merge`: builds one shard of a stored plan, and makes the kdbs from all, or
//! prints which are missing.

use std::time::Instant;

use gfxpack_pipeline::options::{BuildOptions, MergeOptions, processes};
use gfxpack_pipeline::shards::build;
use gfxpack_pipeline::shards::merge::MergedKdbs;
use gfxpack_pipeline::shards::state::MissingShards;
use gfxpack_pipeline::text::brief;
use gfxpack_plan::shard::{JobState, Shard, ranges};
use serde_json::json;

use super::dist::report_kdbs;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, if_any, message};
use crate::progress::Reporter;

pub(super) fn build(args: &BuildOptions, shard: Shard, context: &Context) -> Result {
    use JobState::{Cached, Failed, Infra, Ok, Refused, Timeout};

    let Context { output, .. } = context;
    let begun = Instant::now();
    rayon::ThreadPoolBuilder::new().num_threads(processes(args.jobs)).build_global().ok();
    // clap does not require --plan if an option is given that conflicts with it.
    let plan = args.plan.as_ref().ok_or_else(|| {
        fail::usage(
            format!("failed to build shard {shard}: a shard is of a stored plan, and none is given"),
            "store one with `gfxpack plan … --out PLAN`, and give it as --plan PLAN in place of the \
             inputs",
        )
    })?;
    let reporter = Reporter::new(context);
    let (manifest, file) = build::run(plan, shard, args, &reporter)?;
    let mut body = json!({
        "shard": shard, "plan": manifest.plan, "file": display(&file), "jobs": manifest.jobs.len(),
    });
    let mut counts = Vec::new();
    for state in [Ok, Cached, Refused, Failed, Timeout, Infra] {
        let count = manifest.count(state);
        body[state.to_string()] = count.into();
        if count > 0 {
            counts.push(format!("{count} {state}"));
        }
    }
    output.message("shard-finished", &body);
    let counts = if counts.is_empty() { "no jobs".to_owned() } else { counts.join(", ") };
    let (file, time) = (file.display(), brief(begun.elapsed()));
    output.info(&format!("shard {shard} is done: {counts}: {file} in {time}"));
    build::outcome(&manifest.jobs, shard)
}

/// Checks the shards, and writes and verifies every kdb.
pub(super) fn merge(args: &MergeOptions, context: &Context) -> Result {
    let Context { output, .. } = context;
    let begun = Instant::now();
    let (Some(out), false) = (&args.out, args.missing) else { return print_missing(args, output) };
    let merged = MergedKdbs::merge(args, out, &Reporter::new(context))?;
    report_kdbs(&merged.kdbs, output);
    let (jobs, failed) = (merged.jobs, merged.failed);
    message!(output, "merge-finished", {
        "jobs": jobs, "failed": failed, "plan": merged.plan.to_string(),
    });
    let lacking = if_any(failed, |failed| format!(", {failed} without an object"));
    let time = brief(begun.elapsed());
    let jobs = counted(jobs, "job");
    output.info(&format!("{jobs} merged{lacking}: {} in {time}", out.display()));
    merged.outcome(args.allow_partial)
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
