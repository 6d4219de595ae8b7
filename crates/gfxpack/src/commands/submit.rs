//! `submit`: has a cluster run the shards that are missing.

use std::fs;
use std::num::NonZeroU32;

use gfxpack_pipeline::options::ShardDirs;
use gfxpack_pipeline::shards::build::read_costs;
use gfxpack_pipeline::shards::state::State;
use gfxpack_pipeline::shards::{slurm, stored::Stored};
use gfxpack_plan::shard::ranges;
use serde_json::json;

use super::status;
use crate::args::{SlurmArgs, Submit};
use crate::environment::Environment;
use crate::fail::{self, Result};
use crate::options::slurm_options;
use crate::output::Output;

/// Submits to the engine that was asked for.
pub(crate) fn run(submit: &Submit, environment: &Environment, output: &Output) -> Result {
    match submit {
        Submit::Slurm(args) => slurm(args, environment, output),
    }
}

fn slurm(args: &SlurmArgs, environment: &Environment, output: &Output) -> Result {
    let plan = Stored::open(&args.plan)?.digest();
    args.costs.as_deref().map(read_costs).transpose()?;
    fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    let shards = ShardDirs {
        dirs: vec![args.out.clone()],
        plan: Some(args.plan.clone()),
        count: NonZeroU32::new(args.shards.get()),
    };
    let state = State::read(&shards)?;
    let script = slurm::script_path(&args.out);
    let written = slurm::write_script(&slurm_options(args, environment))?;
    let verb = if written { "wrote" } else { "using" };
    output.say(&format!("{verb} {}", script.display()));
    // What is on its way must not be submitted twice: not knowing is an error.
    let known = slurm::submitted(&args.out).filter(|submitted| {
        submitted.plan == plan && submitted.shards == args.shards.get() && !args.dry_run
    });
    let active = match &known {
        Some(submitted) => slurm::active(submitted)?,
        None if args.dry_run => status::active(&shards.dirs, output),
        None => Default::default(),
    };
    let to_submit: Vec<u32> =
        state.missing().into_iter().filter(|shard| !active.contains_key(shard)).collect();
    let array = ranges(&to_submit);
    let mut job = None;
    if to_submit.is_empty() {
        output.say(&format!(
            "nothing to submit: {} of {} shards are on their way, the others are done",
            active.len(),
            state.count
        ));
    } else if args.dry_run {
        if !output.json {
            output.data(&format!("sbatch --parsable --array={array} {}", script.display()));
        }
    } else {
        let number = slurm::submit(&args.out, plan, state.count, &to_submit)?;
        job = Some(number);
        if !output.json {
            output.data(&number.to_string());
        }
        output.say(&format!("submitted shards {array} of {} as job {number}", state.count));
    }
    output.message(
        "submitted",
        &json!({
            "engine": "slurm", "job": job, "shards": to_submit, "ranges": array,
            "count": state.count, "script": script, "dry_run": args.dry_run,
        }),
    );
    Ok(())
}
