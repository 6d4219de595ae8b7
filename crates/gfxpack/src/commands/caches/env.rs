//! `caches env`: prints shell lines that disable or move caches.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use gfxpack_caches::{CACHES, Cache, Shell, destination};

use crate::args::{SHELLS, one_of};
use crate::fail::{self, Result};
use crate::output::{Output, message};

#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// Only these caches [default: all]
    #[arg(value_name = "CACHE", value_parser = PossibleValuesParser::new(CACHES.iter().map(|cache| cache.name)))]
    pub(super) names: Vec<String>,
}

impl Chosen {
    pub(super) fn caches(&self) -> Vec<&'static Cache> {
        let wanted = |cache: &&Cache| {
            self.names.is_empty() || self.names.iter().any(|name| name == cache.name)
        };
        CACHES.iter().filter(wanted).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Env {
    #[command(flatten)]
    chosen: Chosen,
    /// Move the caches below this directory instead of switching them off
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// One directory below DIR for each host and local rank, chosen when the
    /// shell reads the lines
    #[arg(long, requires = "to")]
    per_rank: bool,
    /// The shell that reads it
    #[arg(long, value_parser = one_of(&SHELLS), default_value = "sh")]
    shell: Shell,
}

pub(super) fn run(args: &Env, output: &Output) -> Result {
    let caches = args.chosen.caches();
    match &args.to {
        None => disable(&caches, args.shell, output),
        Some(dir) => {
            let absolute = std::path::absolute(dir).map_err(fail::io("find", dir))?;
            let Some(dir) = absolute.to_str() else {
                return Err(fail::usage(
                    format!("failed to write `{}` for a shell", absolute.display()),
                    "give a directory whose name is UTF-8",
                ));
            };
            relocate(&caches, dir, args, output);
        }
    }
    Ok(())
}

fn relocate(caches: &[&Cache], dir: &str, args: &Env, output: &Output) {
    for cache in caches.iter().filter(|_| output.json) {
        for (name, below) in cache.location_variables {
            let value = format!("{}/{below}", destination(dir, args.per_rank));
            message!(output, "caches-variable", {
                "cache": cache.name, "name": name, "value": value,
            });
        }
    }
    for line in args.shell.relocation(caches, dir, args.per_rank) {
        output.text(&line);
    }
}

fn disable(caches: &[&Cache], shell: Shell, output: &Output) {
    let mut printed: Vec<&str> = Vec::new();
    for cache in caches {
        if !cache.disable_note.is_empty() {
            output.text(&format!("# {}: {}", cache.name, cache.disable_note));
        }
        for switch in cache.switches.iter().filter(|switch| switch.usual) {
            let (name, value) = (switch.name, switch.value);
            message!(output, "caches-variable", {
                "cache": cache.name, "name": name, "value": value,
            });
            // Two caches may be disabled by the same variable.
            if !printed.contains(&name) {
                printed.push(name);
                output.text(&shell.export(name, value));
            }
        }
    }
}
