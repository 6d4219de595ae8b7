//! Asks the stock libMIOpen which kernels problems want, for every target.

pub(crate) mod library;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_miopen::{
    Answers, AskEvent, AskOptions, AskedKey, DatabaseFile, Library, Problem, ProblemFailure,
    ReadOptions, Uses, Wanted, ask, read_problems,
};
use gfxpack_model::{Digest, KernelKey, Target, processors};
use gfxpack_plan::kernel_package::SourceLicense;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::Asking;
use crate::environment::Environment;
use crate::fail::{self, Outcome};
use crate::output::{Output, counted, shown};
use crate::progress::bar::{Bar, Unit};

/// What was asked, as manifests and packages say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedFacts {
    /// MIOpen's version; empty where the library does not tell it.
    pub(crate) version: String,
    /// Where the library comes from.
    pub(crate) origin: String,
    /// SHA-256 of the library.
    pub(crate) sha256: Digest,
    /// Whose kernels were asked for: `search,hit,immediate`.
    pub(crate) uses: String,
    /// Databases that it was asked with, beside asking without any.
    pub(crate) databases: Vec<FileFact>,
    /// Lists of problems.
    pub(crate) problems: Vec<ProblemsFact>,
    /// Keys that were asked for and whose source is not here, or left out by
    /// `--dfsg`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) without_source: Vec<KernelKey>,
}

/// A file, by what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileFact {
    file: String,
    sha256: Digest,
}

/// A list of problems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProblemsFact {
    /// The file's name.
    file: String,
    /// Problems in it.
    problems: usize,
    /// SHA-256 of their canonical lines, sorted.
    sha256: Digest,
}

impl ProblemsFact {
    /// The list's name, for people.
    pub(crate) fn name(&self) -> &str {
        self.file.trim_end_matches(".txt")
    }
}

impl AskedFacts {
    /// The names of the databases.
    pub(crate) fn databases_in_words(&self) -> String {
        let names: Vec<&str> = self.databases.iter().map(|one| one.file.as_str()).collect();
        names.join(", ")
    }

    /// The part that concerns one processor's kernels.
    pub(crate) fn of_processor(&self, processor: &str) -> Self {
        let is_its =
            |key: &&KernelKey| key.split_device().is_none_or(|(_, device)| device == processor);
        let without_source = self.without_source.iter().filter(is_its).cloned().collect();
        Self { without_source, ..self.clone() }
    }
}

/// What MIOpen asks for.
pub(crate) struct Asked {
    pub(crate) library: Library,
    pub(crate) facts: AskedFacts,
    /// The problems, as the answers number them.
    pub(crate) problems: Vec<Problem>,
    /// Lists of problems by name, with the numbers of their problems.
    pub(crate) lists: Vec<(String, BTreeSet<u32>)>,
    /// By target: each key once, sorted.
    pub(crate) keys: BTreeMap<Target, Vec<AskedKey>>,
    /// Problems that MIOpen failed on.
    pub(crate) failures: Vec<(Target, ProblemFailure)>,
}

/// Reads the problems and asks for every target; one without compute units
/// gets what MIOpen asks for with any count that is known.
pub(crate) fn run(
    asking: &Asking,
    targets: &[Target],
    jobs: usize,
    cache: &Path,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<Asked> {
    let (problems, lists, problem_facts) = read(&asking.problems, cancel, output)?;
    let library = library::locate(&asking.library, cache, environment, cancel, output)?;
    let databases = library::databases(&asking.library, &library)?;
    let uses = asking.library.uses.unwrap_or(Uses::ALL);
    let probe = library::probe()?;
    let scratch = tempfile::Builder::new()
        .prefix("gfxpack-ask-")
        .tempdir()
        .map_err(fail::io("create", &std::env::temp_dir()))?;
    let mut keys = BTreeMap::new();
    let mut failures = Vec::new();
    let mut used: BTreeSet<DatabaseFile> = BTreeSet::new();
    let mut version = library.version.clone().unwrap_or_default();
    let exact: Vec<(&Target, Vec<Target>)> =
        targets.iter().map(|target| Ok((target, exact(target)?))).collect::<anyhow::Result<_>>()?;
    for (target, exact) in exact {
        let mut merged: BTreeMap<KernelKey, AskedKey> = BTreeMap::new();
        for one in exact {
            let mut options = AskOptions::new(one.clone(), &probe, scratch.path());
            options.databases.clone_from(&databases);
            options.uses = uses;
            options.workers = jobs;
            let cancelled = || cancel.is_cancelled();
            let bar = Bar::new(output, "asking", Unit::Problems, 0);
            let mut event = |event: AskEvent<'_>| {
                if let AskEvent::Progress { done, total } = event {
                    bar.at(done as u64, total as u64);
                }
            };
            let answers = ask(&library, &problems, &options, &cancelled, &mut event)?;
            debug_assert_eq!(answers.problems, problems, "sorted, each once");
            drop(bar);
            tell_of_databases(&answers, asking, &one, output)?;
            if !answers.version.is_empty() {
                version = answers.version;
            }
            used.extend(answers.databases);
            failures.extend(answers.failures.into_iter().map(|failure| (one.clone(), failure)));
            for key in answers.keys {
                match merged.get_mut(&key.key) {
                    Some(known) => merge(known, key),
                    None => {
                        merged.insert(key.key.clone(), key);
                    }
                }
            }
        }
        keys.insert(target.clone(), merged.into_values().collect());
    }
    let facts = AskedFacts {
        version,
        origin: library.origin.clone(),
        sha256: library.sha256,
        uses: uses.to_string(),
        databases: used
            .into_iter()
            .map(|one| FileFact { file: name_of(&one.path), sha256: one.sha256 })
            .collect(),
        problems: problem_facts,
        without_source: Vec::new(),
    };
    Ok(Asked { library, facts, problems, lists, keys, failures })
}

