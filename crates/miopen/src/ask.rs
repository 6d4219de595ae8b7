//! Finds out which kernels a libMIOpen would compile for a list of problems.

mod collect;
pub(crate) mod plan;
mod pool;
pub(crate) mod session;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use gfxpack_model::probe_line::line;
use gfxpack_model::{Error, KernelKey, Result, Target};
use gfxpack_stock_library::Library;

use crate::problem::Problem;
use collect::AnswerCollector;
use plan::Phase;
use session::Session;

pub use collect::{AskReport, AskedKey, ProblemFailure};
pub(crate) use collect::{Failures, failures_of};

/// How to ask a library.
#[derive(Debug, Clone)]
pub struct AskOptions {
    /// The device to simulate, with its compute units.
    pub target: Target,
    /// Directories of databases. Each problem is asked with each of them, and without any.
    pub databases: Vec<PathBuf>,
    /// The uses to find kernels for.
    pub uses: Uses,
    /// The number of problems in parallel.
    pub workers: usize,
    /// How long a problem may take.
    pub time_limit: Duration,
    /// A directory for temporary files that can't be in memory.
    pub scratch: PathBuf,
    /// The executable `gfxpack-miopen-probe`.
    pub probe: PathBuf,
    /// Names of the sources that there are: `naive_conv.cpp`. A kernel of any other can't be had:
    /// the library fails to compile it, and takes another solver. If empty, all can be had.
    pub sources: BTreeSet<String>,
    /// Kernels that can't be had although their source exists, since compilers refuse them.
    pub refused: BTreeSet<KernelKey>,
}

impl AskOptions {
    /// The default time limit of a problem.
    pub const TIME_LIMIT: Duration = Duration::from_secs(300);

    /// Asks for all uses, without databases, with one worker.
    pub fn new(target: Target, probe: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self {
            target,
            databases: Vec::new(),
            uses: Uses::ALL,
            workers: 1,
            time_limit: Self::TIME_LIMIT,
            scratch: scratch.into(),
            probe: probe.into(),
            sources: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Whether nobody can compile this kernel.
    pub(crate) fn withholds(&self, key: &KernelKey) -> bool {
        let no_source = |source: &str| !self.sources.contains(source);
        self.refused.contains(key)
            || (!self.sources.is_empty() && key.source_name().is_some_and(no_source))
    }

    /// The same for the probe, which has its own module `withheld`.
    pub(crate) fn withheld(&self) -> Vec<u8> {
        let sources = self.sources.iter().flat_map(|source| line(&["source", source]));
        let refused = self.refused.iter();
        let refused =
            refused.flat_map(|key| line(&["refused", &key.kernel_name, &key.kernel_args]));
        sources.chain(refused).collect()
    }
}

/// A set of ways in which programs choose kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uses {
    /// Searching (`miopenFindConvolution…`): the kernels of every applicable
    /// solver.
    pub search: bool,
    /// Looking a problem up in a find database: the kernels of the solver that it records as the
    /// fastest.
    pub hit: bool,
    /// Immediate mode, in which kernels have other arguments.
    pub immediate: bool,
}

impl Uses {
    /// All uses.
    pub const ALL: Self = Self { search: true, hit: true, immediate: true };
    /// No uses.
    pub const NONE: Self = Self { search: false, hit: false, immediate: false };

    /// The uses in both sets.
    pub fn and(self, other: Self) -> Self {
        Self {
            search: self.search && other.search,
            hit: self.hit && other.hit,
            immediate: self.immediate && other.immediate,
        }
    }

    /// The uses in either set.
    pub fn or(self, other: Self) -> Self {
        Self {
            search: self.search || other.search,
            hit: self.hit || other.hit,
            immediate: self.immediate || other.immediate,
        }
    }
}

impl fmt::Display for Uses {
    /// `search,hit,immediate`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.search, "search"), (self.hit, "hit"), (self.immediate, "immediate")];
        let names: Vec<_> = names.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Uses {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut uses = Self::NONE;
        for name in text.split(',') {
            match name.trim() {
                "search" => uses.search = true,
                "hit" => uses.hit = true,
                "immediate" => uses.immediate = true,
                _ => {
                    let hint =
                        "write one or more of search, hit and immediate, separated by commas";
                    return Err(Error::usage(format!("`{text}` is no list of uses"), hint));
                }
            }
        }
        Ok(uses)
    }
}

/// Asks a libMIOpen for the kernels of these problems, each of which must be one that
/// [`str::parse`] accepts, on that target: with each directory of databases, and without any, and
/// if it finds no assembler itself, with one and without. Problems that want kernels which nobody
/// can compile ([`AskOptions::sources`], [`AskOptions::refused`]) are asked again without these.
///
/// The result depends only on library, databases, problems, target and uses: neither on the order
/// of problems nor on the number of workers. `show` is told how many problems are done and how many
/// there are, each counted once per way of asking.
///
/// # Errors
/// If the library can't be asked at all, on this device if the cause is a
/// [`DeviceFault`](gfxpack_stock_library::DeviceFault). Errors of single problems are in
/// [`AskReport::failures`].
pub fn ask(
    library: &Library,
    problems: &[Problem],
    options: &AskOptions,
    cancel: &dyn Fn() -> bool,
    show: &mut dyn FnMut(usize, usize),
) -> Result<AskReport> {
    let problems = sorted(problems);
    let mut session = Session::new(library, options, None, cancel)?;
    let phases = phases(&session);
    let mut collector = AnswerCollector::new(&problems, options.uses);
    session.run_all(&problems, &phases, show, &mut |phase, task, answer| {
        collector.add(phase, task, answer);
    })?;
    Ok(collector.finish(&session))
}

/// The phases of asking: without databases, with each directory that has some, and after primers.
fn phases(session: &Session<'_>) -> Vec<Phase> {
    let uses = session.options.uses;
    let mut phases = Vec::new();
    // A record of a find database is in one directory only.
    if uses.search || uses.immediate || session.staged.iter().all(Option::is_none) {
        phases.push(Phase::exhaustive(None, uses, false));
    }
    for (number, staged) in session.staged.iter().enumerate() {
        if let Some(staged) = staged {
            phases.push(Phase::exhaustive(Some(number), uses, staged.find_db.is_some()));
        }
    }
    completed(phases, session)
}

/// The same also without an assembler, if the library finds none, and the phases that need neither
/// databases nor an assembler.
pub(crate) fn completed(mut phases: Vec<Phase>, session: &Session<'_>) -> Vec<Phase> {
    if !session.finds_assembler {
        let own: Vec<_> = phases.iter().map(Phase::with_own_assembler).collect();
        phases.extend(own);
    }
    phases.push(Phase::bias());
    phases.extend(Phase::primed());
    phases
}

/// The problems in a fixed order, each once.
pub(crate) fn sorted(problems: &[Problem]) -> Vec<Problem> {
    let mut sorted = problems.to_vec();
    sorted.sort();
    sorted.dedup();
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_parsed_and_printed() {
        for text in ["search", "hit", "immediate", "search,immediate", "search,hit,immediate"] {
            assert_eq!(text.parse::<Uses>().unwrap().to_string(), text);
        }
        let uses: Uses = "immediate, search".parse().unwrap();
        assert_eq!(uses, Uses { hit: false, ..Uses::ALL });
        assert!("".parse::<Uses>().is_err());
        assert!("search,find".parse::<Uses>().is_err());
    }
}
