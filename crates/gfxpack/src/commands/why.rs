//! `plan --explain`: what a job's digest covers, and why it would run.

use std::collections::BTreeMap;

use gfxpack_compile::{
    Cancel, Change, Current, Explanation, History, How, Looks, State, What, explain,
};
use gfxpack_pipeline::prepare::Prepared;
use gfxpack_plan::plan::{Job, KdbPlan, Row};
use serde_json::{Value, json};

use crate::fail::{self, Result};
use crate::output::{Output, size};

/// Keys that are explained in one run.
const MAX_KEYS: usize = 20;
/// Changes of one kind that are told one by one.
const MAX_CHANGES: usize = 10;

/// Explains every key that contains the text.
pub(crate) fn run(prepared: &Prepared, text: &str, output: &Output) -> Result {
    let plan = &prepared.plan;
    let rows = |kdb: &'_ KdbPlan| -> Vec<Row> {
        kdb.rows.iter().filter(|row| row.key.to_string().contains(text)).cloned().collect()
    };
    let found: Vec<(&KdbPlan, Row)> =
        plan.kdbs.iter().flat_map(|kdb| rows(kdb).into_iter().map(move |row| (kdb, row))).collect();
    if found.is_empty() {
        return Err(fail::usage(
            format!("failed to find a key that contains `{text}`"),
            "a part of the kernel's name and arguments is enough: `gfxpack plan \
             --message-format json` lists all keys",
        ));
    }
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    let (cancel, looks) = (Cancel::default(), Looks::new(&prepared.cache.digests));
    let (sources, store) = (&prepared.sources, &prepared.cache.store);
    let current = Current::new(&looks, sources, &prepared.toolchains, store, &cancel);
    let current = current.without_writing();
    for (kdb, row) in found.iter().take(MAX_KEYS) {
        let job = &plan[row.job];
        let id = kdb.target.id();
        let history = histories
            .entry(id.to_string())
            .or_insert_with(|| History::read(&prepared.cache.store, id));
        let cache = &prepared.cache;
        let explanation = explain(plan, job, &row.key, &current, &cache.store, history)?;
        output.message("explained", &message(prepared, kdb, row, job, &explanation));
        if !output.json {
            print(prepared, kdb, row, job, &explanation, output);
        }
    }
    if found.len() > MAX_KEYS {
        output.warn(&format!("{} more keys contain `{text}`", found.len() - MAX_KEYS));
    }
    Ok(())
}

fn change_message(change: &Change) -> Value {
    let (how, from, to) = match &change.how {
        How::Added => ("added", None, None),
        How::Removed => ("removed", None, None),
        How::Changed(None) => ("changed", None, None),
        How::Changed(Some((from, to))) => ("changed", Some(from), Some(to)),
    };
    json!({ "what": change.what.name(), "name": change.name, "how": how, "from": from, "to": to })
}

fn message(
    prepared: &Prepared,
    kdb: &KdbPlan,
    row: &Row,
    job: &Job,
    explanation: &Explanation,
) -> Value {
    let (state, changes, nearest) = match &explanation.state {
        State::Stored(_) => ("stored", &[][..], None),
        State::Refused(_) => ("refused", &[][..], None),
        State::Changed(changes) => ("changed", &changes[..], None),
        State::Gone => ("gone", &[][..], None),
        State::Unwatched => ("unwatched", &[][..], None),
        State::New(None) => ("new", &[][..], None),
        State::New(Some((key, changes))) => ("new", &changes[..], Some(key)),
    };
    let changes: Vec<Value> = changes.iter().map(change_message).collect();
    let files: Vec<Value> = explanation
        .toolchain
        .iter()
        .map(|(what, name, digest)| json!({ "what": what.name(), "name": name, "sha256": digest }))
        .collect();
    let system: Vec<Value> = explanation
        .system_files
        .iter()
        .map(|(name, digest)| json!({ "name": name, "sha256": digest }))
        .collect();
    json!({
        "kernel_name": row.key.kernel_name, "kernel_args": row.key.kernel_args,
        "target": kdb.target, "job": job.digest, "state": state, "changes": changes,
        "nearest": nearest,
        "covers": {
            "compiler": prepared.plan[job.toolchain].identity,
            "toolchain": files, "program": job.program, "arguments": job.arguments,
            "sources": prepared.plan[job.source].files, "system_files": system,
        },
    })
}

fn print(
    prepared: &Prepared,
    kdb: &KdbPlan,
    row: &Row,
    job: &Job,
    explanation: &Explanation,
    output: &Output,
) {
    let line = |label: &str, text: &str| output.data(&format!("{label:<9} {text}"));
    line("key", &row.key.to_string());
    line("target", &kdb.target.to_string());
    line("job", &job.digest.to_string());
    match &explanation.state {
        State::Stored(info) => line("state", &format!("in the cache, {}", size(info.size))),
        State::Refused(failure) => {
            line("state", &format!("refused by an earlier run: {}", failure.kind));
            failure.output.lines().for_each(|said| line("", said));
        }
        State::Gone => line("state", "would be compiled: its object is no longer in the cache"),
        State::Unwatched => {
            line("state", "would be compiled: its compiler could not be watched last time")
        }
        State::Changed(changes) => {
            line("state", "would be compiled: it differs from when it was built last");
            print_changes(changes, output);
        }
        State::New(nearest) => {
            line("state", "would be compiled: it was never built here");
            if let Some((key, changes)) = nearest {
                line("", &format!("the nearest key that was is `{key}`"));
                print_changes(changes, output);
            }
        }
    }
    let count = |what: What| explanation.toolchain.iter().filter(|file| file.0 == what).count();
    line(
        "compiler",
        &format!(
            "{}: {} programs and libraries, {} device libraries, {} headers",
            prepared.plan[job.toolchain].identity,
            count(What::Compiler),
            count(What::DeviceLibrary),
            count(What::Header)
        ),
    );
    line(
        "command",
        &prepared.toolchains[job.toolchain.0].command_line(job.program, &job.arguments),
    );
    for (number, file) in prepared.plan[job.source].files.iter().enumerate() {
        let label = if number == 0 { "sources" } else { "" };
        line(label, &format!("{} {}", file.digest, file.path));
    }
    if !explanation.system_files.is_empty() {
        line("system", &format!("{} headers", explanation.system_files.len()));
    }
}

fn print_changes(changes: &[Change], output: &Output) {
    for (number, change) in changes.iter().enumerate() {
        let same = |other: &&Change| other.what == change.what;
        let before = changes[..number].iter().filter(same).count();
        if before < MAX_CHANGES || output.verbose {
            output.data(&format!("          {change}"));
        } else if before == MAX_CHANGES {
            let more = changes[number..].iter().filter(same).count();
            output.data(&format!("          and {more} more of the kind: --verbose tells them"));
        }
    }
}
