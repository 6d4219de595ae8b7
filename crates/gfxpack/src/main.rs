//! The gfxpack command line: wires the crates together, talks to the
//! terminal, and turns what happened into an exit code.

mod args;
mod commands;
mod environment;
mod fail;
mod options;
mod output;
mod prepared;
mod progress;
mod quantity;
mod signals;
mod tuning_findings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return fail::report_usage(&error),
    };
    let environment = environment::Environment::read();
    environment::init_logging(&environment, args.common.verbose);
    if environment.no_landlock {
        gfxpack_compile::switch_off_landlock();
    }
    let output = output::Output::new(&args.common);
    // A panic is a defect; Rust's own exit code for it means something else here.
    let run = AssertUnwindSafe(|| commands::run(args, &environment, &output));
    let result = catch_unwind(run).unwrap_or(Err(gfxpack_pipeline::error::Error::Defect.into()));
    let finished = output.finish().map_err(fail::io("write", Path::new("stdout")));
    match result.and(finished) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail::report(&error, &output),
    }
}
