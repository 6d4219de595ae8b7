//! Examples at the end of every command's help and manual page.

use clap::Command;

/// For each command: a line with its name, without `gfxpack`, and below it,
/// indented, its examples.
const EXAMPLES: &str = include_str!("examples.txt");

pub(crate) fn of_command(name: &str) -> Vec<&'static str> {
    let lines = EXAMPLES.lines().skip_while(|line| *line != name).skip(1);
    lines.map_while(|line| line.strip_prefix("  ")).collect()
}

/// The command with this name, without `gfxpack`, with the examples of it and of every command below.
pub(crate) fn with_examples(mut command: Command, name: &str) -> Command {
    let examples = of_command(name);
    if !examples.is_empty() {
        command = command.after_help(format!("Examples:\n  {}", examples.join("\n  ")));
    }
    command.mut_subcommands(|below| {
        let path = format!("{name} {}", below.get_name());
        with_examples(below, path.trim_start())
    })
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
        let mut command = with_examples(Args::command(), "");
        let help = command.find_subcommand_mut("merge").expect("a command").render_long_help();
        let help = help.to_string();
        assert!(
            help.trim_end().ends_with("gfxpack merge --plan plan --out merged shards"),
            "{help}"
        );
    }
}
