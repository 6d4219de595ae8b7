//! The round trip: the library looks kernels up in kernel databases with the real SQLite, with
//! compilers disabled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gfxpack_model::{Error, KernelKey, Result, Target};
use gfxpack_stock_library::Library;

use crate::ask::plan::Phase;
use crate::ask::session::Session;
use crate::ask::{AskOptions, Failures, ProblemFailure, Uses, completed, failures_of, sorted};
use crate::failure::Failure;
use crate::probe::ProbeAnswer;
use crate::problem::Problem;

/// The kernels that a library finds in kernel databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The library's version, as it reports it.
    pub version: String,
    /// The problems, sorted, each once; others refer to them by number.
    pub problems: Vec<Problem>,
    /// The outcome of each problem, in the same order.
    pub outcomes: Vec<Outcome>,
    /// Other failures, sorted by problem.
    pub failures: Vec<ProblemFailure>,
}

/// The outcome of a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Kernels that were found.
    pub found: BTreeSet<KernelKey>,
    /// Kernels that no database contains.
    pub missed: BTreeSet<KernelKey>,
    /// Kernels that no database contains and nobody can compile ([`AskOptions::sources`],
    /// [`AskOptions::refused`]): the library does without them.
    pub withheld: BTreeSet<KernelKey>,
    /// Functions that objects lack, by kernel.
    pub lacking: BTreeMap<KernelKey, BTreeSet<String>>,
    /// Compilers that were started for other kernels.
    pub compiles: BTreeSet<String>,
}

impl Outcome {
    /// Whether everything was found.
    pub fn is_complete(&self) -> bool {
        self.missed.is_empty() && self.lacking.is_empty() && self.compiles.is_empty()
    }
}

impl CheckReport {
    /// Whether every problem was computed without a compiler.
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty() && self.outcomes.iter().all(Outcome::is_complete)
    }
}

/// Runs a library on kernel databases: everything that [`ask`](fn@crate::ask) does, and what
/// programs do in each find mode and without a search, with each directory of databases and without
/// any. Kernels for other uses than the given ones may be missing.
pub fn check(
    library: &Library,
    problems: &[Problem],
    kernels: &[PathBuf],
    options: &AskOptions,
    cancel: &dyn Fn() -> bool,
    show: &mut dyn FnMut(usize, usize),
) -> Result<CheckReport> {
    let kernels = readable(kernels, &options.target)?;
    let problems = sorted(problems);
    let mut session = Session::new(library, options, Some(&kernels), cancel)?;
    let phases = phases(&session);
    let mut outcomes = OutcomeCollector {
        options,
        outcomes: vec![Outcome::default(); problems.len()],
        failures: Failures::default(),
    };
    session.run_all(&problems, &phases, show, &mut |phase, task, answer| {
        outcomes.add(phase, task.problem, answer);
    })?;
    Ok(CheckReport {
        version: session.version.clone(),
        outcomes: outcomes.outcomes,
        failures: outcomes.failures.finish(),
        problems,
    })
}

/// The phases of a round trip.
fn phases(session: &Session<'_>) -> Vec<Phase> {
    let uses = session.options.uses;
    let databases = session.staged.iter().enumerate().filter_map(|(number, staged)| {
        staged.as_ref().map(|staged| (Some(number), staged.find_db.is_some()))
    });
    let mut phases = Vec::new();
    for (database, has_find_db) in [(None, false)].into_iter().chain(databases) {
        phases.push(Phase::exhaustive(database, uses, has_find_db));
        // Programs combine several uses.
        if uses.search && uses.immediate {
            phases.push(Phase::natural(database));
        }
    }
    completed(phases, session)
}

/// The kernel databases that a library reads on such a device.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
fn readable(kernels: &[PathBuf], target: &Target) -> Result<Vec<PathBuf>> {
    let names @ [exact, device_wide] =
        &[target.kdb_file_name(), format!("{}.kdb", target.id().db_id())];
    let named = |name: &String| {
        kernels.iter().find(|path| path.file_name().is_some_and(|file| file == name.as_str()))
    };
    let readable: Vec<PathBuf> = names.iter().filter_map(named).cloned().collect();
    if readable.is_empty() {
        let hint = if exact == device_wide {
            format!("give a kdb called {exact}, as MIOpen looks for it")
        } else {
            format!(
                "give a kdb called {exact}, as MIOpen looks for it, or {device_wide}, which it \
                 reads if there is no {exact}"
            )
        };
        let what = format!("a kernel database that `{target}` reads among those given");
        return Err(Error::usage(format!("failed to find {what}"), hint));
    }
    Ok(readable)
}

/// The outcomes so far.
struct OutcomeCollector<'a> {
    options: &'a AskOptions,
    outcomes: Vec<Outcome>,
    failures: Failures,
}

impl OutcomeCollector<'_> {
    fn add(&mut self, phase: &Phase, problem: u32, answer: ProbeAnswer) {
        let mut failures = failures_of(phase, &answer);
        failures.retain(|failure| !matches!(failure, Failure::Compiled(_)));
        self.failures.add(phase, problem, failures);
        let outcome = &mut self.outcomes[problem as usize];
        let uses = self.options.uses;
        let missed = answer.keys.iter().filter(|(_, lookups)| lookups.missed != Uses::NONE);
        let (withheld, others): (Vec<_>, Vec<_>) =
            missed.partition(|(key, _)| self.options.withholds(key));
        // Compilers are not told which kernel they are to make.
        if withheld.is_empty() || !others.is_empty() {
            outcome.compiles.extend(answer.compiles);
        }
        for (key, lookups) in answer.keys {
            if lookups.missed.and(uses) != Uses::NONE {
                let withheld = self.options.withholds(&key);
                if withheld { &mut outcome.withheld } else { &mut outcome.missed }.insert(key);
                continue;
            }
            if lookups.found.and(uses) == Uses::NONE {
                continue;
            }
            if !lookups.lacks.is_empty() {
                outcome.lacking.entry(key.clone()).or_default().extend(lookups.lacks);
            }
            outcome.found.insert(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_databases_of_the_device_are_read() {
        let check = |target: &str, files: &[&str], expected: &[&str]| {
            let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
            let target: Target = target.parse().unwrap();
            match readable(&paths(files), &target) {
                Ok(readable) => assert_eq!(readable, paths(expected), "{target}"),
                Err(error) => assert!(expected.is_empty(), "{error}"),
            }
        };
        let files = ["out/gfx90a.kdb", "out/gfx90a68.kdb", "out/gfx906_60.kdb"];
        check("gfx90a@104", &files, &["out/gfx90a68.kdb", "out/gfx90a.kdb"]);
        check("gfx90a@110", &files, &["out/gfx90a.kdb"]);
        check("gfx906@60", &files, &["out/gfx906_60.kdb"]);
        check("gfx906@64", &files, &[]);
        check("gfx90a:xnack+@104", &files, &[]);
    }
}
