//! The sub-commands: thin layers over the library crates.

mod ask;
mod cache;
mod caches;
mod completions;
mod detect;
mod dist;
mod doctor;
mod harvest;
mod install;
mod kdb;
mod lookup;
mod manual;
mod miopen;
mod perfdb;
mod plan;
mod problems;
mod recipe;
mod repo;
mod rocfft_lookup;
mod run;
mod shards;
mod slim;
mod targets;
mod tune;
mod verify;

pub(crate) use caches::Caches;
pub(crate) use perfdb::Perfdb;

use crate::args::{Command, Dist};
use crate::context::Context;
use crate::fail::{Result, SUCCESS};

/// Runs the command, and returns the exit code: that of the program that `run`
/// started, or 0.
pub(crate) fn run(command: Command, context: &Context) -> Result<u8> {
    let output = &context.output;
    match command {
        Command::Dist(args) => {
            let Dist { build, packaging, check } = &*args;
            dist::run(build, Some(packaging), *check, context.cancellable()?)
        }
        Command::Build(args) => match args.shard {
            Some(shard) => shards::build(&args.build, shard, context.cancellable()?),
            None => dist::run(&args.build, None, false, context.cancellable()?),
        },
        Command::Ask(args) => ask::run(&args, context.cancellable()?),
        Command::Miopen(args) => miopen::run(&args, context.cancellable()?),
        Command::Plan(args) => plan::run(&args, context.cancellable()?),
        Command::Package(args) => dist::package(&args, context.cancellable()?),
        Command::Recipe(recipe) => recipe::run(&recipe, output),
        Command::Merge(args) => shards::merge(&args, context.cancellable()?),
        Command::Run(args) => return run::run(&args, context),
        Command::Repo(args) => repo::run(&args, context),
        Command::Install(args) => install::run(&args, output),
        Command::Slim(args) => slim::run(&args, output),
        Command::Verify(args) => verify::run(&args, output),
        Command::Cache(command) => cache::run(&command, context.cancellable()?),
        Command::Harvest(args) => harvest::run(&args, context.cancellable()?),
        Command::Problems(args) if !args.command.is_empty() => {
            return problems::record(&args, context);
        }
        Command::Problems(args) => problems::run(&args, context.cancellable()?),
        Command::Tune(tune) => tune::run(&tune, context.cancellable()?),
        Command::Kdb(command) => kdb::run(command, context),
        Command::Caches(command) => caches::run(&command, output),
        Command::Perfdb(command) => perfdb::run(&command, output),
        Command::Targets(args) => targets::run(&args, context.cancellable()?),
        Command::Detect(args) => detect::run(&args, output),
        Command::Lookup(args) => match &args.args {
            Some(kernel_args) => lookup::run(&args, kernel_args, output),
            None => rocfft_lookup::run(&args, context.cancellable()?),
        },
        Command::Doctor(args) => doctor::run(&args, context.cancellable()?),
        Command::Manual { dir } => manual::run(&dir),
        Command::Completions { shell } => completions::run(shell, output),
    }?;
    Ok(SUCCESS)
}
