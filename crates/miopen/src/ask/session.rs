//! A session with a library: checks it, starts it with one setup after the other, and runs the
//! tasks.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::options::{AskEvent, AskOptions};
use super::plan::{Method, Phase, ProblemSet, Task};
use super::pool::{Connection, Pool, in_parallel};
use crate::driver::Driver;
use crate::error::AskError;
use crate::failure::Failure;
use crate::probe::{ProbeAnswer, ProbeSettings, Request, Solvers, Step, worded};
use crate::problem::Problem;
use crate::setup::{Setup, check_needs};
use crate::stage::{self, DatabaseFile, StagedDatabases};
use gfxpack_stock_library::Library;

/// The kernel that every version needs in a search, on any device.
const ALWAYS_ASKED: &str = "naive_conv.cpp.o";
/// A problem that every version computes.
const SMALL: &str = "conv -n 1 -c 16 -H 8 -W 8 -k 16 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -F 1";

/// A problem for which every version uses its heuristic models, if it has any for the device.
const PREDICTED: &str = "convfp16 -n 32 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1 -F 1";

/// The state that phases share.
pub(crate) struct Session<'a> {
    library: &'a Library,
    pub(crate) options: &'a AskOptions,
    cancel: &'a dyn Fn() -> bool,
    compute_units: u32,
    /// The databases of each directory, in order.
    pub(crate) staged: Vec<Option<StagedDatabases>>,
    /// Whether the library can't read the databases' heuristic models.
    models_left_out: bool,
    /// The library's version, as it reports it, once it is loaded.
    version: String,
    scratch: TempDir,
}

/// How kernels are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lookup<'a> {
    /// The stand-in finds every kernel.
    Answered,
    /// These kernel databases are searched, by the real SQLite.
    Real {
        /// The files.
        kernels: &'a [PathBuf],
        /// Whether the stand-in finds kernels that they lack.
        go_on: bool,
    },
}

impl<'a> Session<'a> {
    /// Checks that the library can be loaded, and stages databases.
    ///
    /// # Errors
    /// [`AskError`].
    pub(crate) fn new(
        library: &'a Library,
        options: &'a AskOptions,
        cancel: &'a dyn Fn() -> bool,
    ) -> Result<Self, AskError> {
        let target = &options.target;
        let compute_units =
            target.compute_units().ok_or_else(|| AskError::ComputeUnits(target.clone()))?;
        check_needs(&library.file, &library.search_path, &options.probe)?;
        let scratch = tempfile::Builder::new()
            .prefix("gfxpack-databases-")
            .tempdir_in(&options.scratch)
            .map_err(AskError::scratch(&options.scratch))?;
        let mut session = Self {
            library,
            options,
            cancel,
            compute_units,
            staged: Vec::new(),
            models_left_out: false,
            version: String::new(),
            scratch,
        };
        for number in 0..options.databases.len() {
            let staged = session.lay_out(number, true)?;
            session.staged.push(staged);
            session.leave_out_unreadable_models(number)?;
        }
        Ok(session)
    }

    /// Leaves a directory's heuristic models out if the library can't read them: programs that do
    /// not search would fail, and also those that search in most modes.
    fn leave_out_unreadable_models(&mut self, number: usize) -> Result<(), AskError> {
        let Some(staged) = self.staged[number].as_ref().filter(|staged| staged.has_models) else {
            return Ok(());
        };
        let phase = Phase::natural(Some(number));
        // With the find database, models would be used less.
        let databases = Some(staged.directory.clone());
        let pool = self.start(&phase, self.setup(databases, false))?;
        for problem in [SMALL, PREDICTED] {
            let answer = self.try_out(&pool, problem, &[Step::Unprepared])?;
            if !answer.refused.is_empty() || answer.early_end.is_some() {
                self.models_left_out = true;
                self.staged[number] = self.lay_out(number, false)?;
                break;
            }
        }
        Ok(())
    }

    fn lay_out(&self, number: usize, models: bool) -> Result<Option<StagedDatabases>, AskError> {
        let name = format!("{number}{}", if models { "" } else { "-without-models" });
        let to = self.scratch.path().join(name);
        StagedDatabases::lay_out(&self.options.databases[number], &self.options.target, models, &to)
    }

    /// The databases directory of the library in a phase.
    fn databases(&self, phase: &Phase, lookup: Lookup<'_>) -> Result<Option<PathBuf>, AskError> {
        let staged = phase.database.and_then(|number| self.staged[number].as_ref());
        // A search does not read the find database; problems are looked up in it one by one.
        let databases = staged.map(|staged| match phase.solvers {
            Solvers::Natural => staged.complete.clone(),
            Solvers::All | Solvers::Only(_) => staged.directory.clone(),
        });
        let Lookup::Real { kernels, .. } = lookup else { return Ok(databases) };
        let to = self.scratch.path().join("kernels");
        let _ = fs::remove_dir_all(&to);
        stage::link_together(databases.as_deref(), kernels, &to)?;
        Ok(Some(to))
    }

