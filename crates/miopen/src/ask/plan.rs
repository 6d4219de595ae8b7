//! The requests to the probe, planned before it is started: phases, one for each setup of the
//! library, and their tasks.

use std::collections::BTreeSet;

use super::options::Uses;
use crate::failure::Failure;
use crate::probe::{Answers, Solvers, Step, worded};
use crate::problem::{Convolution, Problem};

/// A solver whose kernels depend on the first problem of a process in which it computes weights: it
/// then decides how many elements it reads at a time.
///
/// Source: ROCm/MIOpen 2d1fd997a, `ConvOclBwdWrW53::GetSolution`: `read_unit`
/// is a static variable of the function.
pub(crate) const PRIMED_SOLVER: &str = "ConvOclBwdWrW53";

/// First problems for each possible decision: widths that are divisible by four, by three, by two,
/// and only by one.
const PRIMERS: [&str; 4] = [
    "conv -n 4 -c 8 -H 12 -W 12 -k 8 -y 3 -x 3 -p 1 -q 1 -F 4",
    "conv -n 4 -c 8 -H 9 -W 9 -k 8 -y 3 -x 3 -p 1 -q 1 -F 4",
    "conv -n 4 -c 8 -H 10 -W 10 -k 8 -y 3 -x 3 -p 1 -q 1 -F 4",
    "conv -n 4 -c 8 -H 7 -W 7 -k 8 -y 3 -x 3 -p 1 -q 1 -F 4",
];

/// Find modes: normal, fast, hybrid and dynamic hybrid; releases after 3.5 add two that verify
/// records. A mode that a release does not know is skipped.
///
/// Source: ROCm/MIOpen 2d1fd997a, `FindMode::Values`.
const FIND_MODES: [u8; 6] = [1, 2, 3, 5, 6, 7];

/// Problems in a fixed order, each once.
#[derive(Debug)]
pub(crate) struct ProblemSet {
    pub(crate) problems: Vec<Problem>,
    /// The text of each convolution for the probe.
    texts: Vec<ProblemText>,
}

#[derive(Debug, Clone)]
enum ProblemText {
    Convolution {
        whole: String,
        /// The same with the gradient of the weights as the only direction, if that is computed.
        weights: Option<String>,
    },
    Driver,
    Invalid(Failure),
}

/// How a problem is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method<'a> {
    /// By the probe, with this request.
    Probe(&'a str),
    /// By MIOpenDriver, with these arguments.
    Driver(&'a str),
}

/// One setup of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phase {
    /// The number of the directory of databases, if any.
    pub(crate) database: Option<usize>,
    pub(crate) solvers: Solvers,
    /// Whether the library is told of an assembler. Without one it considers no solver in assembly
    /// applicable, and takes others.
    pub(crate) assembler: bool,
    /// The kernels that the stand-in has.
    pub(crate) answers: Answers,
    /// Lists of steps, each run in a process of its own.
    pub(crate) runs: Vec<Vec<Step>>,
    /// Each problem is computed after each of these.
    pub(crate) stems: Vec<String>,
}

/// A problem in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    /// The number of the problem in [`ProblemSet::problems`].
    pub(crate) problem: u32,
    /// The number of the stem, or 0.
    pub(crate) stem: usize,
    /// The number of the run in [`Phase::runs`].
    pub(crate) run: usize,
}

impl ProblemSet {
    pub(crate) fn new(problems: &[Problem]) -> Self {
        let problems: BTreeSet<&Problem> = problems.iter().collect();
        let problems: Vec<Problem> = problems.into_iter().cloned().collect();
        let texts = problems.iter().map(ProblemText::for_problem).collect();
        Self { problems, texts }
    }

    /// Problems that can't be asked, with the reason.
    pub(crate) fn invalid(&self) -> impl Iterator<Item = (u32, &Failure)> {
        (0..).zip(&self.texts).filter_map(|(number, text)| match text {
            ProblemText::Invalid(failure) => Some((number, failure)),
            _ => None,
        })
    }

