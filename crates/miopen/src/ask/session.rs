//! A session with a library: checks it, starts it with one setup after the other, and runs the
//! tasks.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::options::{AskEvent, AskOptions, Uses};
use super::plan::{Method, Phase, ProblemSet, Task};
use super::pool::{Connection, Pool, in_parallel};
use crate::driver::Driver;
use crate::error::AskError;
use crate::failure::Failure;
use crate::probe::{Answers, ProbeAnswer, ProbeSettings, Request, Solvers, Step, worded};
use crate::problem::Problem;
use crate::setup::{Setup, check_needs};
use crate::stage::{self, DatabaseFile, StagedDatabases};
use gfxpack_stock_library::Library;

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
    /// Whether the library finds an assembler itself. Some builds name one that only the machine had
    /// on which they were built.
    pub(crate) finds_assembler: bool,
    /// Whether the library can't read the databases' heuristic models.
    models_left_out: bool,
    /// The library's version, as it reports it, once it is loaded.
    version: String,
    /// For the probe: which kernels nobody can compile.
    withheld: Vec<u8>,
    scratch: TempDir,
}

/// How kernels are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup<'a> {
    /// Kernel databases, which the real SQLite searches; `None` for the stand-in alone.
    pub(crate) kernels: Option<&'a [PathBuf]>,
    /// The kernels that the stand-in has.
    pub(crate) answers: Answers,
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
            finds_assembler: true,
            models_left_out: false,
            version: String::new(),
            withheld: options.withheld(),
            scratch,
        };
        for number in 0..options.databases.len() {
            let staged = session.lay_out(number, true)?;
            session.staged.push(staged);
            session.leave_out_unreadable_models(number)?;
        }
        session.finds_assembler = session.finds_assembler()?;
        Ok(session)
    }

    /// Whether the library finds an assembler itself: it then wants kernels in assembly on a
    /// processor for which every version has some.
    fn finds_assembler(&self) -> Result<bool, AskError> {
        let phase = Phase::exhaustive(None, Uses::ALL, false).with_own_assembler();
        let mut setup = self.setup(&phase, None, false);
        (setup.architecture, setup.compute_units) = ("gfx906".to_owned(), 60);
        let pool = self.start(&phase, setup)?;
        let answer = self.try_out(&pool, SMALL, &[Step::Search])?;
        Ok(answer.keys.keys().any(|key| key.kernel_name.ends_with(".s.o")))
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
        let pool = self.start(&phase, self.setup(&phase, databases, false))?;
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
        let Some(kernels) = lookup.kernels else { return Ok(databases) };
        let to = self.scratch.path().join("kernels");
        let _ = fs::remove_dir_all(&to);
        stage::link_together(databases.as_deref(), kernels, &to)?;
        Ok(Some(to))
    }

    /// The setup of the library in a phase, with these databases.
    fn setup(&self, phase: &Phase, databases: Option<PathBuf>, real_kernels: bool) -> Setup<'_> {
        let options = self.options;
        Setup {
            library: self.library,
            probe: &options.probe,
            scratch: &options.scratch,
            architecture: options.target.id().to_string(),
            compute_units: self.compute_units,
            databases,
            assembler: phase.assembler,
            real_kernels,
            time_limit: options.time_limit,
            withheld: &self.withheld,
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
            finds_assembler: self.finds_assembler,
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
        let request = Request { stem: 0, answers: Answers::All, steps, problem };
        pool.ask(&mut Connection::default(), &request, self.cancel)
    }

    /// Tests a library that finds every kernel with a small problem.
    fn self_test(&self, pool: &Pool<'_>) -> Result<(), AskError> {
        let steps = [Step::Search, Step::Immediate, Step::Unprepared];
        let answer = self.try_out(pool, SMALL, &steps)?;
        // Whether it can compute a problem depends on the device.
        if !answer.keys.is_empty() {
            return Ok(());
        }
        let reason = match (answer.refused.first(), answer.early_end) {
            (Some(refused), _) => refused.to_string(),
            (None, Some(end)) => end.to_string(),
            (None, None) => {
                format!("it asked for no kernel and {} compiles", answer.compiles.len())
            }
        };
        Err(AskError::SelfTest { target: self.options.target.clone(), reason })
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
        let mut total = phases.iter().map(|(phase, _)| problem_set.tasks(phase).len()).sum();
        let mut done = 0;
        for (phase, lookup) in phases {
            let database = phase.database.map(|number| self.options.databases[number].as_path());
            on_event(AskEvent::Loading { database });
            let mut tasks = problem_set.tasks(phase);
            if tasks.is_empty() {
                continue;
            }
            let running = self.begin(problem_set, phase, *lookup, &tasks)?;
            let mut answers = lookup.answers;
            while !tasks.is_empty() {
                let mut again = Vec::new();
                running.round(&tasks, answers, &mut |task, answer| {
                    let mut keys = answer.keys.keys();
                    if answers == Answers::All && keys.any(|key| self.options.withholds(key)) {
                        again.push(task);
                        total += 1;
                    }
                    each(phase, task, answer);
                    done += 1;
                    on_event(AskEvent::Progress { done, total });
                })?;
                // The library does without some of these kernels, and may then want others.
                (tasks, answers) = (again, Answers::Compilable);
            }
            self.version = running.pool.version();
        }
        Ok(())
    }

    /// Starts the library for these tasks.
    fn begin<'p>(
        &'p self,
        problem_set: &'p ProblemSet,
        phase: &'p Phase,
        lookup: Lookup<'_>,
        tasks: &[Task],
    ) -> Result<Running<'p>, AskError> {
        let databases = self.databases(phase, lookup)?;
        let setup = self.setup(phase, databases, lookup.kernels.is_some());
        let pool = self.start(phase, setup.clone())?;
        if lookup.kernels.is_none() && phase.solvers == Solvers::All {
            self.self_test(&pool)?;
        }
        let is_driven =
            |task: &Task| matches!(problem_set.method(phase, *task), Some(Method::Driver(_)));
        let driver = if tasks.iter().any(is_driven) { Driver::prepare(setup)? } else { None };
        let (workers, cancel) = (self.options.workers, self.cancel);
        Ok(Running { problem_set, phase, pool, driver, workers, cancel })
    }
}

