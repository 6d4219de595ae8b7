//! `manual`: writes the manual pages for packages of gfxpack.

use std::path::Path;

use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use gfxpack_pipeline::destination;

use crate::args::{Args, LAYOUTS, MORE_VARIABLES, OTHER_CODES, VARIABLES};
use crate::examples::of_command;
use crate::fail::{self, MEANINGS, Result};

const FILES: [(&str, &str); 2] = [
    ("~/.cache/gfxpack", "the cache"),
    ("/usr/share/doc/gfxpack/docs", "pages by task; README.md there is their index"),
];

/// Writes `gfxpack.1`, and `gfxpack-COMMAND.1` for every command.
pub(crate) fn run(dir: &Path) -> Result {
    // The pager wraps the text, not this terminal.
    let mut command = Args::command().term_width(0).disable_help_subcommand(true);
    command.build();
    pages(&command, &["gfxpack"], dir)
}

fn pages(command: &Command, words: &[&str], dir: &Path) -> Result {
    let name = words.join("-");
    let path = dir.join(format!("{name}.1"));
    let text = page(command, words).map_err(fail::io("write", &path))?;
    destination::replace(&path, &text)?;
    for below in shown(command) {
        pages(below, &[words, &[below.get_name()]].concat(), dir)?;
    }
    Ok(())
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// The page of the command with these words, the first of which is `gfxpack`.
fn page(command: &Command, words: &[&str]) -> std::io::Result<Vec<u8>> {
    let name = words.join("-");
    let bare = command.clone().name(name.clone());
    let bare = bare.after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let page = clap_mangen::Man::new(bare)
        .title(name.to_uppercase())
        .date("")
        .source(concat!("gfxpack ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut text = Vec::new();
    page.render(&mut text)?;
    text.extend_from_slice(sections(command, words).as_bytes());
    Ok(text)
}

/// The sections that clap does not know, from the tables of the help.
fn sections(command: &Command, words: &[&str]) -> String {
    let mut text = String::new();
    let examples = of_command(&words[1..].join(" "));
    if !examples.is_empty() {
        text += ".SH EXAMPLES\n.nf\n";
        examples.iter().for_each(|line| text += &format!("{}\n", roff(line)));
        text += ".fi\n";
    }
    let entry = |(name, about): (&str, &str)| format!(".TP\n{}\n{}\n", roff(name), roff(about));
    text += ".SH \"EXIT STATUS\"\n";
    text.extend(MEANINGS.iter().map(|(code, meaning)| entry((&code.to_string(), meaning))));
    text += &format!(".PP\n{}\n.SH ENVIRONMENT\n", roff(OTHER_CODES));
    text.extend(VARIABLES.map(entry));
    text += &format!(".PP\n{}\n.SH FILES\n", roff(MORE_VARIABLES));
    text.extend(FILES.map(entry));
    let kdbs = |name: &str| format!("kdbs, with --layout {name}");
    text.extend(LAYOUTS.iter().map(|(name, dirs)| entry((dirs, &kdbs(name)))));
    let above = words[..words.len() - 1].join("-");
    let below = shown(command).map(|below| format!("{}-{}", words.join("-"), below.get_name()));
    let others = Some(above).filter(|above| !above.is_empty()).into_iter().chain(below);
    let others: Vec<String> = others.map(|name| roff(&format!("{name}(1)"))).collect();
    text + &format!(".SH \"SEE ALSO\"\n{}\n", others.join(", "))
}

/// A line of text in roff.
fn roff(line: &str) -> String {
    format!("\\&{}", line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_examples_and_the_tables_of_the_help() {
        let mut command = Args::command();
        command.build();
        let of = |command: &Command, words: &[&str]| {
            String::from_utf8(page(command, words).expect("no file")).expect("text")
        };
        let dist = of(command.find_subcommand("dist").expect("a command"), &["gfxpack", "dist"]);
        let kdb = command.find_subcommand("kdb").expect("a command");
        let merge = kdb.find_subcommand("merge").expect("a command");
        let merge = of(merge, &["gfxpack", "kdb", "merge"]);
        for (page, expected) in [
            (&dist, ".SH EXAMPLES\n.nf\n\\&gfxpack dist \\-\\-problems problems.txt"),
            (&dist, ".SH \"EXIT STATUS\"\n.TP\n\\&0\n\\&done\n"),
            (&dist, "\n\\&SOURCE_DATE_EPOCH\n\\&time stamps\n"),
            (&dist, "\n\\&/usr/share/miopen/db\n\\&kdbs, with \\-\\-layout fhs\n"),
            (&dist, ".SH \"SEE ALSO\"\n\\&gfxpack(1)\n"),
            (&merge, "\\&gfxpack kdb merge A.kdb"),
            (&merge, ".SH \"SEE ALSO\"\n\\&gfxpack\\-kdb(1)\n"),
            (&of(&command, &["gfxpack"]), "\\&gfxpack\\-dist(1), "),
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(!dist.contains("EXTRA"), "{dist}");
    }
}
