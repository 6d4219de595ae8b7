//! `build --shard`: runs one shard of a stored plan and writes its manifest.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use gfxpack_compile::{Cancel, ExecutorOptions, KnownCosts, write_manifest};
use gfxpack_model::Digest;
use gfxpack_plan::shard::{self, Ended, JobState, Shard, ShardManifest};
use gfxpack_plan::stored::Jobs;
use serde_json::json;

use super::{Outbox, Run, Stored};
use crate::args::Build;
use crate::build;
use crate::environment::Environment;
use crate::fail::{self, Outcome};
use crate::output::{Output, shown};
use crate::prepare::{self, Purpose};
use crate::progress;
use crate::remote::Beyond;
use crate::report::{self, Facts};

/// Reads the costs that jobs are parted by.
pub(crate) fn read_costs(path: &Path) -> anyhow::Result<KnownCosts> {
    let bytes = fs::read(path).map_err(|error| {
        fail::usage(format!("failed to read `{}`: {error}", path.display()), "check the path")
    })?;
    let costs = KnownCosts::read(&bytes);
    if costs.count() == 0 {
        return Err(fail::usage(
            format!("failed to find a kernel's cost in `{}`", path.display()),
            "give what `gfxpack build --message-format json` printed, or a cache's v2/costs.jsonl",
        ));
    }
    Ok(costs)
}

/// The jobs of a shard by their costs.
fn balanced(stored: &Stored, costs: &KnownCosts, shard: Shard) -> anyhow::Result<HashSet<Digest>> {
    let plan = stored.load(&Jobs::All)?;
    let times = costs.of_plan(&plan, |source| stored.closure_size(source));
    let jobs: Vec<(Digest, u64)> = plan.jobs.iter().map(|job| job.digest).zip(times).collect();
    let shards = shard::by_cost(&jobs, shard.count());
    let own = jobs.iter().zip(shards).filter(|(_, of)| *of == shard.index());
    Ok(own.map(|((job, _), _)| *job).collect())
}

/// Runs a shard.
pub(crate) fn run(
    args: &Build,
    shard: Shard,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    // clap asks for the plan only where nothing is given that excludes it.
    let path = args.stored.plan.as_deref().ok_or_else(|| {
        fail::usage(
            format!("failed to build shard {shard}: a shard is of a stored plan, and none is given"),
            "store one with `gfxpack plan … --out PLAN`, and give it as --plan PLAN in place of the \
             inputs",
        )
    })?;
    let stored = Stored::open(path)?;
    let costs = args.stored.costs.as_deref().map(read_costs).transpose()?;
    let own = costs.as_ref().map(|costs| balanced(&stored, costs, shard)).transpose()?;
    let chosen = |job: Digest| match &own {
        Some(own) => own.contains(&job),
        None => shard::by_hash(job, shard.count()) == shard.index(),
    };
    args.report.as_deref().map_or(Ok(()), report::check)?;
    let digest = stored.digest();
    let cache = prepare::open_cache(&args.cache, environment, Purpose::Build)?;
    let search = prepare::search(&args.toolchain, environment);
    let prepared = stored.prepare(&Jobs::Only(&chosen), cache, &search, cancel)?;
    prepared.warnings.iter().for_each(|warning| output.warn(warning));
    let outbox = Outbox::open(&args.out)?;
    output.building();
    let mut facts = Facts::new();
    let mut progress = progress::of(output, &prepared.plan, args.report.as_deref());
    let beyond = Beyond::of(args)?;
    let runner = Run {
        prepared: &prepared,
        outbox: &outbox,
        options: ExecutorOptions {
            jobs: build::jobs(args),
            time_limit: Duration::from_secs(args.timeout),
            cache_dir: prepared.cache.scratch.clone(),
            shortcuts: args.shortcuts(),
            remote: beyond.workers,
            shared: beyond.cache,
            retry_refused: args.retry_refused,
            admitted: args.allow_read.clone(),
        },
        cancel,
        output,
    };
    let ended = runner.run(progress.as_mut(), &mut facts);
    progress.finish(progress::keeps(&ended));
    drop(progress);
    let told =
        report::tell(&facts, &prepared, args.report.as_deref(), ended.as_ref().err(), output);
    let manifest = ShardManifest {
        plan: digest,
        shard,
        costs: costs.as_ref().map(KnownCosts::digest),
        jobs: ended?,
    };
    let file = write_manifest(&manifest, outbox.dir())?;
    told?;
    prepared.cache.shrink(output);
    summarise(&manifest, &file, output);
    outcome(&manifest.jobs, shard)
}

fn summarise(manifest: &ShardManifest, file: &Path, output: &Output) {
    let states =
        [JobState::Ok, JobState::Cached, JobState::Refused, JobState::Timeout, JobState::Infra];
    let mut body = json!({
        "shard": manifest.shard, "plan": manifest.plan, "file": shown(file), "jobs": manifest.jobs.len(),
    });
    let mut words = Vec::new();
    for state in states {
        let count = manifest.count(state);
        body[state.to_string()] = count.into();
        if count > 0 {
            words.push(format!("{count} {state}"));
        }
    }
    output.message("shard-finished", &body);
    let words = if words.is_empty() { "no jobs".to_owned() } else { words.join(", ") };
    output.say(&format!("shard {} is done: {words}: {}", manifest.shard, file.display()));
}

/// How a shard whose jobs ended so ends itself.
pub(crate) fn outcome(jobs: &[Ended], shard: Shard) -> anyhow::Result<()> {
    let count = |wanted: fn(JobState) -> bool| jobs.iter().filter(|job| wanted(job.state)).count();
    let lost = count(JobState::is_to_retry);
    if lost > 0 {
        return Err(Outcome::ShardLost { shard, lost }.into());
    }
    let failed = count(|state| !state.is_made());
    if failed > 0 {
        return Err(Outcome::ShardRefused { shard, failed, total: jobs.len() }.into());
    }
    Ok(())
}
