//! `kdb check`: checks what the real libMIOpen finds in kdbs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gfxpack_kdb::VerifyOptions;
use gfxpack_model::KernelKey;
use gfxpack_pipeline::kdb_check::{TargetCheck, check_kdbs};
use gfxpack_pipeline::options::{InputOptions, ProblemOptions, processes};
use gfxpack_pipeline::text::key_in_words;
use gfxpack_runtime::NearestKeys;
use serde_json::json;

use crate::args::CheckKdb;
use crate::context::Context;
use crate::fail::{Error, ErrorKind, Result};
use crate::output::{Output, counted, if_any, joined, message};
use crate::progress::Reporter;

/// How many missing kernels are shown with the nearest existing key.
const SHOWN: usize = 20;

/// Checks the kdbs for every device in their names.
pub(super) fn run(args: &CheckKdb, context: &Context) -> Result {
    let Context { output, .. } = context;
    // What MIOpen says of a damaged file does not name it.
    for file in &args.files {
        if !gfxpack_kdb::verify(file, None, &VerifyOptions::default())?.is_sound() {
            let file = file.display();
            return Err(Error::new(
                ErrorKind::Unsound,
                format!("failed to check `{file}`: it is damaged"),
                format!("`gfxpack kdb verify {file}` says how; build it again"),
            ));
        }
    }
    let asking = ProblemOptions {
        problems: args.problems.clone(),
        strict: args.strict,
        library: args.library.clone(),
        ..ProblemOptions::default()
    };
    let inputs = InputOptions { asking, target: args.target.clone(), ..InputOptions::default() };
    let (jobs, reporter) = (processes(args.jobs), Reporter::new(context));
    let mut each = |checked: &TargetCheck| report(checked, &args.files, output);
    check_kdbs(&inputs, jobs, &args.cache, &args.files, &reporter, &mut each)
}

pub(crate) fn report(checked: &TargetCheck, files: &[PathBuf], output: &Output) {
    let TargetCheck { target, report, without_source, not_built, .. } = checked;
    let mut missed: BTreeSet<&KernelKey> = BTreeSet::new();
    for (problem, outcome) in report.problems.iter().zip(&report.outcomes) {
        let lacks: Vec<_> = outcome
            .lacking
            .iter()
            .map(|(key, functions)| json!({ "key": key, "functions": functions }))
            .collect();
        message!(output, "kdb-check", {
            "target": target, "problem": problem.to_string(), "found": outcome.found.len(),
            "missed": outcome.missed, "lacking": lacks, "compiles": outcome.compiles,
        });
        for (key, functions) in &outcome.lacking {
            let functions = joined(functions);
            output
                .info(&format!("{target}: the object of {} lacks {functions}", key_in_words(key)));
        }
        for key in &outcome.missed {
            if !missed.insert(key) || missed.len() > SHOWN {
                continue;
            }
            let words = key_in_words(key);
            output.info(&format!("{target}: missed {words}, wanted by `{problem}`"));
            let nearest = NearestKeys::search(key, files.iter().map(PathBuf::as_path), 1);
            if let Some(nearest) = nearest.keys.first() {
                output.info(&format!("  the nearest that is there: `{}`", nearest.kernel_args));
            }
        }
    }
    if missed.len() > SHOWN {
        output.info(&format!("{target}: and {} more", missed.len() - SHOWN));
    }
    // Those that repeat with another database are told once.
    let mut seen = BTreeSet::new();
    for failure in report.failures.iter().filter(|one| seen.insert((one.problem, &one.failure))) {
        let problem = &report.problems[failure.problem as usize];
        output.warn(&format!("{target}: `{problem}`: {}", failure.failure));
    }
    let outcomes = || report.outcomes.iter();
    let found: BTreeSet<&KernelKey> = outcomes().flat_map(|outcome| &outcome.found).collect();
    let found = found.len();
    let compiles: usize = outcomes().map(|outcome| outcome.compiles.len()).sum();
    let lacking = outcomes().flat_map(|outcome| outcome.lacking.values());
    let lacking: usize = lacking.map(BTreeSet::len).sum();
    message!(output, "kdb-checked", {
        "target": target, "problems": report.problems.len(), "found": found,
        "missed": missed.len(), "without_source": without_source, "not_built": not_built,
        "functions_missing": lacking, "compiles": compiles,
        "failures": report.failures.len(), "miopen_version": report.version,
    });
    let faults = [
        if_any(missed.len(), |missed| format!(", {missed} missed")),
        if_any(lacking, |lacking| format!(", {} missing in objects", counted(lacking, "function"))),
        if_any(compiles, |compiles| format!(", {} asked for", counted(compiles, "compile"))),
        if_any(*without_source, |count| format!("; {count} more without a source here")),
        if_any(*not_built, |count| format!("; {count} more failed or are skipped in this build")),
    ];
    output.info(&format!(
        "{target}: MIOpen finds {} for {}{}",
        counted(found, "kernel"),
        counted(report.problems.len(), "problem"),
        faults.concat()
    ));
}
