//! `ask`: the keys that problems want, as a list for `--keys`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use gfxpack_compile::Cancel;
use gfxpack_miopen::Uses;
use gfxpack_model::KernelKey;
use gfxpack_pipeline::ask::{self, Asked};
use gfxpack_pipeline::asked_facts::library_in_words;
use gfxpack_pipeline::destination::Destination;
use gfxpack_pipeline::inputs;
use gfxpack_pipeline::options::processes;
use serde::Serialize;
use serde_json::json;

use crate::args::Ask;
use crate::environment::Environment;
use crate::fail::{self, Result};
use crate::options::{cache_dir, library_options};
use crate::output::{Output, counted, shown, to_file};
use crate::progress::Reporter;

/// One key: a line of the list.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    key: &'a KernelKey,
    /// Targets whose MIOpen asks for it.
    targets: Vec<String>,
    /// How programs that ask for it use MIOpen.
    uses: String,
    /// Functions that its object must contain.
    functions: BTreeSet<&'a str>,
    /// Problems that want it, as MIOpenDriver's arguments.
    problems: Vec<String>,
}

/// What the targets want of a key, together.
#[derive(Default)]
struct Together<'a> {
    targets: Vec<String>,
    uses: Uses,
    functions: BTreeSet<&'a str>,
    problems: BTreeSet<u32>,
}

/// Asks, and writes the keys. Problems that MIOpen failed on are listed, and
/// the keys of the others are written all the same.
pub(crate) fn run(
    args: &Ask,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    if args.asking.problems.is_empty() {
        return Err(fail::usage(
            "failed to start: no problems are given",
            "give what programs compute, as --problems FILE; `gfxpack problems resnet50` prints a \
             network's",
        ));
    }
    if args.target.is_empty() {
        return Err(fail::usage(
            "failed to start: no target is given",
            "say which GPU to ask for, as --target gfx90a@104; `gfxpack targets` lists them",
        ));
    }
    let targets = inputs::distinct(&args.target)?;
    let jobs = processes(args.jobs);
    let reporter = Reporter::new(output, None);
    let ask = ask::Ask {
        problems: &args.asking.problems,
        library: &library_options(&args.asking.library, environment),
        targets: &targets,
        jobs,
        cache: &cache_dir(&args.cache, environment).directory()?,
    };
    let asked = ask.run(cancel, &reporter)?;
    ask::report_failures(&asked, &reporter);
    let lines = lines(&asked);
    match to_file(args.out.as_ref()) {
        Some(out) => write(out, &lines)?,
        None if output.json => lines.iter().for_each(|line| output.message("key", line)),
        None => {
            for line in &lines {
                output.data(&serde_json::to_string(line)?);
            }
        }
    }
    report(&asked, lines.len(), args.out.as_deref(), output);
    let hint = "each is named above; the list has the keys of the others";
    match ask::failed(&asked, hint) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Each key once, with all targets that want it; sorted by key.
fn lines(asked: &Asked) -> Vec<Line<'_>> {
    let mut by_key: BTreeMap<&KernelKey, Together<'_>> = BTreeMap::new();
    for (target, keys) in &asked.keys {
        for key in keys {
            let together = by_key.entry(&key.key).or_default();
            together.targets.push(target.db_basename());
            together.functions.extend(key.functions.iter().map(String::as_str));
            for one in &key.wanted {
                together.uses = together.uses.or(one.uses);
                together.problems.insert(one.problem);
            }
        }
    }
    let named = |problem: u32| asked.problems[problem as usize].to_string();
    let mut lines = Vec::with_capacity(by_key.len());
    for (key, together) in by_key {
        lines.push(Line {
            key,
            targets: together.targets,
            uses: together.uses.to_string(),
            functions: together.functions,
            problems: together.problems.into_iter().map(named).collect(),
        });
    }
    lines
}

fn write(out: &Path, lines: &[Line<'_>]) -> Result {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    match Destination::of(out).map_err(fail::io("write", out))? {
        Destination::File(file) => {
            gfxpack_compile::write_atomic(&file, &[&text]).map_err(fail::io("write", out))
        }
        Destination::Stream(mut stream) => stream.write_all(&text).map_err(fail::io("write", out)),
    }
}

fn report(asked: &Asked, keys: usize, out: Option<&Path>, output: &Output) {
    let body = json!({
        "keys": keys, "problems": asked.problems.len(), "failures": asked.failures.len(),
        "file": out.map(shown), "miopen": asked.facts,
    });
    output.message("asked", &body);
    let problems = counted(asked.problems.len(), "problem");
    output.say(&format!(
        "{}: {} for {problems}",
        library_in_words(&asked.facts),
        counted(keys, "key")
    ));
}
