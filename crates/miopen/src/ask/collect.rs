//! Collects the answers: keys, the problems that need them, and failures.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use gfxpack_model::KernelKey;

use super::Uses;
use super::plan::{Phase, Task};
use super::session::Session;
use crate::failure::Failure;
use crate::probe::{ProbeAnswer, Step};
use crate::problem::Problem;
use crate::stage::DatabaseFile;

/// Everything that a library asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskReport {
    /// The library's version, as it reports it: `3.4.0`.
    pub version: String,
    /// The problems, sorted, each once; others refer to them by number.
    pub problems: Vec<Problem>,
    /// The kernels, sorted by name and arguments.
    pub keys: Vec<AskedKey>,
    /// Failures, sorted by problem.
    pub failures: Vec<ProblemFailure>,
    /// The databases that were used, sorted.
    pub databases: Vec<DatabaseFile>,
    /// Directories of databases that contain nothing for the target.
    pub unused_databases: Vec<PathBuf>,
    /// Whether heuristic models of the directories were left out because this version of the
    /// library can't read them.
    pub models_left_out: bool,
    /// Whether the library finds an assembler itself, without which programs use no kernels in
    /// assembly.
    pub finds_assembler: bool,
    /// Problems that no find database contains in all of their directions; empty if they were not
    /// looked up.
    pub unrecorded: Vec<u32>,
    /// Requests of the library that the stand-ins could not answer.
    pub unanswered: Vec<String>,
}

/// A kernel that a library asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedKey {
    /// The key by which it is looked up.
    pub key: KernelKey,
    /// The functions that its object must contain.
    pub functions: BTreeSet<String>,
    /// The problems that need it, by their numbers in [`AskReport::problems`], and the uses in which
    /// they do.
    pub wanted: BTreeMap<u32, Uses>,
}

/// A failure of a problem with some directory of databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemFailure {
    /// The problem's number.
    pub problem: u32,
    /// The failure.
    pub failure: Failure,
}

/// The answers collected so far.
#[derive(Debug)]
pub(crate) struct AnswerCollector<'a> {
    problems: &'a [Problem],
    uses: Uses,
    keys: BTreeMap<KernelKey, AskedKey>,
    failures: Failures,
    /// Names of kernels in a find database's record, by problem.
    hits: HashMap<u32, BTreeSet<String>>,
    /// Directions that some find database contains, by problem.
    recorded: HashMap<u32, BTreeSet<String>>,
    looked_up: bool,
    unanswered: BTreeSet<String>,
}

impl<'a> AnswerCollector<'a> {
    pub(crate) fn new(problems: &'a [Problem], uses: Uses) -> Self {
        Self {
            problems,
            uses,
            keys: BTreeMap::new(),
            failures: Failures::default(),
            hits: HashMap::new(),
            recorded: HashMap::new(),
            looked_up: uses.hit && uses == Uses { hit: true, ..Uses::NONE },
            unanswered: BTreeSet::new(),
        }
    }

    pub(crate) fn add(&mut self, phase: &Phase, task: Task, answer: ProbeAnswer) {
        let problem = task.problem;
        self.failures.add(phase, problem, failures_of(phase, &answer));
        self.note_records(phase, problem, &answer);
        for (key, lookups) in answer.keys {
            // A kernel that is withheld is asked for all the same.
            let mut uses = lookups.asked.or(lookups.missed);
            if uses.hit {
                self.hits.entry(problem).or_default().insert(key.kernel_name.clone());
            }
            // If the record names the solver, the library may ask for any form of its kernels.
            let is_hit = |names: &BTreeSet<String>| names.contains(&key.kernel_name);
            if phase.is_primed() && uses.immediate && self.hits.get(&problem).is_some_and(is_hit) {
                uses.hit = true;
            }
            let uses = uses.and(self.uses);
            if uses == Uses::NONE {
                continue;
            }
            let entry = self.keys.entry(key).or_insert_with_key(|key| AskedKey {
                key: key.clone(),
                functions: BTreeSet::new(),
                wanted: BTreeMap::new(),
            });
            entry.functions.extend(lookups.functions);
            let wanted = entry.wanted.entry(problem).or_default();
            *wanted = wanted.or(uses);
        }
        self.unanswered.extend(answer.unanswered);
    }

    fn note_records(&mut self, phase: &Phase, problem: u32, answer: &ProbeAnswer) {
        if phase.runs[0].contains(&Step::Hit) {
            self.looked_up = true;
            let directions = directions(&self.problems[problem as usize]);
            let recorded = directions.difference(&answer.unrecorded).cloned();
            self.recorded.entry(problem).or_default().extend(recorded);
        }
    }

    /// All answers, sorted.
    pub(crate) fn finish(self, session: &Session<'_>) -> AskReport {
        let unrecorded = (0..).zip(self.problems).filter(|(number, problem)| {
            let recorded = self.recorded.get(number);
            !directions(problem).iter().all(|d| recorded.is_some_and(|all| all.contains(d)))
        });
        let unrecorded = unrecorded.map(|(number, _)| number);
        let (databases, unused_databases) = session.used_databases();
        AskReport {
            version: session.version.clone(),
            problems: self.problems.to_vec(),
            keys: self.keys.into_values().collect(),
            failures: self.failures.finish(),
            databases,
            unused_databases,
            models_left_out: session.models_left_out,
            finds_assembler: session.finds_assembler,
            unrecorded: if self.looked_up { unrecorded.collect() } else { Vec::new() },
            unanswered: self.unanswered.into_iter().collect(),
        }
    }
}

/// Failures: the number of the problem, that of the directory of databases, and the failure.
#[derive(Debug, Default)]
pub(crate) struct Failures(BTreeSet<(u32, Option<usize>, Failure)>);

impl Failures {
    pub(crate) fn add(&mut self, phase: &Phase, problem: u32, failures: BTreeSet<Failure>) {
        self.0.extend(failures.into_iter().map(|failure| (problem, phase.database, failure)));
    }

    /// All failures, sorted by problem.
    pub(crate) fn finish(self) -> Vec<ProblemFailure> {
        let failures = self.0.into_iter();
        failures.map(|(problem, _, failure)| ProblemFailure { problem, failure }).collect()
    }
}

/// The failures in an answer that a missing kernel does not explain: without one a search fails,
/// and with releases that compile in threads, the whole program.
pub(crate) fn failures_of(phase: &Phase, answer: &ProbeAnswer) -> BTreeSet<Failure> {
    let mut failures = BTreeSet::from_iter(answer.early_end.clone());
    failures.extend(answer.compiles.iter().cloned().map(Failure::Compiled));
    // The one solver that is asked after primers can't compute many of the problems.
    if !phase.is_primed() {
        failures.extend(answer.refused.iter().cloned());
        // A program may need no kernel itself, if it uses rocBLAS.
        if answer.keys.is_empty() && failures.is_empty() && !phase.is_natural() {
            failures.insert(Failure::NothingAsked);
        }
    }
    if answer.keys.values().any(|lookups| lookups.missed != Uses::NONE) {
        failures.retain(|failure| {
            use Failure::{Compiled, Driver, Exited, Killed, Refused};
            !matches!(failure, Compiled(_) | Driver(_) | Exited(_) | Killed(_) | Refused { .. })
        });
    }
    failures
}

/// The letters of a convolution's directions.
fn directions(problem: &Problem) -> BTreeSet<String> {
    let Problem::Convolution(convolution) = problem else { return BTreeSet::new() };
    let directions = convolution.directions;
    [(directions.forward, "F"), (directions.backward_data, "B"), (directions.backward_weights, "W")]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, letter)| letter.to_owned())
        .collect()
}
