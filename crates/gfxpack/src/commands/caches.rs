//! `caches`: what GPU compilers and libraries keep for this user, and
//! clearing it.

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use gfxpack_caches::{
    Cache, Clearing, Entry, Kept, NAMES, Place, RemoveError, Scan, Surroundings, now,
};
use gfxpack_pipeline::text::age;
use serde_json::{Value, json};

use crate::environment;
use crate::fail::{self, Result};
use crate::output::{Output, shown, size};
use crate::quantity::parse_age;

#[derive(Debug, Subcommand)]
pub(crate) enum Caches {
    /// List the caches' places with what is in them
    List {
        #[command(flatten)]
        chosen: Chosen,
        /// Every entry, with its size and age
        #[arg(long)]
        entries: bool,
    },
    /// Say how large each cache is, and all of them together
    Size {
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Remove entries, after showing them; what is in use, belongs to others,
    /// or is not a cache's own stays
    Clear {
        #[command(flatten)]
        chosen: Chosen,
        /// Only entries that were not changed for this long, as 30d
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        older_than: Option<Duration>,
        /// Remove results of tuning too, which take long to get again
        #[arg(long)]
        tuning: bool,
        /// Show what would be removed, and remove nothing
        #[arg(long, short = 'n')]
        dry_run: bool,
        /// Remove without asking
        #[arg(long, short)]
        yes: bool,
    },
    /// Print what to put into the environment so that the caches are not used
    Env {
        #[command(flatten)]
        chosen: Chosen,
        /// The shell that reads it
        #[arg(long, value_enum, default_value_t)]
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// Only these caches [default: all]
    #[arg(value_name = "CACHE", value_parser = PossibleValuesParser::new(NAMES))]
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// sh, and what is like it: bash, zsh, dash.
    #[default]
    Sh,
    Fish,
    Csh,
}

/// Runs a `caches` sub-command.
pub(crate) fn run(command: &Caches, output: &Output) -> Result {
    let surroundings = environment::surroundings();
    match command {
        Caches::List { chosen, entries } => {
            list(&chosen.of(&surroundings), *entries, output);
            Ok(())
        }
        Caches::Size { chosen } => {
            sizes(&chosen.of(&surroundings), output);
            Ok(())
        }
        Caches::Clear { chosen, older_than, tuning, dry_run, yes } => {
            let clearing = || {
                let mut clearing = Clearing::new(&surroundings, now());
                clearing.older_than = *older_than;
                clearing.tuning = *tuning;
                clearing
            };
            clear(&chosen.of(&surroundings), &clearing, *dry_run, *yes, output)
        }
        Caches::Env { chosen, shell } => {
            disable(&chosen.of(&surroundings), *shell, output);
            Ok(())
        }
    }
}

impl Chosen {
    fn of(&self, surroundings: &Surroundings) -> Vec<Cache> {
        let wanted = |cache: &Cache| {
            self.names.is_empty() || self.names.iter().any(|name| name == cache.name)
        };
        gfxpack_caches::known(surroundings).into_iter().filter(wanted).collect()
    }
}

/// What a place holds; nothing, with a warning, where it can't be read.
fn scan(place: &Place, output: &Output) -> Scan {
    place.scan().unwrap_or_else(|error| {
        output.warn(&format!("failed to read `{}`: {error}", place.dir.display()));
        Scan::default()
    })
}

fn list(caches: &[Cache], each: bool, output: &Output) {
    for cache in caches {
        if !output.json {
            output.data(&format!("{}: {}", cache.name, cache.about));
            if cache.places.is_empty() {
                output.data("  keeps nothing here");
            }
        }
        for place in &cache.places {
            let scan = scan(place, output);
            let body = json!({
                "cache": cache.name, "dir": shown(&place.dir), "rule": place.rule, "tuning": place.tuning,
                "exists": scan.exists, "entries": scan.entries.len(),
                "bytes": scan.bytes(), "others": scan.others,
                "age_seconds": scan.age(now()).map(|age| age.as_secs()),
            });
            output.message("caches-place", &body);
            if !output.json {
                output.data(&format!("  {} ({})", place.dir.display(), place.rule));
                output.data(&format!("    {}", contents(place, &scan)));
            }
            for entry in scan.entries.iter().filter(|_| each) {
                output.message("caches-entry", &entry_body(cache, entry));
                if !output.json {
                    output.data(&format!("    {}", line(entry)));
                }
            }
        }
    }
}

/// `2 entries, 40.1 kB, changed 3 min ago`.
fn contents(place: &Place, scan: &Scan) -> String {
    if !scan.exists {
        return "is not there".to_owned();
    }
    let mut text = format!("{} entries, {}", scan.entries.len(), size(scan.bytes()));
    if let Some(newest) = scan.age(now()) {
        text.push_str(&format!(", changed {} ago", age(newest)));
    }
    if place.tuning {
        text.push_str(", results of tuning");
    }
    text
}

fn entry_body(cache: &Cache, entry: &Entry) -> Value {
    json!({
        "cache": cache.name, "path": shown(&entry.path), "files": entry.files, "bytes": entry.bytes,
        "beside": entry.companions, "tuning": entry.tuning,
        "age_seconds": entry.age(now()).map(|age| age.as_secs()),
    })
}

/// `40.1 kB    3 min  /x/pocl/kcache/PP`.
fn line(entry: &Entry) -> String {
    let age = entry.age(now()).map(age).unwrap_or_default();
    format!("{:>9}  {age:>7}  {}", size(entry.bytes), entry.path.display())
}

fn sizes(caches: &[Cache], output: &Output) {
    let mut total = 0;
    for cache in caches {
        let mut own = 0;
        let mut entries = 0;
        for place in &cache.places {
            let scan = scan(place, output);
            own += scan.bytes();
            entries += scan.entries.len();
        }
        total += own;
        let body = json!({ "cache": cache.name, "bytes": own, "entries": entries });
        output.message("caches-size", &body);
        if !output.json {
            output.data(&format!("{:>9}  {}", size(own), cache.name));
        }
    }
    output.message("caches-total", &json!({ "bytes": total }));
    if !output.json {
        output.data(&format!("{:>9}  together", size(total)));
    }
}

fn clear(
    caches: &[Cache],
    clearing: &dyn Fn() -> Clearing,
    dry_run: bool,
    yes: bool,
    output: &Output,
) -> Result {
    let asked = std::io::stdin().is_terminal() && !output.json;
    let look = clearing();
    let mut going: Vec<(&Cache, &Place, Entry)> = Vec::new();
    for cache in caches {
        for place in &cache.places {
            for entry in scan(place, output).entries {
                match look.keeps(place, &entry) {
                    None => going.push((cache, place, entry)),
                    Some(why) => {
                        tell_kept(cache, &entry, &why, output);
                        output.say(&format!("keeping {}: {why}", entry.path.display()));
                    }
                }
            }
        }
    }
    let total: u64 = going.iter().map(|(_, _, entry)| entry.bytes).sum();
    let sum = format!("{} entries, {}", going.len(), size(total));
    if !output.json {
        for (_, _, entry) in &going {
            output.data(&line(entry));
        }
    }
    if dry_run {
        for (cache, _, entry) in &going {
            output.message("caches-would-remove", &entry_body(cache, entry));
        }
        output.say(&format!("would remove {sum}"));
        return Ok(());
    }
    if going.is_empty() {
        output.say("there is nothing to remove");
        return Ok(());
    }
    if !yes && !asked {
        return Err(fail::usage(
            "nothing is removed: nobody can confirm it, since the standard input is no terminal or \
             messages are JSON",
            "--dry-run shows what would be removed, --yes removes it",
        ));
    }
    if !yes && !confirmed(&sum, output)? {
        output.say("nothing is removed");
        return Ok(());
    }
    // What is open may be something else since it was shown.
    let again = clearing();
    let mut removed = 0;
    let mut failed = None;
    for (cache, place, entry) in &going {
        match again.remove(place, entry) {
            Ok(()) => {
                removed += entry.bytes;
                output.message("caches-removed", &entry_body(cache, entry));
            }
            // The others go all the same.
            Err(RemoveError::Io { path, source }) if failed.is_none() => {
                failed = Some(fail::io("remove", &path)(source));
            }
            Err(error) => {
                if let RemoveError::Kept { why, .. } = &error {
                    tell_kept(cache, entry, why, output);
                }
                output.warn(&fail::in_full(&error));
            }
        }
    }
    output.say(&format!("removed {}", size(removed)));
    failed.map_or(Ok(()), Err)
}

fn tell_kept(cache: &Cache, entry: &Entry, why: &Kept, output: &Output) {
    let mut body = entry_body(cache, entry);
    body["reason"] = why.name().into();
    body["detail"] = why.to_string().into();
    output.message("caches-kept", &body);
}

/// Asks on the terminal.
fn confirmed(sum: &str, output: &Output) -> Result<bool> {
    output.stderr(&format!("remove {sum}? [y/N]"));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(fail::io("read", std::path::Path::new("stdin")))?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

fn disable(caches: &[Cache], shell: Shell, output: &Output) {
    let mut told: Vec<&str> = Vec::new();
    for cache in caches {
        if !output.json && !cache.disable_note.is_empty() {
            output.data(&format!("# {}: {}", cache.name, cache.disable_note));
        }
        for (name, value) in cache.disable {
            let body = json!({ "cache": cache.name, "name": name, "value": value });
            output.message("caches-variable", &body);
            // Two caches may have one switch.
            if !output.json && !told.contains(name) {
                told.push(name);
                output.data(&match shell {
                    Shell::Sh => format!("export {name}={value}"),
                    Shell::Fish => format!("set -gx {name} {value}"),
                    Shell::Csh => format!("setenv {name} {value}"),
                });
            }
        }
    }
}
