//! Describes the contents of performance and find databases.

use std::cmp::Reverse;
use std::path::Path;

use gfxpack_tuning::{DatabaseName, Stats};

use crate::text::{counted, if_any};

/// How many solvers are shown unless all are wanted.
const SHOWN: usize = 10;

/// The contents of a database as lines of text.
pub fn stats_in_words(
    file: &Path,
    name: &DatabaseName,
    stats: &Stats,
    all_solvers: bool,
) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} database for {}, {}, {} of {}",
        file.display(),
        name.kind.name(),
        name.target,
        counted(stats.records, "problem"),
        counted(stats.values, "value"),
        counted(stats.solvers.len(), "solver")
    )];
    let mut solvers: Vec<_> = stats.solvers.iter().collect();
    solvers.sort_by_key(|(_, count)| Reverse(**count));
    let shown = if all_solvers { solvers.len() } else { SHOWN.min(solvers.len()) };
    let width = solvers[..shown].iter().map(|(solver, _)| solver.len()).max().unwrap_or_default();
    for (solver, count) in &solvers[..shown] {
        let fastest = stats.fastest.get(*solver).copied().unwrap_or_default();
        let fastest = if_any(fastest, |fastest| format!(", the fastest in {fastest}"));
        lines.push(format!("  {solver:<width$}  {count}{fastest}"));
    }
    if shown < solvers.len() {
        lines.push(format!("  {} more solvers: --verbose", solvers.len() - shown));
    }
    lines
}
