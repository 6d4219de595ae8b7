//! `wait`: follows submitted shards until none is queued or running.

use std::time::Duration;

use gfxpack_compile::CompileError;
use gfxpack_pipeline::error::SHARD_INCOMPLETE_HINT;
use gfxpack_pipeline::shards::slurm;
use gfxpack_pipeline::shards::state::State;
use gfxpack_plan::shard::ranges;

use super::status;
use crate::args::Wait;
use crate::context::Context;
use crate::fail::{self, Error, ErrorKind, Result, in_full};
use crate::output::counted;

/// How often in a row the cluster may fail to answer: its controller may be
/// restarting.
const FAILURES: u32 = 30;
/// How soon the command reacts to a signal.
const STEP: Duration = Duration::from_millis(200);

/// Waits, then reports the state of the shards.
pub(crate) fn run(args: &Wait, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    let submitted = args.shards.dirs.iter().find_map(|dir| slurm::submitted(dir));
    let submitted = submitted.ok_or_else(|| {
        fail::usage(
            "failed to find what was submitted",
            "give the directory that `gfxpack submit` was given with --out",
        )
    })?;
    let mut printed = (usize::MAX, usize::MAX);
    let mut failures = 0;
    loop {
        match slurm::active(&submitted) {
            Ok(active) => {
                failures = 0;
                let state = args.shards.state()?;
                let now = (state.missing().len(), active.len());
                if now != printed {
                    printed = now;
                    let done = state.count as usize - now.0;
                    let count = state.count;
                    output.info(&format!(
                        "{done} of {count} shards are done, {} on their way",
                        now.1
                    ));
                }
                if active.is_empty() {
                    status::report(&state, &active, None, output);
                    return outcome(&state);
                }
            }
            Err(error) if failures < FAILURES => {
                failures += 1;
                output.warn(&format!("Slurm can't be asked: {}", in_full(&error)));
            }
            Err(error) => return Err(error),
        }
        for _ in 0..args.poll * 1000 / STEP.as_millis() as u64 {
            if cancel.is_cancelled() {
                return Err(CompileError::Interrupted.into());
            }
            std::thread::sleep(STEP);
        }
    }
}

fn outcome(state: &State) -> Result {
    let missing = state.missing();
    if !missing.is_empty() {
        let (count, indices) = (state.count, ranges(&missing));
        return Err(Error::new(
            ErrorKind::Internal,
            format!("failed to finish {} of {count} shards: {indices}", missing.len()),
            "submit again: only what is missing runs; the logs say what happened",
        ));
    }
    match state.failed() {
        0 => Ok(()),
        failed => {
            let kernels = counted(failed, "kernel");
            let message = format!("failed to compile {kernels}; all shards are done");
            Err(Error::new(ErrorKind::ShardIncomplete, message, SHARD_INCOMPLETE_HINT))
        }
    }
}
