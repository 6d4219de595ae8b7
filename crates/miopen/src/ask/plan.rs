//! The requests to the probe, planned before it is started: phases, one for each setup of the
//! library, and their tasks.

use super::Uses;
use crate::probe::{Answers, Solvers, Step, worded};
use crate::problem::{Convolution, Directions, Problem};

/// A problem that every version computes.
pub(crate) const SMALL: &str = "conv -n 1 -c 16 -H 8 -W 8 -k 16 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -F 1";

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
    /// What the process computes before it forks one for each problem.
    pub(crate) warm_up: &'static str,
}

/// A problem in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    /// The problem's number.
    pub(crate) problem: u32,
    /// The number of the run in [`Phase::runs`].
    pub(crate) run: usize,
}

impl Phase {
    /// With every kernel, and without databases.
    fn of(solvers: Solvers, runs: Vec<Vec<Step>>) -> Self {
        let (answers, warm_up) = (Answers::All, SMALL);
        Self { database: None, solvers, assembler: true, answers, runs, warm_up }
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
    pub(crate) fn primed() -> [Self; 4] {
        let runs = vec![vec![Step::Search, Step::Immediate]];
        let phase = Self::of(Solvers::Only(PRIMED_SOLVER), runs);
        PRIMERS.map(|warm_up| Self { warm_up, ..phase.clone() })
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
        matches!(self.solvers, Solvers::Only(_))
    }

    /// Whether this asks for a problem.
    fn asks_for(&self, problem: &Problem) -> bool {
        let Problem::Convolution(convolution) = problem else {
            return self.solvers == Solvers::All;
        };
        let Directions { forward, backward_weights, .. } = convolution.directions;
        if self.is_primed() {
            backward_weights
        } else {
            !self.is_bias() || (convolution.bias && (forward || backward_weights))
        }
    }

    /// Its tasks for problems.
    pub(crate) fn tasks(&self, problems: &[Problem]) -> Vec<Task> {
        let asked = (0..).zip(problems).filter(|(_, problem)| self.asks_for(problem));
        let asked: Vec<u32> = asked.map(|(number, _)| number).collect();
        let runs = 0..self.runs.len();
        runs.flat_map(|run| asked.iter().map(move |&problem| Task { problem, run })).collect()
    }

    /// The request for a convolution: after a primer, for the gradient of the weights alone.
    pub(crate) fn request(&self, convolution: &Convolution) -> String {
        if !self.is_primed() {
            return worded(convolution);
        }
        worded(&Convolution { directions: Directions::BACKWARD_WEIGHTS, ..convolution.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(lines: &[&str]) -> Vec<Problem> {
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn weights_are_asked_for_again_after_each_primer() {
        let problems = problems(&["bnorm -n 3 -c 4", "conv -c 4 -k 8", "conv -c 8 -k 8 -F 1"]);
        assert_eq!(Phase::exhaustive(None, Uses::ALL, false).tasks(&problems).len(), 3);
        let natural = Phase::natural(None).tasks(&problems).len();
        assert_eq!(natural, 2 * (FIND_MODES.len() + 1));
        for primed in Phase::primed() {
            let [task] = primed.tasks(&problems)[..] else { panic!("{primed:?}") };
            let Problem::Convolution(weights) = &problems[task.problem as usize] else {
                panic!("{task:?}")
            };
            let request = primed.request(weights);
            assert_eq!(request.split(' ').nth(5), Some("4"), "backward weights only");
        }
    }

    #[test]
    fn biases_are_added_if_there_are_any() {
        let lines = ["conv -c 8 -k 8 -b 1 -F 1", "conv -c 4 -k 8 -b 1 -F 2", "conv -c 2 -k 8"];
        assert_eq!(Phase::bias().tasks(&problems(&lines)), [Task { problem: 0, run: 0 }]);
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