    /// The setup of the library with these databases.
    fn setup(&self, databases: Option<PathBuf>, real_kernels: bool) -> Setup<'a> {
        let options = self.options;
        Setup {
            library: self.library,
            probe: &options.probe,
            scratch: &options.scratch,
            architecture: options.target.id().to_string(),
            compute_units: self.compute_units,
            databases,
            real_kernels,
            time_limit: options.time_limit,
        }
    }

    /// Starts the probe for a phase.
    fn start<'p>(&self, phase: &'p Phase, setup: Setup<'p>) -> Result<Pool<'p>, AskError> {
        let staged = phase.database.and_then(|number| self.staged[number].as_ref());
        let settings = ProbeSettings {
            setup,
            find_db: staged.and_then(|staged| staged.find_db.clone()),
            solvers: phase.solvers,
            stems: &phase.stems,
        };
        Pool::start(settings, self.cancel)
    }

    /// The facts that are known at the end.
    pub(crate) fn library_facts(&self) -> LibraryFacts {
        let mut facts = LibraryFacts {
            version: self.version.clone(),
            databases: Vec::new(),
            unused_databases: Vec::new(),
            models_left_out: self.models_left_out,
        };
        for (directory, staged) in self.options.databases.iter().zip(&self.staged) {
            match staged {
                Some(staged) => facts.databases.extend(staged.files.iter().cloned()),
                None => facts.unused_databases.push(directory.clone()),
            }
        }
        facts.databases.sort();
        facts.databases.dedup();
        facts
    }

    /// The library's answer for a problem in a pool that has just started.
    fn try_out(
        &self,
        pool: &Pool<'_>,
        line: &str,
        steps: &[Step],
    ) -> Result<ProbeAnswer, AskError> {
        let Ok(Problem::Convolution(problem)) = line.parse() else { unreachable!("a convolution") };
        let problem = &worded(&problem).expect("it has an output");
        let request = Request { stem: 0, go_on: false, steps, problem };
        pool.ask(&mut Connection::default(), &request, self.cancel)
    }

    /// Tests a library that finds every kernel with a small problem.
    fn self_test(&self, pool: &Pool<'_>) -> Result<(), AskError> {
        let steps = [Step::Search, Step::Immediate, Step::Unprepared];
        let answer = self.try_out(pool, SMALL, &steps)?;
        let asked = answer.keys.keys().any(|key| key.kernel_name == ALWAYS_ASKED);
        let reason = match answer.refused.first() {
            Some(refused) => refused.to_string(),
            None if asked => return Ok(()),
            None => format!(
                "it asked for {} kernels and {} compiles, and {}",
                answer.keys.len(),
                answer.compiles.len(),
                answer.early_end.map_or("ended well".to_owned(), |end| end.to_string())
            ),
        };
        Err(AskError::SelfTest { expected: ALWAYS_ASKED, reason })
    }

    /// Runs all tasks of these phases.
    ///
    /// # Errors
    /// [`AskError`].
    pub(crate) fn run_all(
        &mut self,
        problem_set: &ProblemSet,
        phases: &[(Phase, Lookup<'_>)],
        on_event: &mut dyn FnMut(AskEvent<'_>),
        each: &mut dyn FnMut(&Phase, Task, ProbeAnswer),
    ) -> Result<(), AskError> {
        let total = phases.iter().map(|(phase, _)| problem_set.tasks(phase).len()).sum();
        let mut done = 0;
        for (phase, lookup) in phases {
            let database = phase.database.map(|number| self.options.databases[number].as_path());
            on_event(AskEvent::Loading { database });
            self.run(problem_set, phase, *lookup, &mut |task, answer| {
                each(phase, task, answer);
                done += 1;
                on_event(AskEvent::Progress { done, total });
            })?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        problem_set: &ProblemSet,
        phase: &Phase,
        lookup: Lookup<'_>,
        each: &mut dyn FnMut(Task, ProbeAnswer),
    ) -> Result<(), AskError> {
        let tasks = problem_set.tasks(phase);
        if tasks.is_empty() {
            return Ok(());
        }
        let go_on = match lookup {
            Lookup::Answered => false,
            Lookup::Real { go_on, .. } => go_on,
        };
        let setup =
            self.setup(self.databases(phase, lookup)?, matches!(lookup, Lookup::Real { .. }));
        let pool = self.start(phase, setup.clone())?;
        if matches!(lookup, Lookup::Answered) && phase.solvers == Solvers::All {
            self.self_test(&pool)?;
        }
        self.version = pool.version();
        let method =
            |number: usize| problem_set.method(phase, tasks[number]).expect("a task has some");
        let driven = (0..tasks.len()).any(|number| matches!(method(number), Method::Driver(_)));
        let driver = if driven { Driver::prepare(setup)? } else { None };
        in_parallel(
            tasks.len(),
            self.options.workers,
            self.cancel,
            &Connection::default,
            &|connection, number, cancelled| match (method(number), &driver) {
                (Method::Probe(problem), _) => {
                    let task = tasks[number];
                    let steps = &phase.runs[task.run];
                    let request = Request { stem: task.stem, go_on, steps, problem };
                    pool.ask(connection, &request, cancelled)
                }
                (Method::Driver(line), Some(driver)) => driver.run(line, cancelled),
                (Method::Driver(_), None) => Ok(ProbeAnswer::ended(Failure::NoDriver)),
            },
            &mut |number, answer| each(tasks[number], answer),
        )
    }
}

/// The facts about library and databases that are known at the end.
#[derive(Debug)]
pub(crate) struct LibraryFacts {
    pub(crate) version: String,
    /// The databases that were used, sorted.
    pub(crate) databases: Vec<DatabaseFile>,
    /// Directories that contain nothing for the target.
    pub(crate) unused_databases: Vec<PathBuf>,
    pub(crate) models_left_out: bool,
}
