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
use plan::{Phase, ProblemSet};
use session::Session;

pub use collect::{AskReport, AskedKey, ProblemFailure};
pub(crate) use collect::{Failures, failures_of, uses_of};
pub use options::{AskEvent, AskOptions, Uses};

/// Asks a libMIOpen for the kernels of these problems on that target: with each directory of
/// databases, and without any, and if it finds no assembler itself, with one and without. Problems
/// that want kernels which nobody can compile ([`AskOptions::sources`], [`AskOptions::refused`]) are
/// asked again without these.
///
/// The result depends only on library, databases, problems, target and uses: neither on the order
/// of problems nor on the number of workers.
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
    on_event: &mut dyn FnMut(AskEvent<'_>),
) -> Result<AskReport> {
    let problem_set = ProblemSet::new(problems);
    let mut session = Session::new(library, options, None, cancel)?;
    let phases = phases(&session);
    let mut collector = AnswerCollector::new(&problem_set, options.uses);
    session.run_all(&problem_set, &phases, on_event, &mut |phase, task, answer| {
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
    phases.push(Phase::primed());
    phases
}
