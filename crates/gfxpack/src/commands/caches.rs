//! `caches`: lists and clears the caches of GPU compilers and libraries.

mod env;

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use gfxpack_caches::{
    Cache, CacheCleaner, CacheDirectory, CacheEntry, KeepReason, MiopenVersion, Scan,
    UserEnvironment, Versions, now,
};
use gfxpack_pipeline::options::parse_age;
use gfxpack_pipeline::text::age;
use serde_json::{Value, json};

use self::env::Chosen;
use crate::environment;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, message, size};

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
    /// Print the size of each cache, and of all together
    Size {
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Show entries, and remove them after asking; entries in use, of other
    /// users, or unknown are left
    #[command(disable_version_flag = true)]
    Clear(Clear),
    /// Print environment variables that switch the caches off, or move them
    Env(env::Env),
}

#[derive(Debug, Args)]
pub(crate) struct Clear {
    #[command(flatten)]
    chosen: Chosen,
    /// Only entries that were not changed for this long, as 30d
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    older_than: Option<Duration>,
    /// Only what this version of MIOpen made, as 3.4.0; only with `miopen`
    #[arg(long, value_name = "VERSION", conflicts_with = "keep_newest")]
    version: Option<MiopenVersion>,
    /// Only what older versions of MIOpen made, not the newest in each
    /// directory; only with `miopen`
    #[arg(long)]
    keep_newest: bool,
    /// Remove results of tuning too, which take long to get again
    #[arg(long)]
    tuning: bool,
    /// Show what would be removed, and remove nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Remove without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(command: &Caches, output: &Output) -> Result {
    let user_environment = environment::user_environment();
    match command {
        Caches::List { chosen, entries } => {
            list(&chosen.caches(), &user_environment, *entries, output);
            Ok(())
        }
        Caches::Size { chosen } => {
            sizes(&chosen.caches(), &user_environment, output);
            Ok(())
        }
        Caches::Clear(args) => clear(args, &user_environment, output),
        Caches::Env(args) => env::run(args, output),
    }
}

impl Clear {
    fn versions(&self) -> Result<Versions> {
        let versions = match &self.version {
            Some(version) => Versions::Only(version.clone()),
            None if self.keep_newest => Versions::AllButNewest,
            None => return Ok(Versions::All),
        };
        if self.chosen.names != ["miopen"] {
            return Err(fail::usage(
                "--version and --keep-newest are for MIOpen's cache alone",
                "write `gfxpack caches clear miopen` with them",
            ));
        }
        Ok(versions)
    }
}

/// The contents of a place. If it can't be read, they are empty, and there is a
/// warning.
fn scan(directory: &CacheDirectory, output: &Output) -> Scan {
    directory.scan().unwrap_or_else(|error| {
        output.warn(&format!("failed to read `{}`: {error}", directory.dir.display()));
        Scan::default()
    })
}

fn list(caches: &[&Cache], user_environment: &UserEnvironment, each: bool, output: &Output) {
    for cache in caches {
        let off = cache.switched_off(user_environment);
        let by: Vec<Value> = off
            .iter()
            .map(|(by, value)| json!({ "name": by.name, "value": value, "effect": by.effect }))
            .collect();
        message!(output, "caches-state", { "cache": cache.name, "off": by });
        output.text(&format!("{}: {}", cache.name, cache.about));
        for (by, value) in &off {
            output.text(&format!("  off by {}={value}: {}", by.name, by.effect));
        }
        if off.is_empty() {
            output.text("  not switched off");
        }
        let directories = cache.directories(user_environment);
        if directories.is_empty() {
            output.text("  keeps nothing here");
        }
        for directory in &directories {
            let scan = scan(directory, output);
            message!(output, "caches-place", {
                "cache": cache.name, "dir": display(&directory.dir), "rule": directory.place.rule, "tuning": directory.place.tuning,
                "exists": scan.exists, "entries": scan.entries.len(),
                "bytes": scan.bytes(), "others": scan.others,
                "age_seconds": scan.age(now()).map(|age| age.as_secs()),
            });
            output.text(&format!("  {} ({})", directory.dir.display(), directory.place.rule));
            output.text(&format!("    {}", contents(directory, &scan)));
            for entry in scan.entries.iter().filter(|_| each) {
                output.message("caches-entry", &entry_body(cache, entry));
                output.text(&format!("    {}", line(entry)));
            }
        }
    }
}

/// The contents as text: `2 entries, 40.1 kB, changed 3 min ago`.
fn contents(directory: &CacheDirectory, scan: &Scan) -> String {
    if !scan.exists {
        return "is not there".to_owned();
    }
    let mut text = format!("{}, {}", counted(scan.entries.len(), "entry"), size(scan.bytes()));
    if let Some(newest) = scan.age(now()) {
        text.push_str(&format!(", changed {} ago", age(newest)));
    }
    if directory.place.tuning {
        text.push_str(", results of tuning");
    }
    text
}

