//! The commands in groups, for the help of gfxpack, and what the short help shows.

use clap::Command;
use clap::builder::Styles;

/// Every command that is not hidden, by purpose: those of a day's use, which `-h`
/// shows, and the others.
const GROUPS: &[(&str, &[&str], &[&str])] = &[
    ("Build", &["dist", "build", "plan", "targets", "cache"], &["merge"]),
    ("Find out what to build", &["problems", "ask", "harvest", "run"], &["miopen"]),
    ("Package", &["package", "repo", "verify"], &["recipe", "slim"]),
    ("Install and look up", &["detect", "install", "lookup", "doctor", "caches"], &[]),
    ("Databases", &["kdb"], &["perfdb", "tune"]),
    ("Other", &[], &["completions", "manual", "help"]),
];

/// The options of `dist`, `build` and `plan` that `-h` shows, beside the general ones.
const DAILY: &[&str] = &[
    "problems",
    "keys",
    "manifest",
    "source_dir",
    "target",
    "miopen",
    "check",
    "out",
    "dry_run",
    "format",
    "layout",
    "license",
    "json",
    "quiet",
    "verbose",
    "help",
];

/// Replaces the long list of commands by groups, and shortens the short help.
pub(crate) fn with_groups(command: Command) -> Command {
    let (short, long) = (groups(&command, false), groups(&command, true));
    let header = *Styles::default().get_header();
    let text = format!(
        "{{about-section}}\n{{usage-heading}} {{usage}}\n\n{{before-help}}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    let shown = "`gfxpack --help` lists all commands, exit codes and variables";
    let command = command.help_template(text).before_help(short).before_long_help(long);
    ["dist", "build", "plan"].into_iter().fold(command.after_help(shown), |command, name| {
        command.mut_subcommand(name, |below| {
            below.mut_args(|arg| {
                let is_hidden = !DAILY.contains(&arg.get_id().as_str());
                arg.hide_short_help(is_hidden)
            })
        })
    })
}

/// The commands of a day's use in their groups, or all.
fn groups(command: &Command, all: bool) -> String {
    let header = *Styles::default().get_header();
    let literal = *Styles::default().get_literal();
    let mut parts = Vec::new();
    for (group, daily, others) in GROUPS {
        let names = daily.iter().chain(others.iter().filter(|_| all));
        let lines = names
            .map(|name| format!("\n  {literal}{name:<13}{literal:#}  {}", about(command, name)));
        let lines: String = lines.collect();
        if !lines.is_empty() {
            parts.push(format!("{header}{group}:{header:#}{lines}"));
        }
    }
    parts.join("\n\n")
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
    use crate::examples::with_examples;

    #[test]
    fn every_command_is_in_one_group_and_fits_into_80_columns() {
        let command = Args::command();
        let all = GROUPS.iter().flat_map(|(_, daily, others)| [*daily, others].concat());
        let mut grouped: Vec<&str> = all.collect();
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).chain(["help"]).collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
        let help = with_groups(command).render_long_help().to_string();
        let (commands, _) = help.split_once("\nOptions:\n").expect("options");
        for line in commands.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        assert!(
            commands.contains("\n  merge          Merge the shards of a stored plan"),
            "{help}"
        );
    }

    #[test]
    fn the_short_help_fits_on_a_screen() {
        let mut command = with_groups(with_examples(Args::command(), "")).term_width(80);
        command.build();
        let short = command.render_help().to_string();
        let dist = command.find_subcommand_mut("dist").expect("a command");
        for help in [short, dist.render_help().to_string()] {
            assert!(help.lines().count() <= 40, "{help}");
        }
        let long = dist.render_long_help().to_string();
        assert!(long.contains("--license-allow") && long.lines().count() > 100, "{long}");
    }
}
