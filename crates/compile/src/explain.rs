//! Explains why a job would run: the differences since its key was built last.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use gfxpack_model::{Digest, KernelKey, Language};
use gfxpack_plan::plan::{Job, Plan, Source};
use serde::{Deserialize, Serialize};

use crate::declare::{Declared, Declarer, Listed};
use crate::history::{self, History, HistoryRecord};
use crate::job::Failure;
use crate::store::{ObjectInfo, ObjectPurpose, ObjectStore};

/// The kind of input that differs; in JSON, its name in kebab case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ChangedPart {
    /// gfxpack itself.
    Gfxpack,
    /// A program of the toolchain, or a library that it loads.
    Compiler,
    /// Bitcode of the device libraries.
    DeviceLibrary,
    /// A header of HIP or of the compiler.
    Header,
    /// The source or what it includes.
    Source,
    /// The commands that the driver would run.
    Driver,
    /// A header of the system.
    SystemFile,
    /// A directory that compilers may read besides the sources.
    AllowRead,
    /// A macro given with `-D`.
    Define,
    /// Another argument.
    Argument,
}

impl fmt::Display for ChangedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gfxpack => "gfxpack",
            Self::Compiler => "compiler",
            Self::DeviceLibrary => "device library",
            Self::Header => "header of the toolchain",
            Self::Source => "source",
            Self::Driver => "driver",
            Self::SystemFile => "system header",
            Self::AllowRead => "--allow-read",
            Self::Define => "define",
            Self::Argument => "argument",
        })
    }
}

/// The kind of a difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It changed; with the old and the new value if they fit a line.
    Changed(Option<(String, String)>),
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The kind of input that differs.
    pub what: ChangedPart,
    /// The name of the input.
    pub name: String,
    /// How it differs.
    pub how: ChangeKind,
}

