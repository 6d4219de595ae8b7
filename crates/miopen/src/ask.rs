//! Finds out which kernels a libMIOpen would compile for a list of problems.

mod collect;
mod options;
pub(crate) mod plan;
mod pool;
pub(crate) mod session;

use gfxpack_model::Result;
use gfxpack_stock_library::Library;

use crate::problem::Problem;
use collect::AnswerCollector;
use plan::Phase;
use session::Session;

pub use collect::{AskReport, AskedKey, ProblemFailure};
pub(crate) use collect::{Failures, failures_of, uses_of};
pub use options::{AskOptions, Uses};

/// Asks a libMIOpen for the kernels of these problems on that target: with each directory of
/// databases, and without any, and if it finds no assembler itself, with one and without. Problems
/// that want kernels which nobody can compile ([`AskOptions::sources`], [`AskOptions::refused`]) are
/// asked again without these.
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
