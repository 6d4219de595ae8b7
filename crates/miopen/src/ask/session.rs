//! A session with a library: checks it, starts it with one setup after the other, and runs the
//! tasks.

use std::fs;
use std::path::PathBuf;

use gfxpack_model::{Error, Result};
use gfxpack_stock_library::{DeviceFault, Library};
use tempfile::TempDir;

use super::plan::{Phase, SMALL, Task};
use super::pool::{Connection, Pool, in_parallel};
use super::{AskOptions, Uses};
use crate::driver::Driver;
use crate::failure::Failure;
use crate::library::{MIOPEN, NOT_SUPPORTED};
use crate::probe::{Answers, ProbeAnswer, Solvers, Step, request, worded};
use crate::problem::Problem;
use crate::setup::{Setup, check_needs};
use crate::stage::{self, DatabaseFile, StagedDatabases};

/// A problem for which every version uses its heuristic models, if it has any for the device.
const PREDICTED: &str = "convfp16 -n 32 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1 -F 1";

/// The state that phases share.
pub(crate) struct Session<'a> {
    library: &'a Library,
    pub(crate) options: &'a AskOptions,
    /// Kernel databases, which the real SQLite searches; `None` for the stand-in alone.
    kernels: Option<&'a [PathBuf]>,
    cancel: &'a dyn Fn() -> bool,
    compute_units: u32,
    /// The databases of each directory, in order.
    pub(crate) staged: Vec<Option<StagedDatabases>>,
    /// Whether the library finds an assembler itself. Some builds name one that only the machine had
    /// on which they were built.
    pub(crate) finds_assembler: bool,
    /// Whether the library can't read the databases' heuristic models.
    pub(crate) models_left_out: bool,
    /// The library's version, as it reports it, once it is loaded.
    pub(crate) version: String,
    /// For the probe: which kernels nobody can compile.
    withheld: Vec<u8>,
    scratch: TempDir,
}

