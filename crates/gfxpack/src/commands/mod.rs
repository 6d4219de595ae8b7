//! The sub-commands, each a few steps over the library crates.

mod ask;
mod build_shard;
mod cache;
mod caches;
mod completions;
mod detect;
mod dist;
mod doctor;
mod env;
mod exec_job;
mod explain;
mod export;
mod harvest;
mod install;
mod kdb;
mod lookup;
mod manual;
mod merge;
mod miopen;
mod package;
mod perfdb;
mod plan;
mod problems;
mod recipe;
mod repo;
mod rocfft_helper;
mod rocfft_lookup;
mod run;
mod status;
mod submit;
mod targets;
mod toolchains;
mod tune;
mod verify;
mod wait;
mod why;

pub(crate) use caches::Caches;
pub(crate) use perfdb::Perfdb;

use crate::args::{Args, Command};
use crate::environment::Environment;
use crate::fail::Result;
use crate::output::Output;
use crate::signals::cancel_on_signal;

/// Runs the command that was asked for.
pub(crate) fn run(args: Args, environment: &Environment, output: &Output) -> Result {
    match args.command {
        Command::Dist(dist) => {
            let cancel = cancel_on_signal(output)?;
            let packaging = Some(&dist.packaging);
            dist::run(&dist.build, packaging, dist.check, environment, &cancel, output)
        }
        Command::Build(build) => {
            dist::run(&build, None, false, environment, &cancel_on_signal(output)?, output)
        }
        Command::Ask(ask) => ask::run(&ask, environment, &cancel_on_signal(output)?, output),
        Command::Miopen(miopen) => {
            miopen::run(&miopen, environment, &cancel_on_signal(output)?, output)
        }
        Command::Plan(plan) => plan::run(&plan, environment, &cancel_on_signal(output)?, output),
        Command::Package(package) => {
            package::run(&package, environment, &cancel_on_signal(output)?, output)
        }
        Command::Recipe(recipe) => recipe::run(&recipe, output),
        Command::Merge(merge) => {
            merge::run(&merge, environment, &cancel_on_signal(output)?, output)
        }
        Command::Status(status) => status::run(&status, output),
        Command::Submit(submit) => submit::run(&submit, environment, output),
        Command::Wait(wait) => wait::run(&wait, &cancel_on_signal(output)?, output),
        Command::Export(export) => export::run(&export, environment, output),
        Command::ExecJob(job) => {
            exec_job::run(&job, environment, &cancel_on_signal(output)?, output)
        }
        Command::RocfftHelper(helper) => {
            rocfft_helper::run(&helper, environment, &cancel_on_signal(output)?, output)
        }
        Command::Run(args) => run::run(&args, environment, output),
        Command::Repo(repo) => repo::run(&repo, environment, output),
        Command::Install(install) => install::run(&install, output),
        Command::Verify(verify) => verify::run(&verify, output),
        Command::Cache(cache) => {
            cache::run(&cache, environment, &cancel_on_signal(output)?, output)
        }
        Command::Harvest(harvest) => harvest::run(&harvest, &cancel_on_signal(output)?, output),
        Command::Problems(problems) => problems::run(&problems, &cancel_on_signal(output)?, output),
        #[cfg(feature = "onnx")]
        Command::ReadModel { model } => problems::read_model(&model, output),
        Command::Tune(tune) => tune::run(&tune, &cancel_on_signal(output)?, output),
        Command::Kdb(kdb) => kdb::run(kdb, environment, output),
        Command::Caches(caches) => caches::run(&caches, output),
        Command::Perfdb(perfdb) => perfdb::run(&perfdb, output),
        Command::Targets(targets) => {
            targets::run(&targets, environment, &cancel_on_signal(output)?, output)
        }
        Command::Toolchains(toolchains) => {
            toolchains::run(&toolchains, environment, &cancel_on_signal(output)?, output)
        }
        Command::Detect(detect) => detect::run(&detect, output),
        Command::Lookup(lookup) => match &lookup.args {
            Some(args) => lookup::run(&lookup, args, output),
            None => rocfft_lookup::lookup(&lookup, environment, &cancel_on_signal(output)?, output),
        },
        Command::Explain(explain) => match &explain.args {
            Some(args) => explain::run(&explain, args, output),
            None => {
                rocfft_lookup::explain(&explain, environment, &cancel_on_signal(output)?, output)
            }
        },
        Command::Doctor(doctor) => {
            doctor::run(&doctor, environment, &cancel_on_signal(output)?, output)
        }
        Command::Env(version) => {
            env::run(&version, output);
            Ok(())
        }
        Command::Manual { dir } => manual::run(&dir),
        Command::Completions { shell } => {
            completions::run(shell, output);
            Ok(())
        }
    }
}