fn entry_body(cache: &Cache, entry: &CacheEntry) -> Value {
    json!({
        "cache": cache.name, "path": display(&entry.path), "files": entry.files, "bytes": entry.bytes,
        "beside": entry.companions, "tuning": entry.tuning,
        "age_seconds": entry.age(now()).map(|age| age.as_secs()),
    })
}

/// An entry as text: `40.1 kB    3 min  /x/pocl/kcache/PP`.
fn line(entry: &CacheEntry) -> String {
    let age = entry.age(now()).map(age).unwrap_or_default();
    format!("{:>9}  {age:>7}  {}", size(entry.bytes), entry.path.display())
}

fn sizes(caches: &[&Cache], user_environment: &UserEnvironment, output: &Output) {
    let mut total = 0;
    for cache in caches {
        let mut own = 0;
        let mut entries = 0;
        for directory in &cache.directories(user_environment) {
            let scan = scan(directory, output);
            own += scan.bytes();
            entries += scan.entries.len();
        }
        total += own;
        message!(output, "caches-size", { "cache": cache.name, "bytes": own, "entries": entries });
        output.text(&format!("{:>9}  {}", size(own), cache.name));
    }
    message!(output, "caches-total", { "bytes": total });
    output.text(&format!("{:>9}  together", size(total)));
}

fn clear(args: &Clear, user_environment: &UserEnvironment, output: &Output) -> Result {
    let versions = args.versions()?;
    let cleaner = || {
        let mut cleaner = CacheCleaner::new(user_environment, now());
        cleaner.older_than = args.older_than;
        cleaner.tuning = args.tuning;
        cleaner
    };
    let caches = args.chosen.caches();
    let asked = std::io::stdin().is_terminal() && !output.json;
    let going = removable(&caches, user_environment, &cleaner(), &versions, output);
    let total: u64 = going.iter().map(|(_, _, entry)| entry.bytes).sum();
    let sum = format!("{}, {}", counted(going.len(), "entry"), size(total));
    for (_, _, entry) in &going {
        output.text(&line(entry));
    }
    if args.dry_run {
        for (cache, _, entry) in &going {
            output.message("caches-would-remove", &entry_body(cache, entry));
        }
        output.info(&format!("would remove {sum}"));
        return Ok(());
    }
    if going.is_empty() {
        output.info("there is nothing to remove");
        return Ok(());
    }
    if !args.yes && !asked {
        return Err(fail::usage(
            "nothing is removed: nobody can confirm it, since the standard input is no terminal or \
             messages are JSON",
            "--dry-run shows what would be removed, --yes removes it",
        ));
    }
    if !args.yes && !confirmed(&sum, output)? {
        output.info("nothing is removed");
        return Ok(());
    }
    // `cleaner()` is called again: entries may be in use since they were shown.
    remove(&going, &cleaner(), output)
}

/// An entry, with its place and cache.
type LocatedEntry = (&'static Cache, CacheDirectory, CacheEntry);

/// The entries to remove; reports those that are kept.
fn removable(
    caches: &[&'static Cache],
    user_environment: &UserEnvironment,
    cleaner: &CacheCleaner,
    versions: &Versions,
    output: &Output,
) -> Vec<LocatedEntry> {
    let mut going = Vec::new();
    for cache in caches {
        for directory in &cache.directories(user_environment) {
            let scan = scan(directory, output);
            for entry in &scan.entries {
                match versions
                    .keep(&scan, entry)
                    .or_else(|| cleaner.reason_to_keep(directory, entry))
                {
                    None => going.push((*cache, directory.clone(), entry.clone())),
                    Some(why) => {
                        report_kept(cache, entry, &why, output);
                        output.info(&format!("keeping {}: {}", entry.path.display(), why.detail));
                    }
                }
            }
        }
    }
    going
}

fn remove(going: &[LocatedEntry], cleaner: &CacheCleaner, output: &Output) -> Result {
    let mut removed = 0;
    let mut failed = None;
    for (cache, directory, entry) in going {
        match cleaner.remove(directory, entry) {
            Ok(None) => {
                removed += entry.bytes;
                output.message("caches-removed", &entry_body(cache, entry));
            }
            Ok(Some(why)) => {
                report_kept(cache, entry, &why, output);
                let path = entry.path.display();
                output.warn(&format!("failed to remove `{path}`: {}", why.detail));
            }
            // Continue with the other entries.
            Err((path, source)) if failed.is_none() => {
                failed = Some(fail::io("remove", &path)(source));
            }
            Err((path, source)) => {
                output.warn(&format!("failed to remove `{}`: {source}", path.display()));
            }
        }
    }
    output.info(&format!("removed {}", size(removed)));
    failed.map_or(Ok(()), Err)
}

fn report_kept(cache: &Cache, entry: &CacheEntry, why: &KeepReason, output: &Output) {
    let mut body = entry_body(cache, entry);
    body["reason"] = why.name.into();
    body["detail"] = why.detail.clone().into();
    output.message("caches-kept", &body);
}

fn confirmed(sum: &str, output: &Output) -> Result<bool> {
    output.stderr(&format!("remove {sum}? [y/N]"));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(fail::io("read", std::path::Path::new("stdin")))?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
