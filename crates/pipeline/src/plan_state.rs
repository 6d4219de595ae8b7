//! The state of a plan before it is built: which jobs are done, the commands of all, what jobs'
//! digests cover, and why jobs would run.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_compile::{
    Cancel, Change, ChangeKind, ChangedPart, Explanation, FileSystemCache, History,
    SourceFiles as _, State, explain,
};
use gfxpack_model::SourceId;
use gfxpack_plan::plan::{Job, KdbPlan, Row};
use gfxpack_process::write_output;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::{self, Result};
use crate::prepare::Prepared;
use crate::text::size;

/// The subdirectory for objects that people compile by hand.
const OBJECTS: &str = "objects";
const COMMANDS: &str = "commands";
/// A directory with this file may be emptied and written again.
const MARK: &str = ".staged-by-gfxpack";

/// Looks all jobs up: which of them, by number, would not run since their objects are in the store,
/// and which since they have a kept refusal. Compilers may read the directories `admitted` besides
/// the sources. Nothing is written.
pub fn look_up(prepared: &Prepared, admitted: &[PathBuf]) -> (Vec<bool>, Vec<bool>) {
    let store = &prepared.cache.store;
    let (file_system, cancel) = (FileSystemCache::new(&prepared.cache.digests), Cancel::default());
    let declarer = prepared.declarer(&file_system, &cancel, admitted).without_writing();
    let state = |job: &Job| {
        let key = declarer.declared(job).key;
        let cached = store.lookup(key).is_some();
        (cached, !cached && store.refusal(key).is_some())
    };
    prepared.plan.jobs.par_iter().map(state).unzip()
}

/// A job's command, quoted for a shell.
pub fn command_line(prepared: &Prepared, job: &Job) -> String {
    prepared.toolchains[job.toolchain.0].command_line(job.program, &job.arguments)
}

/// Whether gfxpack stages something with this name.
fn is_staged(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    let number = name.strip_prefix("source-").map(str::parse::<usize>);
    number.is_some_and(|number| number.is_ok()) || [OBJECTS, COMMANDS].contains(&name)
}

/// Creates an empty directory, or removes what was staged in it before, so that
/// no file stays that the sources no longer have.
fn make_empty(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(error::io("create", dir))?;
    let entries = fs::read_dir(dir).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(error::io("read", dir))?;
    let mark = dir.join(MARK);
    if !entries.is_empty() && !mark.is_file() {
        return Err(error::usage(
            format!("failed to lay sources out in `{}`: it has other contents", dir.display()),
            "give a new or an empty directory, or one that this gfxpack laid sources out in",
        ));
    }
    write_output(&mark, |_| Ok(())).map_err(error::io("write", &mark))?;
    for path in entries.iter().filter(|it| is_staged(&it.file_name())).map(DirEntry::path) {
        // Of a link, only remove the link itself.
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(error::io("remove", &path))?;
    }
    Ok(())
}

/// Writes `DIR/source-N` for every source, and `DIR/commands`: one line per job
/// for a shell in DIR, which makes `objects/DIGEST.o`.
///
/// # Errors
/// If the directory has other contents, or a file can't be written.
pub fn stage(prepared: &Prepared, dir: &Path) -> Result<()> {
    make_empty(dir)?;
    let objects = dir.join(OBJECTS);
    fs::create_dir_all(&objects).map_err(error::io("create", &objects))?;
    for source in 0..prepared.plan.sources.len() {
        let to = dir.join(format!("source-{source}"));
        prepared.inputs.sources.lay_out(SourceId(source), &to)?;
    }
    let mut lines = String::new();
    for job in &prepared.plan.jobs {
        let (command, source, digest) = (command_line(prepared, job), job.source.0, job.digest);
        lines += &format!("cd source-{source} && {command} -o ../{OBJECTS}/{digest}.o\n");
    }
    let path = dir.join(COMMANDS);
    write_output(&path, |out| out.write_all(lines.as_bytes())).map_err(error::io("write", &path))
}

/// How many changes of one kind are listed, unless all are wanted.
const MAX_CHANGES: usize = 10;

/// A key of a plan, and why its job would run.
#[derive(Debug)]
pub struct ExplainedKey<'a> {
    kdb: &'a KdbPlan,
    row: &'a Row,
    job: &'a Job,
    /// What the job's digest covers, and what the store holds.
    explanation: Explanation,
}

