//! The gfxpack command line: wires the crates together, talks to the
//! terminal, and turns what happened into an exit code.

mod args;
mod build;
mod commands;
mod environment;
mod fail;
mod inputs;
mod output;
mod packages;
mod prepare;
mod progress;
mod record;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let environment = environment::Environment::read();
    environment::init_logging(&environment, args.common.verbose);
    let output = output::Output::new(&args.common);
    match commands::run(args, &environment, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail::report(&error, &output),
    }
}