    /// How a task's problem is computed in a phase, if at all.
    pub(crate) fn method(&self, phase: &Phase, task: Task) -> Option<Method<'_>> {
        let number = task.problem as usize;
        match (&self.texts[number], &self.problems[number]) {
            (ProblemText::Convolution { weights, .. }, _) if phase.is_primed() => {
                weights.as_deref().map(Method::Probe)
            }
            (ProblemText::Convolution { whole, .. }, Problem::Convolution(convolution)) => {
                let directions = convolution.directions;
                let biased =
                    convolution.bias && (directions.forward || directions.backward_weights);
                (biased || !phase.is_bias()).then_some(Method::Probe(whole))
            }
            (ProblemText::Driver, Problem::Driver(line)) if phase.solvers == Solvers::All => {
                Some(Method::Driver(line))
            }
            _ => None,
        }
    }

    /// The tasks of a phase.
    pub(crate) fn tasks(&self, phase: &Phase) -> Vec<Task> {
        let count = u32::try_from(self.problems.len()).expect("fewer than 2^32 problems");
        let stems = if phase.is_primed() { 1..=phase.stems.len() } else { 0..=0 };
        let runs = || 0..phase.runs.len();
        stems
            .flat_map(|stem| runs().map(move |run| (stem, run)))
            .flat_map(|(stem, run)| (0..count).map(move |problem| Task { problem, stem, run }))
            .filter(|task| self.method(phase, *task).is_some())
            .collect()
    }
}

impl ProblemText {
    fn for_problem(problem: &Problem) -> Self {
        let Problem::Convolution(convolution) = problem else { return Self::Driver };
        if let Err(error) = convolution.check() {
            return Self::Invalid(Failure::Invalid(error.to_string()));
        }
        let Some(whole) = worded(convolution) else {
            return Self::Invalid(Failure::Invalid("it has no output".to_owned()));
        };
        let weights = convolution.directions.backward_weights.then(|| {
            let mut weights: Convolution = convolution.clone();
            weights.directions.forward = false;
            weights.directions.backward_data = false;
            worded(&weights).expect("it has an output")
        });
        Self::Convolution { whole, weights }
    }
}

impl Phase {
    /// With every kernel, and without databases.
    fn of(solvers: Solvers, runs: Vec<Vec<Step>>) -> Self {
        let (answers, stems) = (Answers::All, Vec::new());
        Self { database: None, solvers, assembler: true, answers, runs, stems }
    }

    /// Asks for all kernels with this directory of databases, or without any.
    pub(crate) fn exhaustive(database: Option<usize>, uses: Uses, has_find_db: bool) -> Self {
        // The other steps use the solutions of the search.
        let mut steps = vec![Step::Search];
        if uses.immediate {
            steps.push(Step::Immediate);
        }
        if uses.hit && has_find_db {
            steps.push(Step::Hit);
        }
        Self { database, ..Self::of(Solvers::All, vec![steps]) }
    }

    /// Does what programs do: searches in each find mode, and uses stored results without a search.
    /// The stand-in has no kernel.
    pub(crate) fn natural(database: Option<usize>) -> Self {
        let modes = FIND_MODES.into_iter().map(|mode| vec![Step::Mode(mode)]);
        let runs = modes.chain([vec![Step::Unprepared]]).collect();
        Self { database, answers: Answers::None, ..Self::of(Solvers::Natural, runs) }
    }

    /// Asks one solver after each first problem that changes its behaviour. It does not use
    /// databases.
    pub(crate) fn primed() -> Self {
        let stems = PRIMERS.iter().map(|line| {
            let Ok(Problem::Convolution(primer)) = line.parse() else {
                unreachable!("a convolution: {line}")
            };
            worded(&primer).expect("it has an output")
        });
        let runs = vec![vec![Step::Search, Step::Immediate]];
        Self { stems: stems.collect(), ..Self::of(Solvers::Only(PRIMED_SOLVER), runs) }
    }

