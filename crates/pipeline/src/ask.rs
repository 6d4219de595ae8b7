//! Asks the stock libMIOpen which kernels problems want, for every target.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_compile::SourceDirs;
use gfxpack_harvest::Options;
use gfxpack_miopen::{
    AskOptions, AskReport, AskedKey, DatabaseFile, Library, MIOPEN, Problem, ProblemFailure,
    Sources, Uses, ask, is_left_out_by_debian, network_names, read_problems,
};
use gfxpack_model::{KernelKey, Target, processors};
use gfxpack_plan::Location;
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_process::temporary_dir;
use gfxpack_stock_library::DeviceFault;
use serde::Serialize;

use crate::build::MadeKdb;
use crate::error::{self, Error, ErrorKind::Incomplete, Result};
use crate::inputs::{InputCollector, SourceSearch};
use crate::kdb_check::TargetCheck;
use crate::kernel_library::{FileFact, MiopenFacts, ProblemsFact};
use crate::ledger::{Absences, Absent, SkipList};
use crate::options::{CacheDir, InputOptions, LibraryOptions, ProblemOptions};
use crate::progress::{Event, Progress, Step, Unit};
use crate::skipped_lines;
use crate::stock_library::{self, LibraryAnswer};
use crate::text::{counted, file_name, joined};

/// By name of the list: the indices of its problems.
type Lists = Vec<(String, BTreeSet<u32>)>;

/// What libMIOpen is asked, and how.
pub struct Question {
    pub(crate) library: Library,
    /// The problems; lists and answers refer to them by index.
    pub problems: Vec<Problem>,
    lists: Lists,
    /// The sources that the library carries.
    pub(crate) sources: Sources,
    /// Names of the sources that kernels can be compiled from ([`AskOptions::sources`]).
    compilable: BTreeSet<String>,
    databases: Vec<PathBuf>,
    uses: Uses,
    /// How many processes ask at once.
    jobs: usize,
}

/// libMIOpen's answer: the kernels that it asks for.
pub struct MiopenAnswer {
    /// What it was asked.
    pub question: Question,
    /// The parameters of the query, as manifests record them.
    pub facts: MiopenFacts,
    /// By target: the keys, without duplicates, sorted.
    pub(crate) keys: BTreeMap<Target, Vec<AskedKey>>,
    /// Problems that MIOpen failed on.
    pub failures: Vec<(Target, ProblemFailure)>,
    /// Targets that MIOpen could not be asked for.
    pub(crate) unasked: Vec<(Target, Error)>,
}

impl Question {
    /// Reads the problems, and finds the library. If it has to be downloaded, it is unpacked into
    /// `cache`. Also returns what manifests record of the lists.
    ///
    /// # Errors
    /// If problems can't be read, or there is no library.
    pub(crate) fn read(
        inputs: &InputOptions,
        jobs: usize,
        cache: &CacheDir,
        progress: &dyn Progress,
    ) -> Result<(Self, Vec<ProblemsFact>)> {
        let cache = cache.directory()?;
        let ProblemOptions { problems, strict, library: options, .. } = &inputs.asking;
        let (problems, lists, facts) = read(problems, *strict, progress)?;
        let source = options.miopen.as_ref();
        let library = stock_library::locate(&MIOPEN, source, options, &cache, progress)?;
        let sources = Sources::in_library(&library)?;
        let compilable = compilable(&sources, inputs)?;
        let databases = stock_library::databases(options, &library)?;
        let uses = options.uses.unwrap_or(Uses::ALL);
        let question =
            Self { library, problems, lists, sources, compilable, databases, uses, jobs };
        Ok((question, facts))
    }

    /// The query options for a target, which must have compute units.
    pub(crate) fn options(&self, target: Target, scratch: &Path) -> Result<AskOptions> {
        let mut ask = AskOptions::new(target, &stock_library::probe()?, scratch);
        ask.databases = self.databases.clone();
        ask.uses = self.uses;
        ask.workers = self.jobs;
        ask.sources = self.compilable.clone();
        Ok(ask)
    }
}

