//! `tune`: makes MIOpen tune for what programs compute.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gfxpack_harvest::log::DriverCommand;
use gfxpack_harvest::{Input, script};
use gfxpack_pipeline::destination::replace_executable;
use gfxpack_runtime::{Environment, user_database_dir};
use gfxpack_tuning::{DatabaseName, DatabaseOwner, Storage};

use super::harvest::gather_commands;
use crate::args::{Tune, TuneCollect, TuneEnv, TunePlan};
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, if_any, message};

pub(crate) fn run(tune: &Tune, context: &Context) -> Result {
    let Context { output, .. } = context;
    match tune {
        Tune::Plan(args) => plan(args, context),
        Tune::Collect(args) => collect(args, output),
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
        Some(tuning) => script::settings(tuning, &dir),
        None => script::unsettings(),
    };
    for (name, value) in settings {
        message!(output, "tune-variable", { "name": name, "value": value });
        output.text(&match &value {
            Some(value) => args.shell.export(name, &args.shell.quote(value)),
            None => args.shell.unset(name),
        });
    }
    Ok(())
}

/// Writes `DIR/tune.sh`.
fn plan(args: &TunePlan, context: &Context) -> Result {
    let Context { output, .. } = context;
    let found = gather_commands(&args.sources, context)?;
    let tunable = found.iter().map(|(command, _)| command).filter(|one| one.is_tunable());
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

/// Merges users' databases into one system database for each name that MIOpen looks for.
fn collect(args: &TuneCollect, output: &Output) -> Result {
    output.building();
    if let Some(dir) = args.system.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(fail::usage(
            format!("failed to read `{}`: it is no directory", dir.display()),
            "--system names the directory of the system's databases, as \
             /opt/rocm/share/miopen/db; leave it out to have the user's only",
        ));
    }
    let found = users_databases(&args.dirs)?;
    if found.is_empty() {
        return Err(fail::usage(
            "failed to find a user's database in the directories",
            "run their tune.sh first; MIOpen names them as gfx906_60.HIP.3_3_0_.udb.txt",
        ));
    }
    std::fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    for (name, users) in found {
        let system = args.system.as_ref().map(|dir| dir.join(&name)).filter(|path| path.is_file());
        if let Some(dir) = args.system.as_ref().filter(|_| system.is_none()) {
            output.warn(&format!(
                "`{}` has no `{name}`: only the users' records are written",
                dir.display()
            ));
        }
        let inputs: Vec<PathBuf> = system.iter().chain(&users).cloned().collect();
        let file = args.out.join(&name);
        let merged = gfxpack_tuning::merge(&inputs, &file, |path, line, fault| {
            if args.keep_going {
                output.warn(&format!("`{}`: line {line}: {fault}", path.display()));
            }
            args.keep_going
        })?;
        // Without a system's database, all records are new.
        let added = if system.is_none() { merged.records } else { merged.overlaid.added };
        let (records, changed) = (merged.records, merged.overlaid.changed);
        message!(output, "tune-collected", {
            "file": display(&file), "system": system.as_ref().map(display),
            "users": users.iter().map(display).collect::<Vec<_>>(), "records": records,
            "added": added, "changed": changed,
        });
        output.info(&format!(
            "{}: {records} records, {added} added, {changed} changed by {} databases",
            file.display(),
            users.len()
        ));
    }
    Ok(())
}

/// Users' databases by the name of the system's database.
fn users_databases(dirs: &[PathBuf]) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for input in gfxpack_harvest::list(dirs)? {
        let Input::File { path, .. } = input else { continue };
        let name = DatabaseName::from_path(&path);
        let users =
            |it: &DatabaseName| it.owner == DatabaseOwner::User && it.storage == Storage::Text;
        if let Some(name) = name.filter(users) {
            found.entry(name.of_system().file_name()).or_default().push(path);
        }
    }
    Ok(found)
}
