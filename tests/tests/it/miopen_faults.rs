//! A fault of one problem affects no other, and functions that a libMIOpen lacks are named; tested
//! with a stand-in for one.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::support::miopen::{convolution, entries, fake_library, probe};
use crate::support::project::{Project, binary, command, finish};
use gfxpack_miopen::{AskOptions, AskReport, Failure, Library, Problem, ask};
use gfxpack_model::Error;
use gfxpack_process::watch::landlock_abi;
use gfxpack_stock_library::DeviceFault;

fn options(scratch: &std::path::Path) -> AskOptions {
    let mut options = AskOptions::new("gfx906_60".parse().unwrap(), probe(), scratch);
    options.time_limit = Duration::from_secs(1);
    options.workers = 2;
    options
}

fn ask_all(library: &Library, problems: &[Problem], workers: usize) -> AskReport {
    let scratch = tempfile::tempdir().unwrap();
    let mut options = options(scratch.path());
    options.workers = workers;
    let answers = ask(library, problems, &options, &|| false, &mut |_, _| ()).unwrap();
    assert!(entries(scratch.path()).is_empty(), "nothing is left behind");
    answers
}

/// Failures by the number of images.
fn failures(answers: &AskReport) -> BTreeMap<u64, BTreeSet<&Failure>> {
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
fn own_kernels(answers: &AskReport) -> BTreeSet<&str> {
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
fn answers_do_not_depend_on_order_or_workers() {
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

/// The library then tries two others, of which one has a source.
#[test]
fn a_kernel_that_nobody_can_compile_makes_the_library_ask_for_others() {
    let (_directory, library) = fake_library(Some("SOURCES"));
    let scratch = tempfile::tempdir().unwrap();
    let mut options = options(scratch.path());
    let mut asked = || {
        let answers = ask(&library, &[convolution(607, 1)], &options, &|| false, &mut |_, _| ());
        let answers = answers.unwrap();
        assert_eq!(answers.failures, []);
        options.sources.insert("naive_conv.cpp".to_owned());
        let keys = answers.keys.into_iter().filter(|asked| asked.wanted[&0].search);
        keys.map(|asked| asked.key.to_string()).collect::<BTreeSet<_>>()
    };
    let (first, second) = (asked(), asked());
    let more: Vec<&str> = second.difference(&first).map(String::as_str).collect();
    assert_eq!(more.len(), 2, "{more:?}");
    assert!(more[0].contains("naive_conv.cpp.o") && more[0].contains("again"), "{more:?}");
    assert!(more[1].contains("other.cpp.o"), "{more:?}");
    assert!(second.is_superset(&first), "with the kernel's source, the first would be wanted");
}

#[test]
fn uses_choose_the_kernels() {
    let (_directory, library) = fake_library(None);
    let scratch = tempfile::tempdir().unwrap();
    let names = |uses: &str| {
        let mut options = options(scratch.path());
        options.uses = uses.parse().unwrap();
        let problems = [convolution(5, 1)];
        let answers = ask(&library, &problems, &options, &|| false, &mut |_, _| ()).unwrap();
        let names = answers.keys.into_iter().map(|asked| asked.key.kernel_name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("search"), ["kernel5.cpp.o", "naive_conv.cpp.o"]);
    assert_eq!(names("immediate"), ["immediate.cpp.o"]);
    assert!(names("hit").is_empty(), "there is no find database");
}

/// What the library is told by the environment, and how it is found.
const ENVIRONMENT: &str = "HOME LC_ALL LD_LIBRARY_PATH MIOPEN_COMPILE_PARALLEL_LEVEL \
    MIOPEN_CUSTOM_CACHE_DIR MIOPEN_EXPERIMENTAL_GCN_ASM_PATH MIOPEN_LOG_LEVEL \
    MIOPEN_SYSTEM_DB_PATH MIOPEN_USER_DB_PATH TMPDIR";

#[test]
fn nothing_of_the_callers_environment_reaches_the_library() {
    let (directory, _library) = fake_library(None);
    let project = Project::new();
    project.write("list.txt", &format!("{}\n{DROPOUT}\n", convolution(700, 1)));
    let library = directory.path().to_str().unwrap();
    let args = ["ask", "--problems", "list.txt", "--target", "gfx906_60", "--miopen", library];
    let mut command = project.command(&args);
    for name in ["MIOPEN_FIND_MODE", "MIOPEN_DISABLE_CACHE", "MIOPEN_DEBUG_CONV_GEMM", "HSA_XNACK"]
    {
        command.env(name, "1");
    }
    let run = finish(command).expect_code(0);
    let keys: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names = |problem: &str| -> BTreeSet<String> {
        let of_problem = |key: &&serde_json::Value| {
            key["kernel_name"] == "environment.cpp.o"
                && key["problems"][0].as_str().unwrap().starts_with(problem)
        };
        let key = keys.iter().find(of_problem).unwrap();
        key["kernel_args"].as_str().unwrap().split_ascii_whitespace().map(str::to_owned).collect()
    };
    let expected = |more: &[&str]| -> BTreeSet<String> {
        ENVIRONMENT
            .split_ascii_whitespace()
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names("conv"), expected(&["MIOPEN_DEBUG_FIND_ONLY_SOLVER"]));
    let preload = ["GFXPACK_PRELOAD_DEVICE", "GFXPACK_PRELOAD_NOTES", "LD_PRELOAD"];
    assert_eq!(names("dropout"), expected(&preload));
}

/// Asks in a namespace that has no network and where files can be written to
/// in memory only; the files that were left there. None where namespaces are
/// not permitted.
#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
fn asked_apart(definition: Option<&str>) -> Option<(Vec<String>, String)> {
    let (directory, _library) = fake_library(definition);
    let project = Project::new();
    project.write("list.txt", &format!("{}\n{DROPOUT}\n", convolution(5, 1)));
    let apart = |args: &[&str]| {
        let mut bwrap = command("bwrap");
        bwrap.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"]);
        bwrap.args(["--dev", "/dev", "--proc", "/proc"]);
        for place in ["/tmp", "/var/tmp", "/run", "/dev/shm", "/home"] {
            bwrap.args(["--tmpfs", place]);
        }
        bwrap.arg("--ro-bind").args([project.path(), project.path()]);
        bwrap.arg("--ro-bind").args([directory.path(), directory.path()]);
        bwrap.arg("--ro-bind").args([binary().parent().unwrap(), binary().parent().unwrap()]);
        bwrap.arg("--chdir").arg(project.path()).args(["--setenv", "HOME", "/home"]).args(args);
        finish(bwrap)
    };
    let possible = apart(&["true"]);
    if possible.code != Some(0) {
        eprintln!("skipped: no namespace can be made: {}", possible.stderr);
        return None;
    }
    let script = "\"$@\" || exit; echo; find /tmp /var/tmp /run /dev/shm /home -xdev -type f";
    let library = directory.path().to_str().unwrap();
    let ask = ["ask", "--problems", "list.txt", "--target", "gfx906_60", "--miopen", library];
    let gfxpack = binary().to_str().unwrap();
    let run = apart(&[&["sh", "-c", script, "sh", gfxpack][..], &ask].concat()).expect_code(0);
    let (keys, files) = run.stdout.split_once("\n\n").unwrap();
    Some((files.lines().map(str::to_owned).collect(), keys.to_owned()))
}

#[test]
fn no_network_is_needed_and_no_file_is_left() {
    let Some((files, keys)) = asked_apart(None) else { return };
    assert_eq!(files, [""; 0]);
    for kernel in ["kernel5.cpp.o", "environment.cpp.o"] {
        assert!(keys.contains(kernel), "{keys}");
    }
    let (files, _) = asked_apart(Some("WRITES=\"/var/tmp/left\"")).unwrap();
    let expected: &[&str] = if landlock_abi().is_some() { &[] } else { &["/var/tmp/left"] };
    assert_eq!(files, expected, "the library may not write");
}

/// An operation that the driver answers with its environment.
const DROPOUT: &str = "dropout -d 64";

#[test]
fn other_primitives_are_run_one_by_one_and_reported_separately() {
    let (_directory, library) = fake_library(None);
    let lines =
        ["activ -n 2", "adam -d 1", "cat -d 1", "ctc -n 1", "gemm -m 1", "glu -D 1", "rope -X 1"];
    let mut problems: Vec<Problem> = lines.iter().map(|line| line.parse().unwrap()).collect();
    problems.push(convolution(5, 1));
    let answers = ask_all(&library, &problems, 2);
    let failed: BTreeMap<String, &Failure> = answers
        .failures
        .iter()
        .map(|one| (answers.problems[one.problem as usize].to_string(), &one.failure))
        .collect();
    let driver_failure = |reason: &str| Failure::Driver(reason.to_owned());
    let expected = [
        ("adam -d 1", Failure::Killed(11)),
        ("cat -d 1", Failure::Overdue),
        ("ctc -n 1", driver_failure("MIOpen Error: ctc.cpp:1: no")),
        ("gemm -m 1", Failure::NothingAsked),
        ("glu -D 1", driver_failure("MIOpenDriver glu")),
        ("rope -X 1", driver_failure("Input Flag: Q Not Found !")),
    ];
    let expected: BTreeMap<String, &Failure> =
        expected.iter().map(|(line, failure)| ((*line).to_owned(), failure)).collect();
    assert_eq!(failed, expected);
    let of_driver: Vec<_> = answers
        .keys
        .iter()
        .filter(|asked| asked.key.kernel_name == "driver.cpp.o")
        .map(|asked| (asked.key.kernel_args.as_str(), asked.functions.len()))
        .collect();
    // What was asked for before a failure is kept.
    assert_eq!(of_driver, [(" activ -n 2 -V 0 -i 1", 1), (" ctc -n 1 -V 0 -i 1", 1)]);
    assert_eq!(own_kernels(&answers), ["kernel5.cpp.o"].into());
}

#[test]
fn a_library_without_its_driver_computes_convolutions() {
    let (_directory, mut library) = fake_library(None);
    library.driver = None;
    let answers = ask_all(&library, &[DROPOUT.parse().unwrap(), convolution(5, 1)], 1);
    let [failed] = &answers.failures[..] else { panic!("{:?}", answers.failures) };
    assert_eq!(failed.failure, Failure::NoDriver);
    assert!(failed.failure.hint().unwrap().contains("libmiopen1-tests"));
    assert_eq!(own_kernels(&answers), ["kernel5.cpp.o"].into());
}

#[test]
fn a_probe_without_its_preload_library_names_the_missing_file() {
    let (_directory, library) = fake_library(None);
    let alone = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let mut options = options(scratch.path());
    options.probe = alone.path().join("gfxpack-miopen-probe");
    std::fs::copy(probe(), &options.probe).unwrap();
    let ask = |problem: Problem| ask(&library, &[problem], &options, &|| false, &mut |_, _| ());
    assert_eq!(ask(convolution(5, 1)).unwrap().failures, []);
    let error = ask(DROPOUT.parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("libgfxpack_miopen_preload.so"), "{error}");
    assert!(error.hint().unwrap().contains("copy it too"), "{error}");
}

#[test]
fn functions_are_reported_with_their_kernel() {
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
    let error = ask(&library, &problems, &options, &|| asked.get(), &mut |_, _| asked.set(true));
    let error = error.unwrap_err();
    assert!(error.is_interrupted(), "{error}");
    assert!(entries(scratch.path()).is_empty(), "nothing is left behind");
}

#[track_caller]
fn error(definition: &str) -> Error {
    let (_directory, library) = fake_library(Some(definition));
    let scratch = tempfile::tempdir().unwrap();
    let problems = [convolution(1, 1)];
    let options = options(scratch.path());
    ask(&library, &problems, &options, &|| false, &mut |_, _| ()).unwrap_err()
}

#[test]
fn functions_that_no_stand_in_has_are_listed() {
    let error = error("WANTS=hipNoSuchFunction");
    assert!(error.to_string().ends_with("can't replace: hipNoSuchFunction"), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_library_that_asks_for_nothing_is_refused() {
    let error = error("SILENT");
    assert!(error.cause::<DeviceFault>().is_some(), "{error}");
    assert!(error.to_string().contains("for gfx906@60: it asked for no kernel"), "{error}");
}

#[test]
fn a_library_that_crashes_when_loaded_is_refused() {
    let error = error("FALLS");
    assert!(error.cause::<DeviceFault>().is_some(), "{error}");
    assert!(error.to_string().contains("signal: 11"), "{error}");
}
