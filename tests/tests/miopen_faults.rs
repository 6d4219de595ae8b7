//! What goes wrong with one problem costs no other, and what a libMIOpen lacks
//! is named: tried with one that is made for it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gfxpack_miopen::{
    Answers, AskError, AskEvent, AskOptions, Failure, Library, Problem, ask,
};
use gfxpack_tests::miopen::{convolution, entries, fake_library, probe};

fn options(scratch: &std::path::Path) -> AskOptions {
    let mut options = AskOptions::new("gfx906_60".parse().unwrap(), probe(), scratch);
    options.time_limit = Duration::from_secs(1);
    options.workers = 2;
    options
}

fn ask_all(library: &Library, problems: &[Problem], workers: usize) -> Answers {
    let scratch = tempfile::tempdir().unwrap();
    let mut options = options(scratch.path());
    options.workers = workers;
    let answers = ask(library, problems, &options, &|| false, &mut |_| ()).unwrap();
    assert!(entries(scratch.path()).is_empty(), "nothing is left behind");
    answers
}

/// Failures by the number of images.
fn failures(answers: &Answers) -> BTreeMap<u64, BTreeSet<&Failure>> {
    let mut failures = BTreeMap::<_, BTreeSet<_>>::new();
    for failure in &answers.failures {
        let Problem::Convolution(problem) = &answers.problems[failure.problem as usize] else {
            panic!("{failure:?}")
        };
        failures.entry(problem.batch).or_default().insert(&failure.failure);
    }
    failures
}

/// Kernels that have the number of images in their name.
fn own_kernels(answers: &Answers) -> BTreeSet<&str> {
    let names = answers.keys.iter().map(|asked| asked.key.kernel_name.as_str());
    names.filter(|name| name.starts_with("kernel")).collect()
}

#[test]
fn a_problem_that_crashes_hangs_or_ends_is_reported_and_costs_no_other() {
    let (_directory, library) = fake_library(None);
    let problems: Vec<_> = (596..=610).map(|images| convolution(images, 1)).collect();
    let answers = ask_all(&library, &problems, 2);
    assert_eq!(answers.version, "9.8.7");
    let failed = failures(&answers);
    let one = |failure| BTreeSet::from([failure]);
    assert_eq!(failed[&600], one(&Failure::Killed(11)));
    assert_eq!(failed[&601], one(&Failure::Overdue));
    assert_eq!(failed[&602], one(&Failure::Exited(3)));
    assert!(matches!(failed[&603].first(), Some(Failure::Refused { status, .. }) if status == "3"));
    assert_eq!(failed[&604], one(&Failure::Lost));
    assert_eq!(failed.len(), 5, "{failed:?}");
    let expected: Vec<_> = (596..=610)
        .filter(|images| !(600..=604).contains(images))
        .map(|images| format!("kernel{images}.cpp.o"))
        .collect();
    assert!(own_kernels(&answers).into_iter().eq(expected.iter().map(String::as_str)));
}

#[test]
fn a_probe_that_is_killed_is_started_again() {
    let (_directory, library) = fake_library(None);
    // One kills what workers are forked from, the next its worker, so that others need a new one.
    let problems: Vec<_> = [605, 604, 1, 2, 3, 4, 5].map(|images| convolution(images, 1)).into();
    let answers = ask_all(&library, &problems, 1);
    let failed = failures(&answers);
    assert_eq!(failed.keys().collect::<Vec<_>>(), [&604], "{failed:?}");
    assert_eq!(own_kernels(&answers).len(), 6);
}

#[test]
fn neither_order_nor_workers_show() {
    let (_directory, library) = fake_library(None);
    let mut problems: Vec<_> = (1..=40).map(|images| convolution(images, 0)).collect();
    problems.push(convolution(600, 0));
    let first = ask_all(&library, &problems, 1);
    assert!(first.keys.len() > 40);
    problems.reverse();
    problems.extend_from_within(..5);
    assert_eq!(ask_all(&library, &problems, 2), first);
    problems.rotate_left(17);
    assert_eq!(ask_all(&library, &problems, 8), first);
}

#[test]
fn uses_choose_the_kernels() {
    let (_directory, library) = fake_library(None);
    let scratch = tempfile::tempdir().unwrap();
    let names = |uses: &str| {
        let mut options = options(scratch.path());
        options.uses = uses.parse().unwrap();
        let problems = [convolution(5, 1)];
        let answers = ask(&library, &problems, &options, &|| false, &mut |_| ()).unwrap();
        let names = answers.keys.into_iter().map(|asked| asked.key.kernel_name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("search"), ["kernel5.cpp.o", "naive_conv.cpp.o"]);
    assert_eq!(names("immediate"), ["immediate.cpp.o"]);
    assert!(names("hit").is_empty(), "there is no find database");
}

#[test]
fn nothing_of_the_callers_environment_reaches_the_library() {
    let (_directory, library) = fake_library(None);
    assert!(std::env::vars_os().any(|(name, _)| name == "PATH"), "there is something to keep out");
    let answers = ask_all(&library, &[convolution(5, 1)], 1);
    let mut arguments = answers.keys.iter().map(|asked| &asked.key.kernel_args);
    assert!(arguments.any(|arguments| arguments == " find Forward path=none"), "{answers:?}");
}

#[test]
fn functions_are_told_with_their_kernel() {
    let (_directory, library) = fake_library(None);
    let answers = ask_all(&library, &[convolution(5, 1)], 1);
    assert!(answers.keys.iter().all(|asked| asked.functions == ["run".to_owned()].into()));
    assert!(answers.keys.iter().all(|asked| asked.wanted.len() == 1));
}

#[test]
fn a_caller_that_cancels_does_not_wait_for_a_problem_that_hangs() {
    let (_directory, library) = fake_library(None);
    let scratch = tempfile::tempdir().unwrap();
    let mut options = options(scratch.path());
    options.time_limit = Duration::from_secs(3600);
    let asked = Cell::new(false);
    let problems = [convolution(601, 1), convolution(602, 1)];
    let error = ask(&library, &problems, &options, &|| asked.get(), &mut |event| {
        asked.set(asked.get() || matches!(event, AskEvent::Progress { .. }));
    })
    .unwrap_err();
    assert!(matches!(error, AskError::Cancelled), "{error}");
    assert!(entries(scratch.path()).is_empty(), "nothing is left behind");
}

#[track_caller]
fn error(definition: &str) -> AskError {
    let (_directory, library) = fake_library(Some(definition));
    let scratch = tempfile::tempdir().unwrap();
    let problems = [convolution(1, 1)];
    let options = options(scratch.path());
    ask(&library, &problems, &options, &|| false, &mut |_| ()).unwrap_err()
}

#[test]
fn functions_that_no_stand_in_has_are_listed() {
    let error = error("WANTS=hipNoSuchFunction");
    let AskError::MissingSymbols { symbols } = &error else { panic!("{error}") };
    assert_eq!(symbols, &["hipNoSuchFunction"]);
    assert!(error.hint().is_some());
}

#[test]
fn a_library_that_asks_for_nothing_is_refused() {
    let error = error("SILENT");
    assert!(matches!(error, AskError::SelfTest { .. }), "{error}");
    assert!(error.to_string().contains("naive_conv.cpp.o"), "{error}");
}

#[test]
fn a_library_that_falls_over_when_loaded_is_refused() {
    let error = error("FALLS");
    let AskError::Load { reason } = &error else { panic!("{error}") };
    assert!(reason.contains("signal: 11"), "{reason}");
}
