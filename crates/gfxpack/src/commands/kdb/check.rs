//! `kdb check`: the real libMIOpen with the kdbs, the real SQLite, and
//! compilers that refuse.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gfxpack_compile::Cancel;
use gfxpack_miopen::{AskEvent, AskOptions, CheckReport, Library, Problem, Uses, check};
use gfxpack_model::{KernelKey, Target};
use gfxpack_pipeline::options::processes;
use gfxpack_pipeline::{ask, libmiopen, packages};
use gfxpack_process::temporary_dir;
use serde_json::json;

use crate::args::{CheckKdb, MaxObject};
use crate::environment::Environment;
use crate::fail::{self, Failure, Result};
use crate::options::{cache_dir, library_options};
use crate::output::{Output, counted};
use crate::progress::Reporter;
use crate::progress::bar::{Bar, Unit};

/// So many missing kernels are shown with the nearest one that is there.
const SHOWN: usize = 20;

/// What to do about kernels that are missing.
const BUILD_IT: &str =
    "build what is missing: the same --problems, --miopen and --miopen-db with `dist`";

/// Checks the kdbs with every device that their names say.
pub(super) fn run(
    args: &CheckKdb,
    max_object: MaxObject,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> Result {
    if args.asking.problems.is_empty() {
        return Err(fail::usage(
            "failed to start: no problems are given",
            "give what programs compute, as --problems FILE",
        ));
    }
    let mut targets: BTreeSet<Target> = args.target.iter().cloned().collect();
    if targets.is_empty() {
        for file in &args.files {
            targets.insert(packages::target_of(file)?);
        }
    }
    let cache = cache_dir(&args.cache, environment).directory()?;
    let reporter = Reporter::new(output, None);
    let options = library_options(&args.asking.library, environment);
    let (problems, ..) = ask::read(&args.asking.problems, cancel, &reporter)?;
    let library = libmiopen::locate(&options, &cache, cancel, &reporter)?;
    let checks = Checks {
        library: &library,
        problems: &problems,
        files: &args.files,
        without_source: &[],
        databases: libmiopen::databases(&options, &library)?,
        uses: options.uses.unwrap_or(Uses::ALL),
        jobs: processes(args.jobs),
        max_object,
    };
    checks.run(&targets, cancel, output)
}

/// What is checked.
pub(crate) struct Checks<'a> {
    pub(crate) library: &'a Library,
    pub(crate) problems: &'a [Problem],
    /// The kdbs.
    pub(crate) files: &'a [PathBuf],
    /// Kernels that may be missing, since nobody could build them; sorted.
    pub(crate) without_source: &'a [KernelKey],
    pub(crate) databases: Vec<PathBuf>,
    pub(crate) uses: Uses,
    pub(crate) jobs: usize,
    pub(crate) max_object: MaxObject,
}

impl Checks<'_> {
    /// Checks for each target, and reports what is missing.
    ///
    /// # Errors
    /// [`Failure::Unsound`] where anything is.
    pub(crate) fn run(
        &self,
        targets: &BTreeSet<Target>,
        cancel: &Cancel,
        output: &Output,
    ) -> Result {
        let probe = libmiopen::probe()?;
        let scratch = temporary_dir()?;
        let mut incomplete = BTreeSet::new();
        let mut hint = None;
        let exact =
            targets.iter().map(ask::exact).collect::<gfxpack_pipeline::error::Result<Vec<_>>>()?;
        for target in exact.into_iter().flatten() {
            let mut options = AskOptions::new(target.clone(), &probe, scratch.path());
            options.databases.clone_from(&self.databases);
            options.uses = self.uses;
            options.workers = self.jobs;
            let bar = Bar::new(output, "checking", Unit::Problems, 0);
            let mut event = |event: AskEvent<'_>| {
                if let AskEvent::Progress { done, total } = event {
                    bar.at(done as u64, total as u64);
                }
            };
            let cancelled = || cancel.is_cancelled();
            let mut report =
                check(self.library, self.problems, self.files, &options, &cancelled, &mut event)?;
            drop(bar);
            let mut without_source = BTreeSet::new();
            for outcome in &mut report.outcomes {
                outcome.missed.retain(|key| {
                    let is_excused = self.without_source.binary_search(key).is_ok();
                    if is_excused {
                        without_source.insert(key.clone());
                    }
                    !is_excused
                });
            }
            self.report(&target, &report, without_source.len(), output);
            hint = hint.or_else(|| report.failures.iter().find_map(|one| one.failure.hint()));
            if !report.is_complete() {
                incomplete.insert(target.db_basename());
            }
        }
        if incomplete.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = incomplete.into_iter().collect();
        Err(Failure::Unverified {
            what: format!("that MIOpen finds every kernel on {}", names.join(", ")),
            hint: hint.unwrap_or(BUILD_IT).to_owned(),
        })
    }

    fn report(
        &self,
        target: &Target,
        report: &CheckReport,
        without_source: usize,
        output: &Output,
    ) {
        let mut found: BTreeSet<&KernelKey> = BTreeSet::new();
        let mut missed: BTreeSet<&KernelKey> = BTreeSet::new();
        let mut lacking = 0;
        let mut compiles = 0;
        for (problem, outcome) in report.problems.iter().zip(&report.outcomes) {
            found.extend(&outcome.found);
            compiles += outcome.compiles.len();
            let lacks: Vec<_> = outcome
                .lacking
                .iter()
                .map(|(key, functions)| json!({ "key": key, "functions": functions }))
                .collect();
            output.message(
                "kdb-check",
                &json!({
                    "target": target, "problem": problem.to_string(), "found": outcome.found.len(),
                    "missed": outcome.missed, "lacking": lacks, "compiles": outcome.compiles,
                }),
            );
            for (key, functions) in &outcome.lacking {
                lacking += functions.len();
                let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
                output.say(&format!(
                    "{target}: the object of `{key}` lacks {}",
                    functions.join(", ")
                ));
            }
            for key in &outcome.missed {
                if missed.insert(key) && missed.len() <= SHOWN {
                    self.report_missed(target, problem, key, output);
                }
            }
        }
        if missed.len() > SHOWN {
            output.say(&format!("{target}: and {} more", missed.len() - SHOWN));
        }
        let mut told = BTreeSet::new();
        for failure in &report.failures {
            if !told.insert((failure.problem, &failure.failure)) {
                continue;
            }
            let problem = &report.problems[failure.problem as usize];
            output.warn(&format!("{target}: `{problem}`: {}", failure.failure));
        }
        output.message(
            "kdb-checked",
            &json!({
                "target": target, "problems": report.problems.len(), "found": found.len(),
                "missed": missed.len(), "without_source": without_source,
                "functions_missing": lacking, "compiles": compiles,
                "failures": report.failures.len(), "miopen_version": report.version,
            }),
        );
        let without_source = match without_source {
            0 => String::new(),
            count => format!("; {count} more have no source here"),
        };
        output.say(&format!(
            "{target}: MIOpen {} found {} for {}; {} missed, {} missing in objects, {} asked for\
             {without_source}",
            report.version,
            counted(found.len(), "kernel"),
            counted(report.problems.len(), "problem"),
            missed.len(),
            counted(lacking, "function"),
            counted(compiles, "compile")
        ));
    }

    fn report_missed(&self, target: &Target, problem: &Problem, key: &KernelKey, output: &Output) {
        output.say(&format!("{target}: missed `{key}`, wanted by `{problem}`"));
        let nearest = super::super::explain::nearest_arguments(key, self.files, self.max_object);
        if let Some(args) = nearest {
            output.say(&format!("  the nearest that is there: `{args}`"));
        }
    }
}
