//! `exec-job`: runs one job of a stored plan, for engines that start a process
//! for each.

use std::time::Duration;

use gfxpack_pipeline::options::BuildOptions;
use gfxpack_pipeline::shards::build;
use gfxpack_pipeline::shards::stored::Stored;
use gfxpack_plan::shard::Shard;

use crate::args::ExecJob;
use crate::context::Context;
use crate::fail::Result;
use crate::options::compiler_options;
use crate::progress::Reporter;

/// Runs the job, unless its object or a kept refusal exists.
pub(crate) fn run(args: &ExecJob, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let options = BuildOptions {
        out: args.out.clone(),
        jobs: Some(1),
        timeout: Duration::from_secs(args.timeout),
        allow_read: args.allow_read.clone(),
        ..BuildOptions::default()
    };
    let (search, cache) = compiler_options(&args.compilers, environment)?;
    let stored = Stored::open(&args.plan)?;
    // It reports no build: the engine that starts the processes does.
    let reporter = Reporter::new(context);
    let (ended, note) = build::run_job(stored, args.job, &cache, &search, &options, &reporter)?;
    if let Some(note) = note {
        output.stderr(&format!(
            "failed to compile `{}`: {}\n{}",
            note.key,
            note.reason,
            note.output.trim_end()
        ));
    }
    build::outcome(&ended, Shard::new(1, 1).expect("one of one"))
}
