//! Drivers, compilers, assemblers and linkers with a record.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gfxpack_process::watch::{
    FileAccess, Landlock, Operation, ProcessClass, Record, Recorder, RecorderOptions,
};

use crate::kernels::{BITCODE, HIPCC, args, compilers, kernels, run};
use crate::support::{assert_equal_to_strace, let_in, watched, watched_with};

/// The asks of processes of a class.
fn asks_of(record: &Record, class: ProcessClass) -> impl Iterator<Item = &FileAccess> {
    record.accesses.iter().filter(move |access| record.processes[access.process].class == class)
}

#[test]
fn records_of_compilers_assemblers_and_linkers_agree_with_strace() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    for number in compilers().into_iter().chain([HIPCC]) {
        // hipcc is a driver for HIP alone.
        let sources: &[&str] = if number == HIPCC { &["k.cpp"] } else { &["k.cl", "k.s", "k.cpp"] };
        for &source in sources {
            let args = args(number, source);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            run(&path, &args);
            let plain = fs::read(path.join("k.o")).unwrap();
            let record = assert_equal_to_strace(&path, &args, false);
            let classes: BTreeSet<ProcessClass> =
                record.processes.iter().map(|p| p.class).collect();
            let first =
                if source == "k.s" { ProcessClass::Assembler } else { ProcessClass::Compiler };
            assert_eq!(
                classes,
                BTreeSet::from([ProcessClass::Other, first, ProcessClass::Linker]),
                "{args:?}"
            );
            let reads =
                |name: &str| record.accesses.iter().any(|access| access.path == path.join(name));
            assert_eq!(reads("data.bin"), source != "k.cl", "{args:?}");
            assert!(plain == fs::read(path.join("k.o")).unwrap(), "{args:?}");
        }
    }
}

/// What a driver's answer depends on: all that it and its scripts ask.
#[test]
fn drivers_accesses_are_recorded_on_request() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    let clang = format!("clang-{}", compilers()[0]);
    let device = format!("--rocm-device-lib-path={BITCODE}");
    let questions: [&[&str]; 6] = [
        &[HIPCC, "-###", "--offload-arch=gfx906", "-c", "k.cpp"],
        &[HIPCC, "--version"],
        &[&clang, "-###", "-x", "hip", "--offload-arch=gfx906", &device, "-c", "k.cpp"],
        &[&clang, "-print-search-dirs"],
        &["perl", "-e", "print <*>; print `cat data.bin`; system 'ls', '-a'"],
        &["sh", "-c", "for f in *; do test -e $f/none; done; cat data.bin >copy; mv copy moved"],
    ];
    for args in questions {
        let record = assert_equal_to_strace(&path, args, true);
        let accesses = record.accesses.iter();
        let absent: BTreeSet<&Path> = accesses
            .filter(|access| access.is_absent())
            .map(|access| access.path.as_path())
            .collect();
        let lists = record.accesses.iter().any(|access| access.operation == Operation::List);
        assert!(lists && !absent.is_empty(), "{args:?}: {absent:?}");
        if args[0] == HIPCC {
            let started = |name: &str| {
                let mut started =
                    record.accesses.iter().filter(|access| access.operation == Operation::Execute);
                started.any(|access| access.path.ends_with(name) && access.error.is_none())
            };
            assert!(started("perl") && started("clang++-15"), "{args:?}");
            // The scripts themselves are read by perl.
            assert!(
                record.accesses.iter().any(|access| access.path.ends_with("hipcc.pl")),
                "{args:?}"
            );
        }
    }
}

#[test]
fn forked_jobs_have_records_of_their_own() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    let number = compilers()[0];
    let command_line = args(number, "k.cl");
    let command_line: Vec<&str> = command_line.iter().map(String::as_str).collect();
    let alone = watched(&path, &command_line).unwrap();
    let compiler = alone.processes.iter().find(|p| p.class == ProcessClass::Compiler).unwrap();
    let recorders = [Recorder::new().unwrap(), Recorder::new().unwrap()];
    let writing = |name: &str| {
        let mut args = compiler.arguments.clone();
        let output = args.iter().position(|arg| arg == "-o").unwrap() + 1;
        args[output] = path.join(name).into();
        args
    };
    let (first, second) = (writing("first.o"), writing("second.o"));
    let_in(&path, &compiler.program, [(&recorders[0], &first), (&recorders[1], &second)]);
    let asked = |record: &Record| -> Vec<_> {
        let accesses = asks_of(record, ProcessClass::Compiler)
            .filter(|access| !access.path.to_string_lossy().contains(".o"));
        accesses
            .map(|access| (access.path.clone(), access.operation.clone(), access.error))
            .collect()
    };
    for recorder in recorders {
        let record = recorder.finish().unwrap();
        assert_eq!(record.processes.len(), 1);
        assert_eq!(asked(&record), asked(&alone));
    }
}

#[test]
fn confined_drivers_and_compilers_work_as_before() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    let writable = [path.as_path()];
    let options = RecorderOptions {
        writable: Some(&writable),
        landlock: Some(Landlock::All),
        ..RecorderOptions::default()
    };
    for number in compilers().into_iter().chain([HIPCC]) {
        let args = args(number, "k.cpp");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(&path, &args);
        let plain = fs::read(path.join("k.o")).unwrap();
        let (outcome, record) = watched_with(&path, &args, &options);
        assert_eq!(outcome, Ok(()), "{args:?}");
        let record = record.unwrap();
        assert!(
            asks_of(&record, ProcessClass::Compiler).count() > 0
                && asks_of(&record, ProcessClass::Linker).count() > 0
        );
        assert!(record.accesses.iter().all(|access| access.error != Some(13)), "{args:?}");
        assert!(plain == fs::read(path.join("k.o")).unwrap(), "{args:?}");
    }
}