/// A library that was started for a phase.
struct Running<'p> {
    problem_set: &'p ProblemSet,
    phase: &'p Phase,
    pool: Pool<'p>,
    driver: Option<Driver<'p>>,
    workers: usize,
    cancel: &'p dyn Fn() -> bool,
}

impl Running<'_> {
    /// Runs tasks once.
    fn round(
        &self,
        tasks: &[Task],
        answers: Answers,
        each: &mut dyn FnMut(Task, ProbeAnswer),
    ) -> Result<(), AskError> {
        let Self { problem_set, phase, pool, driver, .. } = self;
        let act =
            |connection: &mut Connection, number: usize, cancelled: &(dyn Fn() -> bool + Sync)| {
                let task = tasks[number];
                match (problem_set.method(phase, task).expect("a task has some"), driver) {
                    (Method::Probe(problem), _) => {
                        let steps = &phase.runs[task.run];
                        let request = Request { stem: task.stem, answers, steps, problem };
                        pool.ask(connection, &request, cancelled)
                    }
                    (Method::Driver(line), Some(driver)) => driver.run(line, answers, cancelled),
                    (Method::Driver(_), None) => Ok(ProbeAnswer::ended(Failure::NoDriver)),
                }
            };
        let each = &mut |number: usize, answer| each(tasks[number], answer);
        in_parallel(tasks.len(), self.workers, self.cancel, &Connection::default, &act, each)
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
    pub(crate) finds_assembler: bool,
}
