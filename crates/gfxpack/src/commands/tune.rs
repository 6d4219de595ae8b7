//! `tune`: has MIOpen tune for what programs computed.

use gfxpack_compile::Cancel;
use gfxpack_harvest::Found;
use gfxpack_harvest::script::{self, Tuning};
use gfxpack_plan::log::DriverCommand;
use serde_json::json;

use super::harvest::{executable, gather_commands};
use crate::args::{Tune, TunePlan};
use crate::fail;
use crate::output::Output;

/// Runs a sub-command of `tune`.
pub(crate) fn run(tune: &Tune, cancel: &Cancel, output: &Output) -> anyhow::Result<()> {
    match tune {
        Tune::Plan(args) => plan(args, cancel, output),
    }
}

/// Writes `DIR/tune.sh`.
fn plan(args: &TunePlan, cancel: &Cancel, output: &Output) -> anyhow::Result<()> {
    let found = gather_commands(&args.sources, cancel, output)?;
    let wanted = |found: &&Found| args.all || found.command.is_tunable();
    let commands: Vec<DriverCommand> =
        found.iter().filter(wanted).map(|found| found.command.clone()).collect();
    let left_out = found.len() - commands.len();
    if commands.is_empty() {
        return Err(fail::usage(
            format!("failed to find a command that MIOpen tunes for among {left_out}"),
            "it tunes convolutions, what is fused with them, and batch normalization; --all takes \
             the others too",
        ));
    }
    std::fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    let tuning = Tuning::from(args.mode);
    let path = args.out.join("tune.sh");
    executable(&path, &script::tuning(&commands, tuning))?;
    let body = json!({
        "file": path, "mode": tuning.name(), "commands": commands.len(), "left_out": left_out,
    });
    output.message("tune-planned", &body);
    let left = match left_out {
        0 => String::new(),
        count => format!("; {count} others have nothing to tune"),
    };
    output.say(&format!("{} commands to tune for{left}", commands.len()));
    output.say(&format!("run {} on the GPU that the results are for", path.display()));
    Ok(())
}