/// Reads the problems and asks the library for each of `targets`, with this number of processes at
/// once; for one without compute units, once for each known count. If the library has to be
/// downloaded, it is unpacked into `cache`.
///
/// # Errors
/// If problems can't be read, there is no library, or it can't be asked.
pub fn ask_miopen(
    inputs: &InputOptions,
    targets: &[Target],
    jobs: usize,
    cache: &CacheDir,
    progress: &dyn Progress,
) -> Result<MiopenAnswer> {
    let (question, list_facts) = Question::read(inputs, jobs, cache, progress)?;
    let Question { library, problems, .. } = &question;
    let (scratch, cancelled) = (temporary_dir()?, || progress.cancel().is_cancelled());
    let skip_list = SkipList::read(&inputs.skip_refused)?;
    let mut keys = BTreeMap::new();
    let (mut failures, mut unasked) = (Vec::new(), Vec::new());
    let mut used: BTreeSet<DatabaseFile> = BTreeSet::new();
    let mut finds_no_assembler = false;
    let mut version = library.version.clone().unwrap_or_default();
    let exact: Vec<(&Target, Vec<Target>)> =
        targets.iter().map(|target| Ok((target, exact(target)?))).collect::<Result<_>>()?;
    for (target, exact) in exact {
        let mut merged: BTreeMap<KernelKey, AskedKey> = BTreeMap::new();
        let mut is_asked = false;
        for one in exact {
            let mut options = question.options(one.clone(), scratch.path())?;
            options.refused = skip_list.of(target);
            let show = &mut show_progress(progress, "asking");
            let answers = match ask(library, problems, &options, &cancelled, show) {
                Err(error) if error.cause::<DeviceFault>().is_some() => {
                    unasked.push((one, error));
                    continue;
                }
                answers => answers?,
            };
            debug_assert_eq!(answers.problems, *problems, "sorted, each once");
            is_asked = true;
            warn_of_databases(&answers, &inputs.asking.library, &one, progress)?;
            if !answers.version.is_empty() {
                version = answers.version;
            }
            finds_no_assembler |= !answers.finds_assembler;
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
        if is_asked {
            keys.insert(target.clone(), merged.into_values().collect());
        }
    }
    if keys.is_empty() && !unasked.is_empty() {
        return Err(unasked.remove(0).1);
    }
    let facts = MiopenFacts {
        version,
        origin: library.origin.clone(),
        sha256: library.sha256,
        uses: question.uses.to_string(),
        databases: used
            .into_iter()
            .map(|one| FileFact { file: file_name(&one.path), sha256: one.sha256 })
            .collect(),
        problems: list_facts,
        finds_no_assembler,
    };
    Ok(MiopenAnswer { question, facts, keys, failures, unasked })
}

/// Names of the sources that kernels can be compiled from; empty if the library's own can't be
/// read, since MIOpen itself may compile those.
fn compilable(sources: &Sources, inputs: &InputOptions) -> Result<BTreeSet<String>> {
    if sources.is_empty() {
        return Ok(BTreeSet::new());
    }
    let user = source_dirs(&inputs.source_dir)?;
    let names = sources.kernels.keys().map(String::as_str).chain(user.names());
    let names = names.filter(|name| !(inputs.dfsg() && is_left_out_by_debian(name)));
    Ok(names.map(str::to_owned).collect())
}

/// Lists the directories in which the user has sources.
pub(crate) fn source_dirs(dirs: &[PathBuf]) -> Result<SourceDirs> {
    if let Some(none) = dirs.iter().find(|dir| !dir.is_dir()) {
        return Err(error::usage(
            format!(
                "failed to find the source directory `{}`{}",
                none.display(),
                if none.exists() { ": it is a file" } else { "" }
            ),
            "check the path",
        ));
    }
    SourceDirs::list(dirs)
        .map_err(|error| error::usage(error::in_full(&error), error.hint().unwrap_or_default()))
}

/// Returns a callback that shows, in a step with this name, how many problems are
/// done.
pub(crate) fn show_progress(
    progress: &dyn Progress,
    step: &'static str,
) -> impl FnMut(usize, usize) {
    let step = Step::new(progress, step, Unit::Problems, 0);
    move |done, total| step.at(done as u64, total as u64)
}

/// Warns about database directories that were given but had no effect.
fn warn_of_databases(
    answers: &AskReport,
    library: &LibraryOptions,
    target: &Target,
    progress: &dyn Progress,
) -> Result<()> {
    if !library.miopen_db.is_empty() {
        for directory in &answers.unused_databases {
            progress
                .warning(&format!("{target}: `{}` has no database for it", directory.display()));
        }
    }
    if answers.models_left_out {
        progress.warning(&format!(
            "{target}: MIOpen {} can't read the heuristic models of its databases: they are left out",
            answers.version
        ));
    }
    for what in &answers.unanswered {
        progress.warning(&format!("{target}: a question of MIOpen got no answer: {what}"));
    }
    let only_hits = Uses { search: false, immediate: false, ..Uses::ALL };
    if library.uses == Some(only_hits) && answers.keys.is_empty() {
        return Err(error::usage(
            format!("failed to ask for {target}: no find database has any of the problems"),
            "give one by --miopen-db DIR, or ask for more by --uses",
        ));
    }
    if library.uses == Some(only_hits) && !answers.unrecorded.is_empty() {
        progress.warning(&format!(
            "{target}: {} in no find database, at least in one direction",
            counted(answers.unrecorded.len(), "problem")
        ));
    }
    Ok(())
}

/// Merges the answers for one key that were given for two counts of compute units.
fn merge(known: &mut AskedKey, other: AskedKey) {
    known.functions.extend(other.functions);
    for (problem, uses) in other.wanted {
        let known = known.wanted.entry(problem).or_default();
        *known = known.or(uses);
    }
}

/// The exact targets that a target without compute units stands for.
pub(crate) fn exact(target: &Target) -> Result<Vec<Target>> {
    if target.compute_units().is_some() {
        return Ok(vec![target.clone()]);
    }
    let processor = target.id().processor();
    let known = processors::by_name(processor).map_or(&[][..], |known| known.compute_units);
    if known.is_empty() {
        return Err(error::usage(
            format!("failed to ask for {target}: no count of compute units is known for it"),
            format!("name one, as {processor}@60"),
        ));
    }
    Ok(known.iter().map(|count| Target::new(target.id().clone(), Some(*count))).collect())
}

/// Tells who gives the name of a network for a list how to make its list.
fn check_is_file(path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    if path.exists() || !network_names().any(|network| network.name == name) {
        return Ok(());
    }
    Err(error::usage(
        format!("failed to read `{name}`: no file is called that"),
        format!("`gfxpack problems {name} -o {name}.txt` writes the list of this network"),
    ))
}

/// Reads lists of problems. Returns all problems, the lists, and what manifests record of them.
///
/// # Errors
/// If a list can't be read, or with `strict` one of its lines.
fn read(
    paths: &[PathBuf],
    strict: bool,
    progress: &dyn Progress,
) -> Result<(Vec<Problem>, Lists, Vec<ProblemsFact>)> {
    let step = Step::new(progress, "reading", Unit::Bytes, 0);
    let add = |bytes| step.add(bytes);
    let cancelled = || progress.cancel().is_cancelled();
    let options = Options { read: Some(&add), cancelled: Some(&cancelled) };
    let mut all: BTreeSet<Problem> = BTreeSet::new();
    let mut by_list = Vec::new();
    for path in paths {
        check_is_file(path)?;
        let read = read_problems(std::slice::from_ref(path), &options, strict)?;
        for file in &read.files {
            if let Some((line, why)) = &file.first_passed_over {
                progress.note(&format!(
                    "{}: {} skipped, the first at line {line}: {why}",
                    file.name,
                    counted(file.passed_over as usize, "record")
                ));
            }
            skipped_lines::report(&file.name, &file.skipped, false, progress)?;
        }
        all.extend(read.problems.iter().cloned());
        by_list.push((path, read.problems));
    }
    let all: Vec<Problem> = all.into_iter().collect();
    let number = |problem: &Problem| all.binary_search(problem).expect("all have it") as u32;
    let facts =
        by_list.iter().map(|(path, problems)| ProblemsFact::of_list(path, problems)).collect();
    let lists = by_list
        .into_iter()
        .map(|(path, problems)| (file_name(path), problems.iter().map(number).collect()))
        .collect();
    Ok((all, lists, facts))
}

impl LibraryAnswer for MiopenAnswer {
    /// Reports each target and problem once, even if MIOpen failed with several databases, and a
    /// problem whose failure does not depend on the target once.
    fn report_failures(&self, hint: &str, progress: &dyn Progress) -> Result<()> {
        let mut reported = HashSet::new();
        for (target, failure) in &self.failures {
            let of = failure.failure.hint().is_none().then_some(target);
            if !reported.insert((of, failure.problem, &failure.failure)) {
                continue;
            }
            let problem = &self.question.problems[failure.problem as usize];
            progress.event(Event::ProblemFailed(target, problem, &failure.failure));
        }
        for (target, error) in &self.unasked {
            progress.warning(&format!("{target}: {error}"));
        }
        if !self.unasked.is_empty() {
            let targets = joined(self.unasked.iter().map(|(target, _)| target));
            return Err(Error::new(Incomplete, format!("failed to ask for {targets}"), hint));
        }
        let failed: BTreeSet<u32> = self.failures.iter().map(|(_, one)| one.problem).collect();
        let own = self.failures.iter().find_map(|(_, one)| one.failure.hint());
        let total = counted(self.question.problems.len(), "problem");
        error::check_all_asked(failed.len(), &total, own.unwrap_or(hint))
    }

    fn add_keys(&self, to: &mut InputCollector, user: &SourceDirs, dfsg: bool) -> Result<()> {
        let own = self.write_sources(to, user)?;
        let library = match &self.question.library.version {
            Some(version) => format!("MIOpen {version}"),
            None => "libMIOpen".to_owned(),
        };
        let dirs = vec![&own, user];
        let mut search = SourceSearch { dirs, dfsg, of_library: true, found: HashMap::new() };
        let is_asked = |target: &Target| self.keys.contains_key(target);
        to.requests.retain(|request| is_asked(&request.target) || !request.keys.is_empty());
        for position in 0..to.requests.len() {
            let target = to.requests[position].target.clone();
            let known: HashSet<Arc<KernelKey>> =
                to.requests[position].keys.iter().map(|(key, _)| Arc::clone(&key.key)).collect();
            for (line, asked) in (1..).zip(self.keys.get(&target).into_iter().flatten()) {
                let key = &asked.key;
                if known.contains(key) || to.excludes(&target, key) {
                    continue;
                }
                let location = Location { file: library.as_str().into(), line };
                match KeyRequest::new(Arc::new(key.clone()), location.clone()) {
                    Ok(request) => to.add_key(position, Arc::new(request), &mut search),
                    Err(fault) => {
                        to.inputs.key_errors.push(location.error(&fault));
                        to.inputs.absent.add(&target, Absent::faulty(key, &fault));
                    }
                }
            }
        }
        if to.inputs.library.version.is_none() {
            to.inputs.library.version = self.question.library.version.clone();
        }
        to.inputs.library.prefix = self.question.library.layout().map(|layout| layout.prefix());
        to.inputs.library.miopen = Some(self.facts.clone());
        to.has_input = true;
        Ok(())
    }

    fn check(
        &self,
        kdbs: &[MadeKdb],
        absences: &Absences,
        progress: &dyn Progress,
        each: &mut dyn FnMut(&TargetCheck),
    ) -> Result<()> {
        let files: Vec<PathBuf> = kdbs.iter().map(|kdb| kdb.path.clone()).collect();
        let targets = kdbs.iter().map(|kdb| kdb.target.clone()).collect();
        self.question.check(&files, &targets, absences, progress, each)
    }

    fn coverage(&self, absences: &Absences, target: &Target) -> Vec<ListCoverage> {
        let without = absences.without_source();
        let absent: HashSet<&KernelKey> = absences.of(target).iter().map(|one| &one.key).collect();
        let one = |(list, problems): &(String, BTreeSet<u32>)| {
            let wants = |key: &&AskedKey| key.wanted.keys().any(|one| problems.contains(one));
            let wanted = self.keys.get(target).into_iter().flatten().filter(wants);
            let wanted: Vec<&KernelKey> = wanted.map(|asked| &asked.key).collect();
            ListCoverage {
                list: list.clone(),
                target: target.clone(),
                wanted: wanted.len(),
                with_source: wanted.iter().filter(|key| !without.contains(*key)).count(),
                built: wanted.iter().filter(|key| !absent.contains(*key)).count(),
            }
        };
        self.question.lists.iter().map(one).collect()
    }
}

impl MiopenAnswer {
    /// Writes the library's sources to a directory, and warns about sources of
    /// the user that differ from these.
    fn write_sources(&self, to: &mut InputCollector, user: &SourceDirs) -> Result<SourceDirs> {
        let dir = temporary_dir()?;
        self.question.sources.write_to_compile(dir.path())?;
        let own = SourceDirs::list(&[dir.path().to_owned()])?;
        to.inputs.own_sources.push(Arc::new(dir));
        let differing =
            self.question.sources.differing(|name| std::fs::read(user.find(name).ok()??).ok());
        if let Some(first) = differing.first() {
            to.inputs.warnings.push(format!(
                "{} of --source-dir differ from those in the library, which are compiled: {first}{}",
                counted(differing.len(), "file"),
                if differing.len() > 1 { ", …" } else { "" }
            ));
        }
        Ok(own)
    }
}

/// How many of the kernels that a list wants on a target were built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListCoverage {
    /// The list's name.
    pub list: String,
    /// The GPU.
    pub target: Target,
    /// Kernels that the list's problems want.
    pub wanted: usize,
    /// How many of them have a source.
    pub with_source: usize,
    /// How many of them are in the kdb.
    pub built: usize,
}

