//! `completions`: prints completion scripts for shells.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use gfxpack_model::processors::{PROCESSORS, Processor};
use gfxpack_model::{Target, TargetId};

use crate::args::Args;
use crate::fail::Result;
use crate::output::Output;

pub(crate) fn run(shell: Shell, output: &Output) -> Result {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut with_values(Args::command()), "gfxpack", &mut text);
    output.bytes(&text);
    Ok(())
}

/// The command line, with possible values for completing targets: every
/// processor, and the known counts of compute units.
fn with_values(command: Command) -> Command {
    command.mut_args(with_value).mut_subcommands(with_values)
}

fn with_value(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    if arg.get_id() == "target" {
        return arg.value_parser(PossibleValuesParser::new(targets()));
    }
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    match name.as_deref() {
        Some("DIR") => arg.value_hint(ValueHint::DirPath),
        Some("FILE" | "FILE.html" | "FILE.xml" | "KDB" | "OLD" | "NEW") => {
            arg.value_hint(ValueHint::FilePath)
        }
        _ => arg,
    }
}

fn targets() -> Vec<String> {
    let of = |processor: &'static Processor| {
        let id = TargetId::new(processor.name);
        let counts = processor.compute_units.iter().map(|count| Some(*count));
        let targets = std::iter::once(None).chain(counts);
        targets.map(move |count| Target::new(id.clone(), count).to_string())
    };
    PROCESSORS.iter().flat_map(of).collect()
}
