//! `ask`: the keys that problems want, as a list for `--keys`.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use gfxpack_compile::Cancel;
use gfxpack_miopen::{Uses, Wanted};
use gfxpack_plan::KernelKey;
use serde::Serialize;
use serde_json::json;

use crate::args::Ask;
use crate::asking::{self, Asked};
use crate::build;
use crate::cache;
use crate::destination::Destination;
use crate::environment::Environment;
use crate::fail;
use crate::inputs;
use crate::output::{Output, counted, shown, to_file};

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
    functions: &'a BTreeSet<String>,
    /// Problems that want it, as MIOpenDriver's arguments.
    problems: Vec<String>,
}

/// Asks, and writes the keys. Problems that MIOpen failed on are listed, and
/// the keys of the others are written all the same.
pub(crate) fn run(
    args: &Ask,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    if args.asking.problems.is_empty() {
        return Err(fail::usage(
            "failed to start: no problems are given",
            "give what programs compute, as --problems FILE; `gfxpack problems resnet-50` prints a \
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
    let jobs = build::processes(args.jobs);
    let cache = cache::dir(&args.cache, environment)?;
    let asked = asking::run(&args.asking, &targets, jobs, &cache, environment, cancel, output)?;
    asking::report_failures(&asked, output);
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
    match asking::failed(&asked) {
        Some(outcome) => Err(outcome.into()),
        None => Ok(()),
    }
}

/// Each key once, with all targets that want it; sorted by key.
fn lines(asked: &Asked) -> Vec<Line<'_>> {
    let mut lines: std::collections::BTreeMap<&KernelKey, Line<'_>> = Default::default();
    for (target, keys) in &asked.keys {
        for key in keys {
            let named = |one: &Wanted| asked.problems[one.problem as usize].to_string();
            let line = lines.entry(&key.key).or_insert_with(|| Line {
                key: &key.key,
                targets: Vec::new(),
                uses: uses(&key.wanted).to_string(),
                functions: &key.functions,
                problems: key.wanted.iter().map(named).collect(),
            });
            line.targets.push(target.db_basename());
        }
    }
    lines.into_values().collect()
}

fn uses(wanted: &[Wanted]) -> Uses {
    wanted.iter().fold(Uses::NONE, |uses, one| uses.or(one.uses))
}

fn write(out: &Path, lines: &[Line<'_>]) -> anyhow::Result<()> {
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
        asking::library_in_words(&asked.facts),
        counted(keys, "key")
    ));
}