/// Says what was not asked as somebody would expect who named databases.
fn tell_of_databases(
    answers: &Answers,
    asking: &Asking,
    target: &Target,
    output: &Output,
) -> anyhow::Result<()> {
    if !asking.library.miopen_db.is_empty() {
        for directory in &answers.unused_databases {
            output.warn(&format!("{target}: `{}` has no database for it", directory.display()));
        }
    }
    if answers.models_left_out {
        output.warn(&format!(
            "{target}: MIOpen {} can't read the heuristic models of its databases: they are left out",
            answers.version
        ));
    }
    for what in &answers.unanswered {
        output.warn(&format!("{target}: MIOpen got no answer to {what}"));
    }
    let only_hits = Uses { search: false, immediate: false, ..Uses::ALL };
    if asking.library.uses == Some(only_hits) && answers.keys.is_empty() {
        return Err(fail::usage(
            format!("failed to ask for {target}: no find database has any of the problems"),
            "give one by --miopen-db DIR, or ask for more by --uses",
        ));
    }
    if asking.library.uses == Some(only_hits) && !answers.unrecorded.is_empty() {
        output.warn(&format!(
            "{target}: {} in no find database, at least in one direction",
            counted(answers.unrecorded.len(), "problem")
        ));
    }
    Ok(())
}

/// Adds what another count of compute units asks of the same key.
fn merge(known: &mut AskedKey, other: AskedKey) {
    known.functions.extend(other.functions);
    let mut wanted: BTreeMap<u32, Uses> =
        known.wanted.iter().map(|one| (one.problem, one.uses)).collect();
    for one in other.wanted {
        let uses = wanted.entry(one.problem).or_default();
        *uses = uses.or(one.uses);
    }
    known.wanted = wanted.into_iter().map(|(problem, uses)| Wanted { problem, uses }).collect();
}

/// The targets that a target without compute units stands for.
pub(crate) fn exact(target: &Target) -> anyhow::Result<Vec<Target>> {
    if target.compute_units().is_some() {
        return Ok(vec![target.clone()]);
    }
    let processor = target.id().processor();
    let known = processors::by_name(processor).map_or(&[][..], |known| known.compute_units);
    if known.is_empty() {
        return Err(fail::usage(
            format!("failed to ask for {target}: no count of compute units is known for it"),
            format!("name one, as {processor}@60"),
        ));
    }
    Ok(known.iter().map(|count| Target::new(target.id().clone(), Some(*count))).collect())
}

/// Problems, lists with the numbers of theirs, and what manifests say of them.
pub(crate) type Lists = (Vec<Problem>, Vec<(String, BTreeSet<u32>)>, Vec<ProblemsFact>);

pub(crate) fn read(paths: &[PathBuf], cancel: &Cancel, output: &Output) -> anyhow::Result<Lists> {
    let bar = Bar::new(output, "reading", Unit::Bytes, 0);
    let add = |bytes| bar.add(bytes);
    let cancelled = || cancel.is_cancelled();
    let options = ReadOptions { read: Some(&add), cancelled: Some(&cancelled) };
    let mut all: BTreeSet<Problem> = BTreeSet::new();
    let mut by_list = Vec::new();
    for path in paths {
        let read = read_problems(std::slice::from_ref(path), options)?;
        for file in &read.files {
            if let Some((line, why)) = &file.first_passed_over {
                bar.above(|| {
                    output.say(&format!(
                        "{}: {} passed over, the first at line {line}: {why}",
                        file.name,
                        counted(file.passed_over as usize, "record")
                    ));
                });
            }
        }
        all.extend(read.problems.iter().cloned());
        by_list.push((name_of(path), read.problems));
    }
    let all: Vec<Problem> = all.into_iter().collect();
    let number = |problem: &Problem| all.binary_search(problem).expect("all have it") as u32;
    let facts = by_list
        .iter()
        .map(|(file, problems)| {
            let text: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
            let sha256 = Digest::of(text.as_bytes());
            ProblemsFact { file: file.clone(), problems: problems.len(), sha256 }
        })
        .collect();
    let lists = by_list
        .into_iter()
        .map(|(name, problems)| (name, problems.iter().map(number).collect()))
        .collect();
    Ok((all, lists, facts))
}

