//! `status`: shows which shards are done, and which to run again.

use std::collections::BTreeMap;

use gfxpack_pipeline::shards::state::State;
use gfxpack_pipeline::shards::submission::active_in;
use gfxpack_plan::shard::{Shard, ranges};

use crate::args::{Missing, Status};
use crate::fail::Result;
use crate::output::{Output, if_any, message};

/// Prints the shards, or only the missing ones.
pub(crate) fn run(args: &Status, output: &Output) -> Result {
    let state = args.shards.state()?;
    for none in args.shards.dirs.iter().filter(|dir| !dir.is_dir()) {
        // The directory does not exist yet, or its name is wrong.
        output.warn(&format!("there is no directory `{}`", none.display()));
    }
    let active = active_in(&args.shards.dirs, |text| output.warn(&text));
    if args.missing.is_some() && !output.json {
        state.strange.iter().for_each(|strange| output.show_warning(strange));
    }
    report(&state, &active, args.missing, output);
    Ok(())
}

/// Reports every shard.
pub(crate) fn report(
    state: &State,
    active: &BTreeMap<u32, String>,
    form: Option<Missing>,
    output: &Output,
) {
    let missing = state.missing();
    for (shard, text) in state.lines(active) {
        let to_run = missing.contains(&shard.index());
        message!(output, "shard", { "shard": shard, "state": text, "to_run": to_run });
    }
    message!(output, "shards", {
        "plan": state.plan, "count": state.count, "missing": missing,
        "ranges": ranges(&missing), "refused": state.failed(), "strange": state.strange,
    });
    if output.json {
        return;
    }
    match form {
        Some(Missing::List) => {
            for index in missing {
                let shard = Shard::new(index, state.count).expect("counted from 1");
                output.text(&shard.to_string());
            }
        }
        Some(Missing::Ranges) if missing.is_empty() => {}
        Some(Missing::Ranges) => output.text(&ranges(&missing)),
        None => {
            for (shard, text) in state.lines(active) {
                output.text(&format!("{:<10}{text}", shard.to_string()));
            }
            state.strange.iter().for_each(|strange| output.warn(strange));
            let done = state.count as usize - missing.len();
            let again = if_any(missing.len(), |_| format!("; to run: {}", ranges(&missing)));
            output.text(&format!("{done} of {} shards are done{again}", state.count));
        }
    }
}
