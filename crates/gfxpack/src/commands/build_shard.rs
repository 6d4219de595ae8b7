//! `build --shard`: builds one shard of a stored plan.

use std::path::Path;
use std::time::Instant;

use gfxpack_pipeline::options::{BuildOptions, processes};
use gfxpack_pipeline::shards::build;
use gfxpack_pipeline::text::brief;
use gfxpack_plan::shard::{JobState, Shard, ShardManifest};
use serde_json::json;

use crate::context::Context;
use crate::fail::{self, Result};
use crate::options::compiler_options;
use crate::output::{Output, display};
use crate::progress::Reporter;

/// Runs a shard.
pub(super) fn run(args: &BuildOptions, shard: Shard, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
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
    let (search, cache) = compiler_options(&args.compilers, environment)?;
    let reporter = Reporter::new(context);
    let (manifest, file) = build::run(plan, shard, &cache, &search, args, &reporter)?;
    summarise(&manifest, &file, begun, output);
    build::outcome(&manifest.jobs, shard)
}

fn summarise(manifest: &ShardManifest, file: &Path, begun: Instant, output: &Output) {
    use JobState::{Cached, Failed, Infra, Ok, Refused, Timeout};
    let mut body = json!({
        "shard": manifest.shard, "plan": manifest.plan, "file": display(file), "jobs": manifest.jobs.len(),
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
    let time = brief(begun.elapsed());
    output.info(&format!(
        "shard {} is done: {counts}: {} in {time}",
        manifest.shard,
        file.display()
    ));
}