/// The file's name; a list's directory is nobody's business.
fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| shown(path), shown)
}

/// Says which problems MIOpen failed on, once for all databases.
pub(crate) fn report_failures(asked: &Asked, output: &Output) {
    let mut told = HashSet::new();
    for (target, failure) in &asked.failures {
        if !told.insert((target, failure.problem, &failure.failure)) {
            continue;
        }
        let problem = &asked.problems[failure.problem as usize];
        output.message(
            "problem-failed",
            &json!({
                "target": target, "problem": problem.to_string(), "reason": failure.failure.to_string(),
            }),
        );
        if !output.json {
            output.warn(&format!("{target}: `{problem}`: {}", failure.failure));
        }
    }
}

/// The outcome where problems failed, with a hint that fits most reasons; none
/// where all went well.
pub(crate) fn failed(asked: &Asked, hint: &'static str) -> Option<Outcome> {
    let failed: BTreeSet<u32> = asked.failures.iter().map(|(_, one)| one.problem).collect();
    let own = asked.failures.iter().find_map(|(_, one)| one.failure.hint());
    let hint = own.unwrap_or(hint);
    let (failed, total) = (failed.len(), asked.problems.len());
    (failed > 0).then_some(Outcome::ProblemsFailed { failed, total, hint })
}

/// Whose the texts in a library are, by their own heads; none where a head
/// says nothing of it.
pub(crate) fn licence_of(text: &[u8]) -> Option<SourceLicense> {
    let head = String::from_utf8_lossy(&text[..text.len().min(HEAD)]).into_owned();
    if !head.contains("MIT License") && !head.contains("SPDX-License-Identifier: MIT") {
        return None;
    }
    let holders: Vec<String> = head
        .lines()
        .filter_map(|line| {
            line.split_once("Copyright (c) ").map(|(_, rest)| rest.trim().to_owned())
        })
        .collect();
    let copyright = if holders.is_empty() { return None } else { holders.join("\n") };
    Some(SourceLicense { license: "MIT".to_owned(), copyright })
}

/// Bytes of a text that are searched for its licence.
const HEAD: usize = 4096;

/// `MIOpen 3.4.0 (Debian sid, libmiopen1 6.4.3+dfsg-1; sha256 0123456789ab)`.
pub(crate) fn library_in_words(facts: &AskedFacts) -> String {
    let sha256 = facts.sha256.to_string();
    let version = if facts.version.is_empty() { "of unknown version" } else { &facts.version };
    format!("MIOpen {version} ({}; sha256 {})", facts.origin, &sha256[..12])
}

/// Of a list's kernels on a target: how many there are, and how many a build
/// made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Coverage {
    /// The list's name.
    list: String,
    target: Target,
    /// Kernels that its problems want.
    wanted: usize,
    /// Of these, the ones whose source is here.
    with_source: usize,
    /// Of these, the ones that are in the kdb.
    built: usize,
}

/// How much of every list the kdb of a target holds, which has these keys.
pub(crate) fn coverage<'k>(
    asked: &Asked,
    facts: &AskedFacts,
    target: &Target,
    built: impl Iterator<Item = &'k KernelKey>,
) -> Vec<Coverage> {
    let without: HashSet<&KernelKey> = facts.without_source.iter().collect();
    let built: HashSet<&KernelKey> = built.collect();
    let one = |(list, problems): &(String, BTreeSet<u32>)| {
        let wants = |key: &&AskedKey| key.wanted.iter().any(|one| problems.contains(&one.problem));
        let mut coverage = Coverage {
            list: list.clone(),
            target: target.clone(),
            wanted: 0,
            with_source: 0,
            built: 0,
        };
        for key in asked.keys[target].iter().filter(wants) {
            let has_source = !without.contains(&key.key);
            coverage.wanted += 1;
            coverage.with_source += usize::from(has_source);
            coverage.built += usize::from(built.contains(&key.key));
        }
        coverage
    };
    asked.lists.iter().map(one).collect()
}

/// Says how much of every list is in the packages.
pub(crate) fn report_coverage(coverage: &[Coverage], facts: &AskedFacts, output: &Output) {
    for one in coverage {
        output.message("coverage", one);
        let without = match one.wanted - one.with_source {
            0 => String::new(),
            without => format!("; {without} more have no source here"),
        };
        output.say(&format!(
            "{}, {}: {} of {} that {} has sources for{without}",
            one.list.trim_end_matches(".txt"),
            one.target,
            one.built,
            counted(one.with_source, "kernel"),
            library_in_words(facts)
        ));
    }
}
