//! Records contain all file accesses: compared with strace, for the C library's functions in all
//! their forms.

use std::fs;

use gfxpack_process::Identity;
use gfxpack_process::watch::{Operation, RecorderOptions, WatchError};

use super::place;
use super::support::{assert_equal_to_strace, build, watched, watched_with};

#[test]
fn every_form_of_a_call_is_recorded() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let record = assert_equal_to_strace(&path, &[forms.to_str().unwrap(), "-", "forms"]);
    let there = |operation: &Operation, name: &str| {
        record
            .accesses
            .iter()
            .any(|access| access.operation == *operation && access.path == path.join(name))
    };
    assert!(there(&Operation::Readlink(Some("there".into())), "link"));
    assert!(there(&Operation::List, "absent"));
    assert!(there(&Operation::Change, "moved"));
    let mut accesses = record.accesses.iter().filter(|access| access.path == path.join("there"));
    let recorded = accesses.find_map(|access| access.file).unwrap().identity;
    let there = fs::metadata(path.join("there")).unwrap();
    assert_eq!(recorded.file_id(), Identity::from_metadata(&there).file_id());
}

#[test]
fn paths_are_recorded_from_the_current_directory_of_the_call() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let asked = |what: &str| {
        let record = watched(&path, &[forms.to_str().unwrap(), "-cc1", what]).unwrap();
        let accesses = record
            .accesses
            .into_iter()
            .map(|access| (access.operation, access.path, access.error.is_none()));
        accesses.collect::<Vec<_>>()
    };
    let mut resolved = Vec::new();
    for (name, real) in [("link", Some(path.join("there"))), ("absent", None)] {
        let there = real.is_some();
        resolved.extend(vec![(Operation::Realpath(real), path.join(name), there); 3]);
        resolved.extend(vec![(Operation::Access(0), path.join(name), there); 2]);
    }
    assert_eq!(asked("resolve"), resolved);

    let below = path.join("below");
    let accesses = asked("dirs");
    let paths: Vec<_> = accesses.iter().map(|(_, path, there)| (path.clone(), *there)).collect();
    let expected = [
        (below.clone(), true),
        (below.join("none"), false),
        (below.join("../there"), true),
        (below.clone(), true),
    ];
    assert_eq!(paths, expected);
    assert_eq!(accesses[3].0, Operation::List);
}

#[test]
fn concurrent_threads_lose_no_entries() {
    let dir = place();
    let forms = build(dir.path(), "forms.c", &[]);
    let record = watched(dir.path(), &[forms.to_str().unwrap(), "-cc1", "threads"]).unwrap();
    assert_eq!(record.accesses.len(), 8 * 500);
}

#[test]
fn operations_that_cannot_be_recorded_are_reported() {
    let dir = place();
    let forms = build(dir.path(), "forms.c", &[]);
    let forms = forms.to_str().unwrap();
    let silent = |path: &str| WatchError::NotWatched(path.into());
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let stripped = "env -u LD_PRELOAD /bin/true";
    let cases: Vec<(Vec<&str>, Option<WatchError>)> = vec![
        (vec!["sh", "-c", "/bin/true; exec /bin/true"], None),
        (vec!["sh", "-c", "/bin/absent; (exit 3); exit 3"], None),
        (vec!["sh", "-c", "/bin/true & wait; (/bin/true)"], None),
        (vec!["sh", "-c", stripped], Some(silent("/bin/true"))),
        (vec!["sh", "-c", "kill -9 $$"], Some(WatchError::NotEnded(shell))),
        (vec![forms, "-cc1", "popen"], None),
        (vec![forms, "popen", "popen unwatched"], Some(silent("/bin/sh"))),
        (vec![forms, "-cc1", "tmpfile"], Some(WatchError::NotRecordable("tmpfile".into()))),
        (vec![forms, "a driver", "tmpfile"], Some(WatchError::NotRecordable("tmpfile".into()))),
        (vec![forms, "-cc1", "find"], Some(WatchError::NotRecordable("scandir".into()))),
        (vec![forms, "-cc1", "full"], Some(WatchError::Full)),
        (vec![forms, "-cc1", "long names"], None),
        (vec![forms, "-cc1", "crash"], Some(WatchError::NotEnded(dir.path().join("forms")))),
    ];
    for (args, expected) in cases {
        assert_eq!(watched(dir.path(), &args).err(), expected, "{args:?}");
    }
    let unasked = |class| {
        watched_with(dir.path(), &[forms, class, "tmpfile"], &RecorderOptions::default()).1.is_ok()
    };
    assert!(unasked("a driver") && !unasked("-cc1"));
}

#[test]
fn only_started_programs_are_recorded_unless_more_is_asked_for() {
    let dir = place();
    let args = ["sh", "-c", "test -e there; cat there"];
    let record = watched_with(dir.path(), &args, &RecorderOptions::default()).1.unwrap();
    assert!(record.accesses.is_empty() && !record.processes.iter().any(|it| it.compiles));
    assert_eq!(record.processes.last().unwrap().arguments, ["cat", "there"]);
}

#[test]
fn programs_are_recorded_with_the_candidates_in_path() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let record = assert_equal_to_strace(&path, &[forms.to_str().unwrap(), "-", "start"]);
    let started = |file: &str, error: Option<i32>| {
        let accesses =
            record.accesses.iter().filter(|access| access.operation == Operation::Execute);
        accesses.filter(|access| access.path == path.join(file) && access.error == error).count()
    };
    let (absent, denied) = (Some(2), Some(13));
    assert_eq!(started("/usr/bin/true", None), 5);
    assert_eq!(started("/nowhere/true", absent), 3);
    assert_eq!(started("/usr/bin/no-such-program", absent), 2);
    assert_eq!(started("below", denied), 1);
    assert_eq!(started("below/script", Some(8)), 1);
    assert_eq!(started("/bin/sh", None), 4);
    let args: Vec<_> = record.processes.iter().map(|process| &process.arguments).collect();
    let shells = args.iter().filter(|args| args[0] == "sh").count();
    assert!(shells >= 3 && args.iter().any(|args| *args == &["cat", "there"]), "{args:?}");
}

#[test]
fn loaded_and_unloaded_libraries_are_recorded() {
    let dir = place();
    let forms = build(dir.path(), "forms.c", &["-ldl"]);
    let record = watched(dir.path(), &[forms.to_str().unwrap(), "-cc1", "load"]).unwrap();
    let libraries = &record.processes[0].libraries;
    assert!(libraries.iter().any(|library| library.ends_with("libresolv.so.2")), "{libraries:?}");
}
