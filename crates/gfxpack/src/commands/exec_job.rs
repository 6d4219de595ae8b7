//! `exec-job`: one job of a stored plan, for engines that start a process for
//! each.

use std::time::Duration;

use gfxpack_compile::{Cancel, ExecutorOptions, Shortcuts};
use gfxpack_model::KdbId;
use gfxpack_plan::plan::Plan;
use gfxpack_plan::shard::Shard;
use gfxpack_plan::stored::Jobs;

use crate::args::ExecJob;
use crate::environment::Environment;
use crate::output::Output;
use crate::prepare::{self, Purpose};
use crate::progress::Progress;
use crate::report::Facts;
use crate::shards::{Outbox, Run, Stored, build, say_refused};

/// Runs the job, unless its object or the compiler's refusal is there.
pub(crate) fn run(
    args: &ExecJob,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    let cache = prepare::open_cache(&args.cache, environment, Purpose::Build)?;
    let search = prepare::search(&args.toolchain, environment);
    let stored = Stored::open(&args.plan)?;
    let prepared = stored.prepare(&Jobs::One(args.job), cache, &search, cancel)?;
    let outbox = Outbox::open(&args.out)?;
    let run = Run {
        prepared: &prepared,
        outbox: &outbox,
        options: ExecutorOptions {
            jobs: 1,
            time_limit: Duration::from_secs(args.timeout),
            cache_dir: prepared.cache.scratch.clone(),
            shortcuts: Shortcuts::default(),
            remote: None,
            shared: None,
            retry_refused: false,
            admitted: args.allow_read.clone(),
        },
        cancel,
        output,
    };
    let ended = run.run(&mut Silent, &mut Facts::new())?;
    say_refused(&outbox, args.job, output);
    build::outcome(&ended, Shard::new(1, 1).expect("one of one"))
}

/// Whoever starts a process for each job shows progress itself.
struct Silent;

impl Progress for Silent {
    fn event(&mut self, _: &Plan, _: &gfxpack_compile::Event) {}
    fn assembled(&mut self, _: &Plan, _: KdbId, _: u64, _: u64) {}
    fn unchanged(&mut self, _: &Plan, _: KdbId, _: u64) {}
    fn finish(&mut self, _kept: bool) {}
}
