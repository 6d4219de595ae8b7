//! The gfxpack command line: wires the crates together, and turns the result into
//! an exit code.

mod args;
mod checked_files;
mod commands;
mod context;
mod environment;
mod examples;
mod fail;
mod output;
mod overview;
mod progress;
mod report_inputs;
mod tuning_findings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches, ValueEnum};
use gfxpack_compile::Cancel;

use crate::fail::{Error, SUCCESS};

/// Parses the command line. `--color` also applies to clap's messages.
fn parse() -> Result<args::Args, clap::Error> {
    let choice = fail::value_of("--color");
    let choice = choice.and_then(|word| ColorChoice::from_str(&word, false).ok());
    let command = overview::with_groups(examples::with_examples(args::Args::command(), ""));
    let mut command = command.color(choice.unwrap_or_default());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    if let Some(file) = written_twice(&matches) {
        let message = format!(
            "two options would write `{}`\nhint: give each a file of its own",
            file.display()
        );
        return Err(command.error(clap::error::ErrorKind::ArgumentConflict, message));
    }
    args::Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// A file that two options of the command line would write.
fn written_twice(matches: &ArgMatches) -> Option<&PathBuf> {
    let mut leaf = matches;
    while let Some((_, below)) = leaf.subcommand() {
        leaf = below;
    }
    let given = |id| leaf.try_get_many::<PathBuf>(id).ok().flatten();
    let files: Vec<_> = WRITTEN.into_iter().filter_map(given).flatten().collect();
    // `./r` is `r`.
    let whole = |file: &&PathBuf| std::path::absolute(file).unwrap_or_else(|_| (*file).clone());
    let is_again = |at: usize| files[..at].iter().any(|one| whole(one) == whole(&files[at]));
    (0..files.len()).find(|at| is_again(*at)).map(|at| files[at])
}

/// The options that write a file each.
const WRITTEN: [&str; 2] = ["json", "report"];

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => return fail::report_usage(&error),
    };
    let environment = environment::Environment::read();
    let colors = environment.colors(args.common.color, &std::io::stderr());
    environment::init_logging(&environment, args.common.verbose);
    if environment.no_landlock {
        gfxpack_compile::switch_off_landlock();
    }
    let data_colors = environment.colors(args.common.color, &std::io::stdout());
    let plain = || output::Output::new(&args.common, colors, data_colors);
    let output = match plain().with_file(args.common.json.as_deref()) {
        Ok(output) => output,
        Err(error) => return fail::report(&error, &plain()),
    };
    let context = context::Context { environment, output, cancel: Cancel::default() };
    // A panic is a defect. Rust's own exit code for panics has another meaning
    // here.
    let run = AssertUnwindSafe(|| commands::run(args.command, &context));
    let result = catch_unwind(run).unwrap_or_else(|_| {
        let hint = "please report it with the output above";
        Err(Error::internal("failed because of a defect in gfxpack", hint))
    });
    match (result, context.output.finish()) {
        // The program that `run` started has failed.
        (Ok(code @ 1..), _) => ExitCode::from(code),
        (Ok(SUCCESS), Ok(())) => ExitCode::SUCCESS,
        (Err(error), _) | (_, Err(error)) => fail::report(&error, &context.output),
    }
}