/// A key that libMIOpen asks for: a line of a key list (`--keys`).
#[derive(Debug, Serialize)]
pub struct KeyLine<'a> {
    #[serde(flatten)]
    key: &'a KernelKey,
    /// Targets whose MIOpen asks for it.
    targets: Vec<String>,
    /// How programs that ask for it use MIOpen.
    uses: String,
    /// Functions that the object must contain.
    functions: BTreeSet<&'a str>,
    /// Problems that want it, as MIOpenDriver's arguments.
    problems: Vec<String>,
}

/// Each key once, with all targets that want it; sorted by key.
pub fn key_lines(answer: &MiopenAnswer) -> Vec<KeyLine<'_>> {
    let mut by_key: BTreeMap<&KernelKey, Vec<(&Target, &AskedKey)>> = BTreeMap::new();
    for (target, keys) in &answer.keys {
        keys.iter().for_each(|key| by_key.entry(&key.key).or_default().push((target, key)));
    }
    let named = |problem: u32| answer.question.problems[problem as usize].to_string();
    let lines = by_key.into_iter().map(|(key, asked)| {
        let wanted = || asked.iter().flat_map(|(_, key)| &key.wanted);
        let problems: BTreeSet<u32> = wanted().map(|(problem, _)| *problem).collect();
        KeyLine {
            key,
            targets: asked.iter().map(|(target, _)| target.db_basename()).collect(),
            uses: wanted().fold(Uses::NONE, |all, (_, uses)| all.or(*uses)).to_string(),
            functions: asked.iter().flat_map(|(_, key)| &key.functions).map(|it| &**it).collect(),
            problems: problems.into_iter().map(named).collect(),
        }
    });
    lines.collect()
}