    /// Adds biases, if there are any. No solver of convolutions does this, so the step needs no
    /// particular setup of solvers.
    pub(crate) fn bias() -> Self {
        Self::of(Solvers::Natural, vec![vec![Step::Bias]])
    }

    /// The same with the assembler that the library finds itself, if any.
    pub(crate) fn with_own_assembler(&self) -> Self {
        Self { assembler: false, ..self.clone() }
    }

    /// Whether this is [`Self::bias`].
    fn is_bias(&self) -> bool {
        self.runs == [[Step::Bias]]
    }

    /// Whether this is [`Self::natural`].
    pub(crate) fn is_natural(&self) -> bool {
        self.solvers == Solvers::Natural && !self.is_bias()
    }

    /// Whether this is [`Self::primed`].
    pub(crate) fn is_primed(&self) -> bool {
        !self.stems.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(lines: &[&str]) -> Vec<Problem> {
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn the_order_of_problems_and_repetitions_do_not_matter() {
        let lines = ["conv -c 8 -k 8 -F 1", "bnorm -n 3 -c 4", "conv -c 4 -k 8", "conv -c 4 -k 8"];
        let problem_set = ProblemSet::new(&problems(&lines));
        let mut other = lines;
        other.reverse();
        assert_eq!(problem_set.problems, ProblemSet::new(&problems(&other)).problems);
        assert_eq!(problem_set.problems.len(), 3);
    }

    #[test]
    fn weights_are_asked_for_again_after_each_primer() {
        let lines = ["conv -c 8 -k 8 -F 1", "conv -c 4 -k 8", "bnorm -n 3 -c 4"];
        let problem_set = ProblemSet::new(&problems(&lines));
        let all = Phase::exhaustive(None, Uses::ALL, false);
        assert_eq!(problem_set.tasks(&all).len(), 3);
        assert_eq!(problem_set.tasks(&Phase::natural(None)).len(), 2 * (FIND_MODES.len() + 1));
        let primed = Phase::primed();
        let tasks = problem_set.tasks(&primed);
        assert_eq!(tasks.len(), PRIMERS.len());
        assert_eq!(tasks.iter().map(|task| task.stem).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(tasks.iter().all(|task| task.problem == tasks[0].problem));
        let Some(Method::Probe(text)) = problem_set.method(&primed, tasks[0]) else {
            panic!("{tasks:?}")
        };
        assert_eq!(text.split(' ').nth(5), Some("4"), "backward weights only");
    }

    #[test]
    fn biases_are_added_if_there_are_any() {
        let lines = ["conv -c 8 -k 8 -b 1 -F 1", "conv -c 4 -k 8 -b 1 -F 2", "conv -c 2 -k 8"];
        let problem_set = ProblemSet::new(&problems(&lines));
        let tasks = problem_set.tasks(&Phase::bias());
        let [task] = tasks[..] else { panic!("{tasks:?}") };
        assert_eq!(problem_set.problems[task.problem as usize], lines[0].parse().unwrap());
        assert!(!Phase::bias().is_natural() && Phase::natural(None).is_natural());
    }

    #[test]
    fn each_primer_makes_the_solver_read_another_number_of_elements() {
        let widths = PRIMERS.map(|line| {
            let Ok(Problem::Convolution(primer)) = line.parse() else { panic!("{line}") };
            primer.output().unwrap()[2]
        });
        let units = widths.map(|width| (1..=4).rev().find(|unit| width % unit == 0).unwrap());
        assert_eq!(units, [4, 3, 2, 1]);
    }

    #[test]
    fn a_search_comes_first() {
        let steps = |uses: &str, find_db| {
            Phase::exhaustive(None, uses.parse().unwrap(), find_db).runs.remove(0)
        };
        assert_eq!(steps("search", true), [Step::Search]);
        assert_eq!(steps("hit", true), [Step::Search, Step::Hit]);
        assert_eq!(steps("hit,immediate", false), [Step::Search, Step::Immediate]);
    }
}
