//! The gfxpack command line: wires the crates together, talks to the
//! terminal, and turns what happened into an exit code.

mod args;
mod command_line;
mod commands;
mod environment;
mod examples;
mod fail;
mod options;
mod output;
mod overview;
mod prepared;
mod progress;
mod quantity;
mod signals;
mod tuning_findings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches, ValueEnum};

/// Reads the command line. clap's messages have colours as `--color` says.
fn parse() -> Result<args::Args, clap::Error> {
    let choice = command_line::value_of("--color");
    let choice = choice.and_then(|word| ColorChoice::from_str(&word, false).ok());
    let command = overview::with_groups(examples::with_examples(args::Args::command()));
    let mut command = command.color(choice.unwrap_or_default());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    args::Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => return fail::report_usage(&error),
    };
    let environment = environment::Environment::read();
    environment::init_logging(&environment, args.common.verbose);
    if environment.no_landlock {
        gfxpack_compile::switch_off_landlock();
    }
    let colors = environment.colors(args.common.color);
    let output = output::Output::new(&args.common, colors);
    let output = match output.with_file(args.common.json.as_deref()) {
        Ok(output) => output,
        Err(error) => {
            return fail::report(&error.into(), &output::Output::new(&args.common, colors));
        }
    };
    // A panic is a defect; Rust's own exit code for it means something else here.
    let run = AssertUnwindSafe(|| commands::run(args, &environment, &output));
    let result = catch_unwind(run).unwrap_or(Err(gfxpack_pipeline::error::Error::Defect.into()));
    let finished = output.finish().map_err(fail::io("write", Path::new("stdout")));
    let finished = finished.and(output.finish_file().map_err(Into::into));
    match result.and(finished) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail::report(&error, &output),
    }
}