impl<'a> Session<'a> {
    /// Checks that the library can be loaded, and stages databases.
    pub(crate) fn new(
        library: &'a Library,
        options: &'a AskOptions,
        kernels: Option<&'a [PathBuf]>,
        cancel: &'a dyn Fn() -> bool,
    ) -> Result<Self> {
        let target = &options.target;
        let compute_units = target.compute_units().ok_or_else(|| {
            Error::usage(
                format!("failed to ask for `{target}`: it has no compute-unit count"),
                format!("write {target}@COUNT, with the count that rocminfo reports"),
            )
        })?;
        check_needs(&library.file, &library.search_path, &options.probe)?;
        let scratch = tempfile::Builder::new()
            .prefix("gfxpack-databases-")
            .tempdir_in(&options.scratch)
            .map_err(MIOPEN.scratch(&options.scratch))?;
        let mut session = Self {
            library,
            options,
            kernels,
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
    fn finds_assembler(&self) -> Result<bool> {
        let phase = Phase::exhaustive(None, Uses::ALL, false).with_own_assembler();
        let mut setup = self.setup(&phase, None, false);
        (setup.architecture, setup.compute_units) = ("gfx906".to_owned(), 60);
        let pool = Pool::start(setup, self.cancel)?;
        let answer = self.try_out(&pool, SMALL, &[Step::Search])?;
        Ok(answer.keys.keys().any(|key| key.kernel_name.ends_with(".s.o")))
    }

    /// Leaves a directory's heuristic models out if the library can't read them: programs that do
    /// not search would fail, and also those that search in most modes.
    fn leave_out_unreadable_models(&mut self, number: usize) -> Result {
        let Some(staged) = self.staged[number].as_ref().filter(|staged| staged.has_models) else {
            return Ok(());
        };
        let phase = Phase::natural(Some(number));
        // With the find database, models would be used less.
        let databases = Some(staged.directory.clone());
        let pool = Pool::start(self.setup(&phase, databases, false), self.cancel)?;
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

    fn lay_out(&self, number: usize, models: bool) -> Result<Option<StagedDatabases>> {
        let name = format!("{number}{}", if models { "" } else { "-without-models" });
        let to = self.scratch.path().join(name);
        StagedDatabases::lay_out(&self.options.databases[number], &self.options.target, models, &to)
    }

    /// The databases directory of the library in a phase.
    fn databases(&self, phase: &Phase) -> Result<Option<PathBuf>> {
        let staged = phase.database.and_then(|number| self.staged[number].as_ref());
        // A search does not read the find database; problems are looked up in it one by one.
        let databases = staged.map(|staged| match phase.solvers {
            Solvers::Natural => staged.complete.clone(),
            Solvers::All | Solvers::Only(_) => staged.directory.clone(),
        });
        let Some(kernels) = self.kernels else { return Ok(databases) };
        let to = self.scratch.path().join("kernels");
        let _ = fs::remove_dir_all(&to);
        stage::link_together(databases.as_deref(), kernels, &to)?;
        Ok(Some(to))
    }

    /// The setup of the library in a phase, with these databases.
    fn setup<'p>(
        &'p self,
        phase: &'p Phase,
        databases: Option<PathBuf>,
        real_kernels: bool,
    ) -> Setup<'p> {
        let staged = phase.database.and_then(|number| self.staged[number].as_ref());
        Setup {
            library: self.library,
            options: self.options,
            phase,
            architecture: self.options.target.id().to_string(),
            compute_units: self.compute_units,
            databases,
            find_db: staged.and_then(|staged| staged.find_db.clone()),
            real_kernels,
            withheld: &self.withheld,
        }
    }

    /// The databases that were used, sorted, and the directories that contain nothing for the
    /// target.
    pub(crate) fn used_databases(&self) -> (Vec<DatabaseFile>, Vec<PathBuf>) {
        let (mut used, mut unused) = (Vec::new(), Vec::new());
        for (directory, staged) in self.options.databases.iter().zip(&self.staged) {
            match staged {
                Some(staged) => used.extend(staged.files.iter().cloned()),
                None => unused.push(directory.clone()),
            }
        }
        used.sort();
        used.dedup();
        (used, unused)
    }

    /// The library's answer for a problem in a pool that has just started.
    fn try_out(&self, pool: &Pool<'_>, line: &str, steps: &[Step]) -> Result<ProbeAnswer> {
        let Ok(Problem::Convolution(problem)) = line.parse() else { unreachable!("a convolution") };
        let request = request(Answers::All, steps, &worded(&problem));
        pool.ask(&mut Connection::default(), &request, self.cancel)
    }

    /// Tests a library that finds every kernel with a small problem.
    fn self_test(&self, pool: &Pool<'_>) -> Result {
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
        let target = &self.options.target;
        let what = "failed to have libMIOpen compute a first, small problem for";
        Err(DeviceFault::error(format!("{what} {target}: {reason}"), NOT_SUPPORTED))
    }

    /// Runs all tasks of these phases, and shows how many of how many are done: each problem is
    /// counted once per way of asking.
    pub(crate) fn run_all(
        &mut self,
        problems: &[Problem],
        phases: &[Phase],
        show: &mut dyn FnMut(usize, usize),
        each: &mut dyn FnMut(&Phase, Task, ProbeAnswer),
    ) -> Result {
        let mut total = phases.iter().map(|phase| phase.tasks(problems).len()).sum();
        let mut done = 0;
        for phase in phases {
            let mut tasks = phase.tasks(problems);
            if tasks.is_empty() {
                continue;
            }
            let of = |task: Task| &problems[task.problem as usize];
            let is_driven = tasks.iter().any(|task| matches!(of(*task), Problem::Driver(_)));
            let (pool, driver) = self.begin(phase, is_driven)?;
            let mut answers = phase.answers;
            while !tasks.is_empty() {
                let act = |connection: &mut Connection,
                           number: usize,
                           cancelled: &(dyn Fn() -> bool + Sync)| {
                    match (of(tasks[number]), &driver) {
                        (Problem::Convolution(convolution), _) => {
                            let steps = &phase.runs[tasks[number].run];
                            let request = request(answers, steps, &phase.request(convolution));
                            pool.ask(connection, &request, cancelled)
                        }
                        (Problem::Driver(line), Some(driver)) => {
                            driver.run(line, answers, cancelled)
                        }
                        (Problem::Driver(_), None) => Ok(ProbeAnswer::ended(Failure::NoDriver)),
                    }
                };
                let mut again = Vec::new();
                let each = &mut |number: usize, answer: ProbeAnswer| {
                    let mut keys = answer.keys.keys();
                    if answers == Answers::All && keys.any(|key| self.options.withholds(key)) {
                        again.push(tasks[number]);
                        total += 1;
                    }
                    each(phase, tasks[number], answer);
                    done += 1;
                    show(done, total);
                };
                in_parallel(tasks.len(), self.options.workers, self.cancel, &act, each)?;
                // The library does without some of these kernels, and may then want others.
                (tasks, answers) = (again, Answers::Compilable);
            }
            self.version = pool.version();
        }
        Ok(())
    }

    /// Starts the library for a phase, and prepares MIOpenDriver if it is needed and there.
    fn begin<'p>(
        &'p self,
        phase: &'p Phase,
        is_driven: bool,
    ) -> Result<(Pool<'p>, Option<Driver<'p>>)> {
        let real_kernels = self.kernels.is_some();
        let setup = self.setup(phase, self.databases(phase)?, real_kernels);
        let pool = Pool::start(setup.clone(), self.cancel)?;
        if !real_kernels && phase.solvers == Solvers::All {
            self.self_test(&pool)?;
        }
        let driver = if is_driven { Driver::prepare(setup)? } else { None };
        Ok((pool, driver))
    }
}
