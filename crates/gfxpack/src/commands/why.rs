//! `plan --explain`: what a job's digest covers, and why it would run.

use gfxpack_compile::{Change, State, What};
use gfxpack_pipeline::explain::{ExplainedKey, explain_keys};
use gfxpack_pipeline::plan_state::command_line;
use gfxpack_pipeline::prepare::Prepared;

use crate::fail::Result;
use crate::output::{Output, size};

/// Keys that are explained in one run.
const MAX_KEYS: usize = 20;
/// Changes of one kind that are told one by one.
const MAX_CHANGES: usize = 10;

/// Explains every key that contains the text.
pub(crate) fn run(prepared: &Prepared, text: &str, output: &Output) -> Result {
    let more = explain_keys(prepared, text, MAX_KEYS, |explained| {
        if output.messages {
            output.message("explained", &explained.message(prepared));
        }
        if !output.json {
            print(prepared, explained, output);
        }
    })?;
    if more > 0 {
        output.warn(&format!("{more} more keys contain `{text}`"));
    }
    Ok(())
}

fn print(prepared: &Prepared, explained: &ExplainedKey<'_>, output: &Output) {
    let ExplainedKey { kdb, row, job, explanation, .. } = explained;
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
        State::Changed(_) => {
            line("state", "would be compiled: it differs from when it was built last");
        }
        State::New(nearest) => {
            line("state", "would be compiled: it was never built here");
            if let Some((key, _)) = nearest {
                line("", &format!("the nearest key that was is `{key}`"));
            }
        }
    }
    print_changes(explained.changes(), output);
    line(
        "compiler",
        &format!(
            "{}: {} programs and libraries, {} device libraries, {} headers",
            prepared.plan[job.toolchain].identity,
            explained.count(What::Compiler),
            explained.count(What::DeviceLibrary),
            explained.count(What::Header)
        ),
    );
    line("command", &command_line(prepared, job));
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
