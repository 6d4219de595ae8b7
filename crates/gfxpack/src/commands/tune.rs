//! `tune`: makes MIOpen tune for what programs compute.

use gfxpack_harvest::log::DriverCommand;
use gfxpack_harvest::script;
use gfxpack_pipeline::destination::replace_executable;
use gfxpack_pipeline::tune::{self, WrittenDatabase};
use gfxpack_runtime::{Environment, user_database_dir};

use super::harvest::gather_commands;
use crate::args::{Tune, TuneCollect, TuneEnv, TunePlan};
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, if_any, message};
use crate::progress::Reporter;

/// Runs a `tune` sub-command.
pub(crate) fn run(tune: &Tune, context: &Context) -> Result {
    let Context { output, .. } = context;
    match tune {
        Tune::Plan(args) => plan(args, context),
        Tune::Collect(args) => collect(args, context),
        Tune::Env(args) => environment(args, output),
    }
}

/// Prints shell lines that set the variables for tuning, or restore them.
fn environment(args: &TuneEnv, output: &Output) -> Result {
    let dir = match &args.db {
        Some(dir) => std::path::absolute(dir).map_err(fail::io("find", dir))?,
        None => user_database_dir(&Environment::read()).0,
    };
    let dir = display(&dir);
    let settings = match args.mode {
        Some(tuning) => gfxpack_harvest::settings(tuning, &dir),
        None => gfxpack_harvest::unsettings(),
    };
    for setting in settings {
        message!(output, "tune-variable", { "name": setting.name, "value": setting.value });
        output.text(&match &setting.value {
            Some(value) => args.shell.export(setting.name, &args.shell.quote(value)),
            None => args.shell.unset(setting.name),
        });
    }
    Ok(())
}

/// Writes `DIR/tune.sh`.
fn plan(args: &TunePlan, context: &Context) -> Result {
    let Context { output, .. } = context;
    let found = gather_commands(&args.sources, context)?;
    let tunable = found.iter().map(|found| &found.command).filter(|one| one.is_tunable());
    let commands: Vec<DriverCommand> = tunable.cloned().collect();
    let left_out = found.len() - commands.len();
    if commands.is_empty() {
        return Err(fail::usage(
            format!("failed to find a command that MIOpen tunes for among {left_out}"),
            "it tunes convolutions, what is fused with them, and batch normalization",
        ));
    }
    std::fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    let path = args.out.join("tune.sh");
    replace_executable(&path, &script::tuning(&commands, args.mode))?;
    message!(output, "tune-planned", {
        "file": display(&path), "mode": args.mode.name(), "commands": commands.len(), "left_out": left_out,
    });
    let left = if_any(left_out, |count| format!("; {count} others have nothing to tune"));
    output.info(&format!("{} to tune for{left}", counted(commands.len(), "command")));
    output.info(&format!("run {} on the GPU that the results are for", path.display()));
    Ok(())
}

/// Merges users' databases into system databases.
fn collect(args: &TuneCollect, context: &Context) -> Result {
    let Context { output, .. } = context;
    output.building();
    let reporter = Reporter::new(context);
    let system = args.system.as_deref();
    tune::collect(&args.dirs, system, &args.out, args.keep_going, &reporter, |written| {
        let WrittenDatabase { file, system, users, records, added, changed } = written;
        message!(output, "tune-collected", {
            "file": display(file), "system": system.as_ref().map(display),
            "users": users.iter().map(display).collect::<Vec<_>>(), "records": records,
            "added": added, "changed": changed,
        });
        output.info(&format!(
            "{}: {records} records, {added} added, {changed} changed by {} databases",
            file.display(),
            users.len()
        ));
    })?;
    Ok(())
}