impl Change {
    fn new(what: ChangedPart, name: impl Into<String>, how: ChangeKind) -> Self {
        Self { what, name: name.into(), how }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` ", self.what, self.name)?;
        match &self.how {
            ChangeKind::Added => f.write_str("was added"),
            ChangeKind::Removed => f.write_str("was removed"),
            ChangeKind::Changed(None) => f.write_str("changed"),
            ChangeKind::Changed(Some((from, to))) => write!(f, "changed from `{from}` to `{to}`"),
        }
    }
}

/// The state of a job in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Its object is stored: nothing would run.
    Stored(ObjectInfo),
    /// Its refusal is kept: nothing would run, and the refusal would be reported again.
    Refused(Failure),
    /// It would be compiled, because of these differences since it was built last.
    Changed(Vec<Change>),
    /// It would be compiled: nothing differs, but the object is gone.
    Gone,
    /// It would be compiled: what its compiler would see is not known.
    Unknown,
    /// It would be compiled: its key was never built here.
    New,
}

/// The inputs that a job's digest covers, and why the job would run.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The toolchain's files.
    pub toolchain: Vec<(ChangedPart, String, Digest)>,
    /// What else the key of the object covers: the system's headers, the driver's commands.
    pub inputs: Vec<(ChangedPart, String, Digest)>,
    /// The key of the object.
    pub key: Digest,
    /// The state of the job in the store.
    pub state: State,
}

/// Explains one job for the key that asks for it.
pub fn explain(
    plan: &Plan,
    job: &Job,
    key: &KernelKey,
    declarer: &Declarer<'_>,
    store: &ObjectStore,
    history: &History,
) -> Explanation {
    let toolchain = declarer.toolchain(job.toolchain);
    let files = toolchain.covered_files.iter();
    let files: Vec<_> = files.filter(|(name, _)| decides(name, job.language)).cloned().collect();
    let Declared { key: object_key, inputs } = declarer.declared(job);
    let inputs = inputs.map(|inputs| inputs.listed.clone());
    let known = inputs.is_some();
    let inputs = inputs.unwrap_or_default();
    let changes = |record| changes(plan, job, (&files, &inputs), store, history, record);
    let state = match (store.lookup(object_key).ok_or(store.refusal(object_key)), history.get(key))
    {
        (Ok(info), _) => State::Stored(info),
        (Err(Some(failure)), _) => State::Refused(failure),
        (Err(None), _) if !known => State::Unknown,
        (Err(None), Some(record)) if record.key == object_key => State::Gone,
        (Err(None), Some(record)) => State::Changed(changes(record)),
        (Err(None), None) => State::New,
    };
    let known = |(name, digest): &(String, Digest)| (group(name), name.clone(), *digest);
    Explanation { toolchain: files.iter().map(known).collect(), inputs, key: object_key, state }
}

/// The kind of file that a name of `Toolchain::covered_files` stands for.
fn group(name: &str) -> ChangedPart {
    match name.split_once('/') {
        None => ChangedPart::Compiler,
        Some((_, file)) if file.ends_with(".bc") => ChangedPart::DeviceLibrary,
        Some(_) => ChangedPart::Header,
    }
}

/// Whether a language's objects depend on a file of the toolchain.
fn decides(name: &str, language: Language) -> bool {
    match group(name) {
        ChangedPart::Header => match language {
            Language::Hip => true,
            Language::OpenclC => !name.starts_with("hip/"),
            Language::Assembly => false,
        },
        ChangedPart::DeviceLibrary => language != Language::Assembly,
        _ => language == Language::Hip || !name.contains("hip"),
    }
}

/// The differences of a job, its toolchain's files and its other inputs from an earlier record.
fn changes(
    plan: &Plan,
    job: &Job,
    (toolchain_files, inputs): (&[(String, Digest)], &[Listed]),
    store: &ObjectStore,
    history: &History,
    record: &HistoryRecord,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let toolchain = &plan[job.toolchain];
    if record.toolchain != toolchain.digest {
        let mut old: Option<Vec<(String, Digest)>> =
            history::kept(store, history::TOOLCHAIN, record.toolchain);
        old.iter_mut().for_each(|old| old.retain(|(name, _)| decides(name, job.language)));
        let whole =
            Change::new(ChangedPart::Compiler, &toolchain.identity, ChangeKind::Changed(None));
        changes.extend(files(old, toolchain_files, group, whole));
    }
    let source = &plan[job.source];
    if record.source != source.digest() {
        let pairs = |source: &Source| -> Vec<(String, Digest)> {
            source.files.iter().map(|file| (file.path.clone(), file.digest)).collect()
        };
        let old: Option<Source> = history::kept(store, history::SOURCE, record.source);
        let old = old.filter(|old| old.digest() == record.source).as_ref().map(pairs);
        let whole = Change::new(ChangedPart::Source, &source.main, ChangeKind::Changed(None));
        changes.extend(files(old, &pairs(source), |_| ChangedPart::Source, whole));
    }
    if let Some(ObjectPurpose { arguments: old, .. }) = store.about(record.key) {
        changes.extend(arguments(&old, &job.arguments));
    }
    let old: Option<Vec<Listed>> = history::kept(store, history::INPUTS, record.inputs);
    if let Some(old) = old {
        let kinds: BTreeSet<ChangedPart> = old.iter().chain(inputs).map(|it| it.0).collect();
        for what in kinds {
            let of = |list: &[Listed]| -> Vec<(String, Digest)> {
                let own = list.iter().filter(|(part, ..)| *part == what);
                own.map(|(_, name, digest)| (name.clone(), *digest)).collect()
            };
            let whole = Change::new(what, "", ChangeKind::Changed(None));
            changes.extend(files(Some(of(&old)), &of(inputs), |_| what, whole));
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    if changes.is_empty() || history.head.gfxpack != version {
        let versions = (history.head.gfxpack.clone(), version.to_owned());
        let how = ChangeKind::Changed((versions.0 != versions.1).then_some(versions));
        changes.push(Change::new(ChangedPart::Gfxpack, "gfxpack", how));
    }
    changes.sort();
    changes
}

/// Files that differ, by name; `whole` if it is not known which files there were.
fn files(
    old: Option<Vec<(String, Digest)>>,
    new: &[(String, Digest)],
    what: impl Fn(&str) -> ChangedPart,
    whole: Change,
) -> Vec<Change> {
    let Some(old) = old else { return vec![whole] };
    // Several libraries may have one name.
    let mut by_name: BTreeMap<&str, [Vec<Digest>; 2]> = BTreeMap::new();
    for (at, files) in [&old[..], new].into_iter().enumerate() {
        for (name, digest) in files {
            by_name.entry(name).or_default()[at].push(*digest);
        }
    }
    let changed = by_name.into_iter().filter(|(_, [old, new])| old != new);
    let change = |(name, [old, new]): (&str, [Vec<Digest>; 2])| {
        let how = match (old.is_empty(), new.is_empty()) {
            (true, _) => ChangeKind::Added,
            (_, true) => ChangeKind::Removed,
            _ => ChangeKind::Changed(None),
        };
        Change::new(what(name), name, how)
    };
    changed.map(change).collect()
}

/// Arguments that differ: defines by name, others as whole arguments.
fn arguments(old: &[Arc<str>], new: &[Arc<str>]) -> Vec<Change> {
    let (old_defines, old_others) = split(old);
    let (new_defines, new_others) = split(new);
    let mut changes = Vec::new();
    for (&name, &to) in &new_defines {
        let how = match old_defines.get(name) {
            Some(&from) if from == to => continue,
            Some(&from) => ChangeKind::Changed(Some((from.to_owned(), to.to_owned()))),
            None => ChangeKind::Added,
        };
        changes.push(Change::new(ChangedPart::Define, name, how));
    }
    let gone = old_defines.keys().filter(|name| !new_defines.contains_key(*name));
    changes.extend(gone.map(|name| Change::new(ChangedPart::Define, *name, ChangeKind::Removed)));
    let mut count: BTreeMap<&str, i64> = BTreeMap::new();
    new_others.iter().for_each(|arg| *count.entry(arg).or_default() += 1);
    old_others.iter().for_each(|arg| *count.entry(arg).or_default() -= 1);
    changes.extend(count.into_iter().filter(|(_, count)| *count != 0).map(|(arg, count)| {
        Change::new(
            ChangedPart::Argument,
            arg,
            if count > 0 { ChangeKind::Added } else { ChangeKind::Removed },
        )
    }));
    if changes.is_empty() && old != new {
        changes.push(Change::new(ChangedPart::Argument, "their order", ChangeKind::Changed(None)));
    }
    changes
}

/// Macros and assembler symbols with their values, and all other arguments.
fn split(args: &[Arc<str>]) -> (BTreeMap<&str, &str>, Vec<&str>) {
    let mut defines = BTreeMap::new();
    let mut others = Vec::new();
    for arg in args.iter().map(|arg| &**arg) {
        match arg.strip_prefix("-D").or_else(|| arg.strip_prefix("-Wa,-defsym,")) {
            Some(define) => {
                let (name, value) = define.split_once('=').unwrap_or((define, "1"));
                defines.insert(name, value);
            }
            None => others.push(arg),
        }
    }
    (defines, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args_of(text: &str) -> Vec<Arc<str>> {
        text.split(' ').map(Arc::from).collect()
    }

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[&str]) {
        let mut changes = arguments(&args_of(old), &args_of(new));
        changes.sort();
        let texts: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn changed_arguments_are_listed_one_by_one() {
        check("-O3 -DA=1 a.cl", "-O3 -DA=1 a.cl", &[]);
        check("-DA=1 -DB", "-DA=2 -DB=1", &["define `A` changed from `1` to `2`"]);
        check(
            "-DA -O3",
            "-DB -O2",
            &[
                "define `A` was removed",
                "define `B` was added",
                "argument `-O2` was added",
                "argument `-O3` was removed",
            ],
        );
        check("-Wa,-defsym,n=4", "-Wa,-defsym,n=8", &["define `n` changed from `4` to `8`"]);
        check("-O3 -g", "-g -O3", &["argument `their order` changed"]);
    }
}
