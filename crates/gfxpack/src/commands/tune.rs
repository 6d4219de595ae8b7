//! `tune`: has MIOpen tune for what programs computed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gfxpack_compile::Cancel;
use gfxpack_harvest::log::DriverCommand;
use gfxpack_harvest::script::{self, Tuning};
use gfxpack_harvest::{Found, Input};
use gfxpack_tuning::{DatabaseName, Overlaid, Owner};
use serde_json::json;

use super::harvest::{executable, gather_commands};
use crate::args::{Tune, TuneCollect, TunePlan};
use crate::fail::{self, Result};
use crate::output::{Output, shown};

/// Runs a sub-command of `tune`.
pub(crate) fn run(tune: &Tune, cancel: &Cancel, output: &Output) -> Result {
    match tune {
        Tune::Plan(args) => plan(args, cancel, output),
        Tune::Collect(args) => collect(args, output),
    }
}

/// Writes `DIR/tune.sh`.
fn plan(args: &TunePlan, cancel: &Cancel, output: &Output) -> Result {
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
        "file": shown(&path), "mode": tuning.name(), "commands": commands.len(), "left_out": left_out,
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

/// Writes a system's database for each that users' databases are for.
fn collect(args: &TuneCollect, output: &Output) -> Result {
    if let Some(dir) = args.system.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(fail::usage(
            format!("failed to read `{}`: it is no directory", dir.display()),
            "--system names the directory of the system's databases, as \
             /opt/rocm/share/miopen/db; leave it out to have the user's only",
        ));
    }
    // By the name that MIOpen looks for in the system.
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for input in gfxpack_harvest::list(&args.dirs)? {
        let Input::File { path, .. } = input else { continue };
        let name = DatabaseName::of(&path).filter(|name| name.owner == Owner::User);
        if let Some(name) = name {
            found.entry(name.of_system().file_name()).or_default().push(path);
        }
    }
    if found.is_empty() {
        return Err(fail::usage(
            "failed to find a user's database in the directories",
            "run their tune.sh first; MIOpen names them as gfx906_60.HIP.3_3_0_.udb.txt",
        ));
    }
    std::fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    output.building();
    for (name, users) in found {
        let system = args.system.iter().map(|dir| dir.join(&name)).find(|path| path.is_file());
        if let Some(dir) = args.system.as_ref().filter(|_| system.is_none()) {
            output.warn(&format!(
                "`{}` has no `{name}`: only the users' records are written",
                dir.display()
            ));
        }
        let inputs: Vec<PathBuf> = system.iter().chain(&users).cloned().collect();
        let out = args.out.join(&name);
        let merged = gfxpack_tuning::merge(&inputs, &out, false, |path, line, fault| {
            if args.keep_going {
                output.warn(&format!("`{}`: line {line}: {fault}", path.display()));
            }
            args.keep_going
        })?;
        let sum = |part: fn(&Overlaid) -> u64| merged.overlaid.iter().map(part).sum();
        // What is laid over nothing is all new.
        let [mut added, changed]: [u64; 2] = [sum(|done| done.added), sum(|done| done.changed)];
        if system.is_none() {
            added = merged.records;
        }
        let body = json!({
            "file": shown(&out), "system": system.as_ref().map(shown),
            "users": users.iter().map(shown).collect::<Vec<_>>(), "records": merged.records,
            "added": added, "changed": changed,
        });
        output.message("tune-collected", &body);
        output.say(&format!(
            "{}: {} records, {added} added, {changed} changed by {} databases",
            out.display(),
            merged.records,
            users.len()
        ));
    }
    Ok(())
}
