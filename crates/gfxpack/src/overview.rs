//! The commands in groups, for the help of gfxpack.

use clap::Command;
use clap::builder::Styles;

/// Every command that is not hidden, by purpose.
const GROUPS: &[(&str, &[&str])] = &[
    ("Build", &["dist", "build", "plan", "targets", "cache"]),
    ("Find out what to build", &["problems", "ask", "harvest", "run", "miopen"]),
    ("Package", &["package", "repo", "verify", "recipe"]),
    ("Install and look up", &["detect", "install", "lookup", "doctor", "caches"]),
    ("Databases", &["kdb", "perfdb", "tune"]),
    ("Several machines", &["merge"]),
    ("Other", &["completions", "manual", "help"]),
];

/// Replaces the long list of commands by groups.
pub(crate) fn with_groups(command: Command) -> Command {
    let header = *Styles::default().get_header();
    let literal = *Styles::default().get_literal();
    let mut text = String::from("{about-section}\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        text += &format!("\n{header}{group}:{header:#}\n");
        for name in *names {
            let about = about(&command, name);
            text += &format!("  {literal}{name:<13}{literal:#}  {about}\n");
        }
    }
    text += &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(text)
}

fn about(command: &Command, name: &str) -> String {
    match command.find_subcommand(name).and_then(Command::get_about) {
        Some(about) => about.to_string(),
        // clap adds this command when it parses.
        None => String::from("Print help of gfxpack or of a command"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    #[test]
    fn every_command_is_in_one_group_and_fits_into_80_columns() {
        let command = Args::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).chain(["help"]).collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
        let help = with_groups(command).render_help().to_string();
        let (commands, _) = help.split_once("\nOptions:\n").expect("options");
        for line in commands.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        assert!(
            commands.contains("\n  merge          Merge the shards of a stored plan"),
            "{help}"
        );
    }
}
