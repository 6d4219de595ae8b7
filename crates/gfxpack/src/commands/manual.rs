//! `manual`: writes the manual pages for packages of gfxpack.

use std::path::Path;

use clap::CommandFactory;
use gfxpack_pipeline::destination;

use crate::args::Args;
use crate::examples::with_examples;

use crate::fail::{self, Result};

/// Writes `gfxpack.1`, and `gfxpack-COMMAND.1` for every command.
pub(crate) fn run(dir: &Path) -> Result {
    // The pager wraps the text, not this terminal.
    let command = with_examples(Args::command());
    let mut command = command.term_width(0).disable_help_subcommand(true);
    command.build();
    pages(&command, "gfxpack", dir)
}

fn pages(command: &clap::Command, name: &str, dir: &Path) -> Result {
    let version = concat!("gfxpack ", env!("CARGO_PKG_VERSION"));
    let page = clap_mangen::Man::new(command.clone().name(name.to_owned()))
        .title(name.to_uppercase())
        .date("")
        .source(version)
        .manual("User Commands");
    let mut text = Vec::new();
    let path = dir.join(format!("{name}.1"));
    page.render(&mut text).map_err(fail::io("write", &path))?;
    destination::replace(&path, &text)?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below, &format!("{name}-{}", below.get_name()), dir)?;
    }
    Ok(())
}