/// Explains the first `most` keys that contain the text, passes each to `each`,
/// and returns how many more there are. Compilers may read the directories
/// `admitted` besides the sources. Writes nothing.
///
/// # Errors
/// If no key contains the text.
pub fn explain_keys(
    prepared: &Prepared,
    admitted: &[PathBuf],
    text: &str,
    most: usize,
    mut each: impl FnMut(&ExplainedKey<'_>),
) -> Result<usize> {
    let plan = &prepared.plan;
    let rows = plan.kdbs.iter().flat_map(|kdb| kdb.rows.iter().map(move |row| (kdb, row)));
    let found: Vec<(&KdbPlan, &Row)> =
        rows.filter(|(_, row)| row.key.to_string().contains(text)).collect();
    if found.is_empty() {
        return Err(error::usage(
            format!("failed to find a key that contains `{text}`"),
            "a part of the kernel's name and arguments is enough: `gfxpack plan \
             --json -` lists all keys",
        ));
    }
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    let (cancel, file_system) = (Cancel::default(), FileSystemCache::new(&prepared.cache.digests));
    let store = &prepared.cache.store;
    let declarer = prepared.declarer(&file_system, &cancel, admitted).without_writing();
    for (kdb, row) in found.iter().take(most) {
        let job = &plan[row.job];
        let id = kdb.target.id();
        let history = histories.entry(id.to_string()).or_insert_with(|| History::read(store, id));
        let explanation = explain(plan, job, &row.key, &declarer, store, history);
        each(&ExplainedKey { kdb, row, job, explanation });
    }
    Ok(found.len().saturating_sub(most))
}

impl ExplainedKey<'_> {
    /// The differences from the last build of this key.
    fn changes(&self) -> &[Change] {
        match &self.explanation.state {
            State::Changed(changes) => changes,
            _ => &[],
        }
    }

    /// The state, for machines and in words.
    fn state(&self) -> (&'static str, String) {
        let compiled = |why: &str| format!("would be compiled: {why}");
        match &self.explanation.state {
            State::Stored(info) => ("stored", format!("in the cache, {}", size(info.size))),
            State::Refused(failure) => {
                ("refused", format!("refused by an earlier run: {}", failure.kind))
            }
            State::Gone => ("gone", compiled("its object is no longer in the cache")),
            State::Unknown => ("unknown", compiled("its driver does not tell its commands")),
            State::Changed(_) => ("changed", compiled("it differs from when it was built last")),
            State::New => ("new", compiled("it was never built here")),
        }
    }

    /// How many of the toolchain's files changed in this way.
    fn count(&self, what: ChangedPart) -> usize {
        self.explanation.toolchain.iter().filter(|file| file.0 == what).count()
    }

    /// The explanation as lines of text.
    pub fn in_words(&self, prepared: &Prepared, all_changes: bool) -> Vec<String> {
        let Self { kdb, row, job, explanation } = self;
        let mut lines = Vec::new();
        let mut line = |label: &str, text: &str| lines.push(format!("{label:<9} {text}"));
        line("key", &row.key.to_string());
        line("target", &kdb.target.to_string());
        line("job", &job.digest.to_string());
        line("object", &explanation.key.to_string());
        line("state", &self.state().1);
        if let State::Refused(failure) = &explanation.state {
            failure.output.lines().for_each(|text| line("", text));
        }
        changes_in_words(self.changes(), all_changes).iter().for_each(|change| line("", change));
        let compiler = format!(
            "{}: {} programs and libraries, {} device libraries, {} headers",
            prepared.plan[job.toolchain].identity,
            self.count(ChangedPart::Compiler),
            self.count(ChangedPart::DeviceLibrary),
            self.count(ChangedPart::Header)
        );
        line("compiler", &compiler);
        line("command", &command_line(prepared, job));
        for (number, file) in prepared.plan[job.source].files.iter().enumerate() {
            let label = if number == 0 { "sources" } else { "" };
            line(label, &format!("{} {}", file.digest, file.path));
        }
        let (others, headers): (Vec<_>, Vec<_>) =
            explanation.inputs.iter().partition(|(what, ..)| *what != ChangedPart::SystemFile);
        for (what, name, digest) in others {
            line("", &format!("{digest} {what} `{name}`"));
        }
        if !headers.is_empty() {
            line("system", &format!("{} headers", headers.len()));
        }
        lines
    }

    /// The explanation as a message.
    pub fn message(&self, prepared: &Prepared) -> Value {
        let Self { kdb, row, job, explanation } = self;
        let changes: Vec<Value> = self.changes().iter().map(change_message).collect();
        let files: Vec<Value> = explanation
            .toolchain
            .iter()
            .map(|(what, name, digest)| json!({ "what": what, "name": name, "sha256": digest }))
            .collect();
        let inputs: Vec<Value> = explanation
            .inputs
            .iter()
            .map(|(what, name, digest)| json!({ "what": what, "name": name, "digest": digest }))
            .collect();
        json!({
            "kernel_name": row.key.kernel_name, "kernel_args": row.key.kernel_args,
            "target": kdb.target, "job": job.digest, "object": explanation.key,
            "state": self.state().0, "changes": changes,
            "covers": {
                "compiler": prepared.plan[job.toolchain].identity,
                "toolchain": files, "program": job.program, "arguments": job.arguments,
                "sources": prepared.plan[job.source].files, "inputs": inputs,
            },
        })
    }
}

/// The changes as text: the first few of each kind, or all.
fn changes_in_words(changes: &[Change], all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let same = |other: &&Change| other.what == change.what;
        let before = changes[..number].iter().filter(same).count();
        if before < MAX_CHANGES || all {
            lines.push(change.to_string());
        } else if before == MAX_CHANGES {
            let more = changes[number..].iter().filter(same).count();
            lines.push(format!("and {more} more of the kind: --verbose tells them"));
        }
    }
    lines
}

fn change_message(change: &Change) -> Value {
    let (how, from, to) = match &change.how {
        ChangeKind::Added => ("added", None, None),
        ChangeKind::Removed => ("removed", None, None),
        ChangeKind::Changed(None) => ("changed", None, None),
        ChangeKind::Changed(Some((from, to))) => ("changed", Some(from), Some(to)),
    };
    json!({ "what": change.what, "name": change.name, "how": how, "from": from, "to": to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_laid_out_before_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, apart) = (dir.path().join("st"), dir.path().join("apart"));
        fs::create_dir(&apart).unwrap();
        fs::write(apart.join("a.h"), "").unwrap();
        make_empty(&dir).unwrap();
        make_empty(&dir).unwrap();
        fs::create_dir_all(dir.join("source-0/sub")).unwrap();
        fs::write(dir.join("source-0/sub/old.h"), "").unwrap();
        std::os::unix::fs::symlink(&apart, dir.join("source-1")).unwrap();
        for own in ["Makefile", "source-code", "commands"] {
            fs::write(dir.join(own), "").unwrap();
        }
        make_empty(&dir).unwrap();
        let names = fs::read_dir(&dir).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [MARK, "Makefile", "source-code"]);
        assert!(apart.join("a.h").exists());
        assert!(make_empty(&apart).is_err());
    }
}
