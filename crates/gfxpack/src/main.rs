//! The gfxpack command line: wires the crates together, and turns the result into
//! an exit code.

mod args;
mod command_line;
mod commands;
mod context;
mod environment;
mod examples;
mod fail;
mod options;
mod output;
mod overview;
mod progress;
mod quantity;
mod report_inputs;
mod tuning_findings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches, ValueEnum};
use gfxpack_compile::Cancel;
use gfxpack_pipeline::error::defect;
use gfxpack_pipeline::exit_code::SUCCESS;

/// Parses the command line. `--color` also applies to clap's messages.
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
    let plain = || output::Output::new(&args.common, colors);
    let output = match plain().with_file(args.common.json.as_deref()) {
        Ok(output) => output,
        Err(error) => return fail::report(&error, &plain()),
    };
    let context = context::Context { environment, output, cancel: Cancel::default() };
    // A panic is a defect. Rust's own exit code for panics has another meaning
    // here.
    let run = AssertUnwindSafe(|| commands::run(args.command, &context));
    let result = catch_unwind(run).unwrap_or_else(|_| Err(defect()));
    match (result, context.output.finish()) {
        // The program that `run` started has failed.
        (Ok(code @ 1..), _) => ExitCode::from(code),
        (Ok(SUCCESS), Ok(())) => ExitCode::SUCCESS,
        (Err(error), _) | (_, Err(error)) => fail::report(&error, &context.output),
    }
}
