//! Compares the objects of two builds. A compiler may make one of several
//! objects: LLVM iterates over some sets in the order of addresses, so that the
//! same command does not always give the same object.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;
use xshell::{Shell, cmd};

/// How often a command is run again before its object counts as different. An
/// object that comes one time in five is missed in less than one of 5000 cases.
const TRIES: u32 = 40;

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Same {
    /// Number of different objects of gfxpack.
    pub(super) objects: usize,
    /// How many of them the other way made only when it was run again.
    pub(super) at_times: usize,
}

/// Compares what the commands of a stage left in its `objects` with the rows of a
/// kdb. Returns `None` if they left nothing.
pub(super) fn compare(
    sh: &Shell,
    stage: &Path,
    gfxpack: &Path,
    kdb: &Path,
) -> anyhow::Result<Option<Same>> {
    let mut theirs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let objects = stage.join("objects");
    let files: Vec<_> =
        fs::read_dir(&objects)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    if files.is_empty() {
        return Ok(None);
    }
    for files in files.chunks(1000) {
        for line in cmd!(sh, "md5sum {files...}").quiet().read()?.lines() {
            let (sum, path) = line.split_once("  ").context("failed to read md5sum's words")?;
            let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            theirs.entry(sum.to_owned()).or_default().push(name.into_owned());
        }
    }
    let rows = cmd!(sh, "{gfxpack} kdb list {kdb} --message-format json").quiet().read()?;
    let mut ours = BTreeSet::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row)?;
        ours.extend(row["md5"].as_str().map(str::to_owned));
    }
    let same = Same { objects: ours.len(), at_times: 0 };
    // gfxpack's objects that no command made. A differing object must become one
    // of these.
    let missing: BTreeSet<&String> = ours.iter().filter(|sum| !theirs.contains_key(*sum)).collect();
    let mut left = missing.clone();
    let others = theirs.iter().filter(|(sum, _)| !ours.contains(*sum));
    let others: Vec<&String> = others.flat_map(|(_, names)| names).collect();
    let commands = fs::read_to_string(stage.join("commands"))?;
    for name in &others {
        let command = commands.lines().find(|line| line.ends_with(name.as_str()));
        let command = command.with_context(|| format!("failed to find what made `{name}`"))?;
        let again = || -> anyhow::Result<String> {
            let _in_stage = sh.push_dir(stage);
            cmd!(sh, "sh -c {command}").quiet().ignore_stderr().run()?;
            let file = objects.join(name);
            Ok(cmd!(sh, "md5sum {file}").quiet().read()?.chars().take(32).collect())
        };
        let mut found = false;
        for _ in 0..TRIES {
            let sum = again()?;
            left.remove(&sum);
            found = missing.contains(&sum);
            if found {
                break;
            }
        }
        ensure!(found, "failed to get the same bytes: the object of `{command}` differs");
    }
    ensure!(left.is_empty(), "failed to get the same bytes: {} objects differ", left.len());
    Ok(Some(Same { at_times: others.len(), ..same }))
}
