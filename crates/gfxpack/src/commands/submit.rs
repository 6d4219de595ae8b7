//! `submit`: submits the missing shards to a cluster.

use gfxpack_pipeline::shards::submission::{RemainingShards, Submission};
use gfxpack_plan::shard::ranges;

use crate::args::{SlurmArgs, Submit};
use crate::context::Context;
use crate::fail::Result;
use crate::options::slurm_options;
use crate::output::message;

/// Runs a `submit` sub-command.
pub(crate) fn run(submit: &Submit, context: &Context) -> Result {
    match submit {
        Submit::Slurm(args) => slurm(args, context),
    }
}

fn slurm(args: &SlurmArgs, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let submission = Submission::prepare(&slurm_options(args, environment))?;
    let script = &submission.script;
    let verb = if submission.is_script_new { "wrote" } else { "using" };
    output.info(&format!("{verb} {}", script.display()));
    let RemainingShards { to_submit, on_their_way } =
        submission.left(args.dry_run, |text| output.warn(&text))?;
    let (array, count) = (ranges(&to_submit), submission.state.count);
    let mut job = None;
    if to_submit.is_empty() {
        output.info(&format!(
            "nothing to submit: {on_their_way} of {count} shards are on their way, the others are done"
        ));
    } else if args.dry_run {
        output.text(&format!("sbatch --parsable --array={array} {}", script.display()));
    } else {
        let number = submission.submit(&to_submit)?;
        job = Some(number);
        output.text(&number.to_string());
        output.info(&format!("submitted shards {array} of {count} as job {number}"));
    }
    message!(output, "submitted", {
        "engine": "slurm", "job": job, "shards": to_submit, "ranges": array,
        "count": count, "script": script, "dry_run": args.dry_run,
    });
    Ok(())
}
