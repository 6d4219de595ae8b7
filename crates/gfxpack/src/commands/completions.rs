//! `completions`: what a shell completes command lines with.

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use gfxpack_model::processors::PROCESSORS;

use crate::args::Args;
use crate::output::Output;

/// Prints the script for a shell.
pub(crate) fn run(shell: Shell, output: &Output) {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut with_targets(Args::command()), "gfxpack", &mut text);
    output.bytes(&text);
}

/// The command line, on which targets are words of a list: compute units and
/// features are for the user to add.
fn with_targets(command: Command) -> Command {
    let names = PROCESSORS.iter().map(|processor| processor.name);
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "target" => arg.value_parser(PossibleValuesParser::new(names.clone())),
        _ => arg,
    });
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    below.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_targets))
}
