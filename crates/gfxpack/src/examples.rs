//! Examples at the end of every command's help and manual page.

use clap::Command;

/// For each command: a line with its name, without `gfxpack`, and below it,
/// indented, its examples.
const EXAMPLES: &str = include_str!("examples.txt");

/// The examples of a command.
pub(crate) fn of_command(name: &str) -> Vec<&'static str> {
    let lines = EXAMPLES.lines().skip_while(|line| *line != name).skip(1);
    lines.map_while(|line| line.strip_prefix("  ")).collect()
}

/// The command line with the examples of every command.
pub(crate) fn with_examples(command: Command) -> Command {
    add(command, "")
}

fn add(command: Command, name: &str) -> Command {
    let mut command = command;
    let examples = of_command(name);
    if !name.is_empty() && !examples.is_empty() {
        command = command.after_help(format!("Examples:\n  {}", examples.join("\n  ")));
    }
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    for one in below {
        let path = if name.is_empty() { one.clone() } else { format!("{name} {one}") };
        command = command.mut_subcommand(one, |below| add(below, &path));
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn names(command: &Command, above: &str, all: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let name = format!("{above} {}", below.get_name()).trim().to_owned();
            names(below, &name, all);
            all.push(name);
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut all = Vec::new();
        names(&Args::command(), "", &mut all);
        for name in &all {
            let lines = of_command(name);
            let own: Vec<_> =
                lines.iter().filter(|line| line.starts_with(&format!("gfxpack {name}"))).collect();
            let of_below = lines.iter().any(|line| line.starts_with("gfxpack"));
            assert!(!own.is_empty() || of_below, "{name}");
            for line in own {
                // The rest is for the shell.
                let end = [" < ", " > ", " && "].into_iter().find_map(|mark| line.find(mark));
                let line = &line[..end.unwrap_or(line.len())];
                let arguments = shlex::split(line).expect(line);
                if let Err(error) = Args::command().try_get_matches_from(arguments) {
                    panic!("{line}: {error}");
                }
            }
        }
        for name in EXAMPLES.lines().filter(|line| !line.starts_with(' ')) {
            assert!(all.iter().any(|known| known == name), "there is no command `{name}`");
        }
    }

    #[test]
    fn help_ends_with_the_examples() {
        let mut command = with_examples(Args::command());
        let help = command.find_subcommand_mut("merge").expect("a command").render_long_help();
        let help = help.to_string();
        assert!(
            help.trim_end().ends_with("gfxpack merge --plan plan --out merged shards"),
            "{help}"
        );
    }
}
