//! What is recorded is what was asked: held against strace, over the C
//! library's functions in all their forms and over compilers.

mod support;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use gfxpack_process::watch::{
    Class, Landlock, Record, Recorder, RecorderOptions, Unwatched, What, landlock_abi,
};
use support::{both, build, command, difference, let_in, run, watched, watched_with};
use tempfile::TempDir;

/// A directory with a file, a link to it and a directory in it.
fn place() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("there"), "text").unwrap();
    symlink("there", dir.path().join("link")).unwrap();
    fs::create_dir(dir.path().join("below")).unwrap();
    dir
}

#[track_caller]
fn assert_equal_to_strace(directory: &Path, words: &[&str], all: bool) -> Record {
    let (record, told, traced) = both(directory, words, all);
    assert!(told.len() > 3, "{words:?}: {told:?}");
    let (more, less) = (difference(&told, &traced), difference(&traced, &told));
    let lines = |calls: &[_]| calls.iter().map(|call| format!("{call:?}\n")).collect::<String>();
    let (more, less) = (lines(&more), lines(&less));
    assert!(more.is_empty() && less.is_empty(), "{words:?}\nrecord:\n{more}strace:\n{less}");
    record
}

#[test]
fn every_form_of_a_call_is_told() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let record = assert_equal_to_strace(&path, &[forms.to_str().unwrap(), "-cc1", "forms"], false);
    let there = |what: &What, name: &str| {
        record.asks.iter().any(|ask| ask.what == *what && ask.path == path.join(name))
    };
    assert!(there(&What::Readlink(Some("there".into())), "link"));
    assert!(there(&What::List, "absent"));
    assert!(there(&What::Rename(path.join("moved")), "made"));
    let size = |name: &str| {
        let mut asks = record.asks.iter().filter(|ask| ask.path == path.join(name));
        asks.find_map(|ask| ask.file).unwrap().size
    };
    assert_eq!(size("there"), 4);
}

#[test]
fn paths_lead_to_where_they_were_asked_from() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let asked = |what: &str| {
        let record = watched(&path, &[forms.to_str().unwrap(), "-cc1", what]).unwrap();
        let asks = record.asks.into_iter().map(|ask| (ask.what, ask.path, ask.error.is_none()));
        asks.collect::<Vec<_>>()
    };
    let mut resolved = Vec::new();
    for (name, real) in [("link", Some(path.join("there"))), ("absent", None)] {
        let there = real.is_some();
        resolved.extend(vec![(What::Realpath(real), path.join(name), there); 3]);
        resolved.extend(vec![(What::Access(0), path.join(name), there); 2]);
    }
    assert_eq!(asked("resolve"), resolved);

    let below = path.join("below");
    let asks = asked("dirs");
    let paths: Vec<_> = asks.iter().map(|(_, path, there)| (path.clone(), *there)).collect();
    let expected = [
        (below.clone(), true),
        (below.join("none"), false),
        (below.join("../there"), true),
        (below.clone(), true),
    ];
    assert_eq!(paths, expected);
    assert_eq!(asks[3].0, What::List);
}

#[test]
fn threads_lose_nothing() {
    let dir = place();
    let forms = build(dir.path(), "forms.c", &[]);
    let record = watched(dir.path(), &[forms.to_str().unwrap(), "-cc1", "threads"]).unwrap();
    assert_eq!(record.asks.len(), 8 * 500);
}

#[test]
fn what_cant_be_watched_is_said() {
    let dir = place();
    let forms = build(dir.path(), "forms.c", &[]);
    let forms = forms.to_str().unwrap();
    let silent = |path: &str| Unwatched::Silent(path.into());
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let stripped = "env -u LD_PRELOAD /bin/true";
    let cases: Vec<(Vec<&str>, Option<Unwatched>)> = vec![
        (vec!["sh", "-c", "/bin/true; exec /bin/true"], None),
        (vec!["sh", "-c", "/bin/absent; (exit 3); exit 3"], None),
        (vec!["sh", "-c", "/bin/true & wait; (/bin/true)"], None),
        (vec!["sh", "-c", stripped], Some(silent("/bin/true"))),
        (vec!["sh", "-c", "kill -9 $$"], Some(Unwatched::NoEnd(shell))),
        (vec![forms, "-cc1", "popen"], None),
        (vec![forms, "popen", "popen unwatched"], Some(silent("/bin/sh"))),
        (vec![forms, "-cc1", "tmpfile"], Some(Unwatched::Untold("tmpfile".into()))),
        (vec![forms, "tmpfile", "tmpfile"], None),
        (vec![forms, "-cc1", "full"], Some(Unwatched::Full)),
        (vec![forms, "-cc1", "crash"], Some(Unwatched::NoEnd(dir.path().join("forms")))),
    ];
    for (words, expected) in cases {
        assert_eq!(watched(dir.path(), &words).err(), expected, "{words:?}");
    }
}

#[test]
fn of_drivers_only_what_they_start_is_told() {
    let dir = place();
    let record = watched(dir.path(), &["sh", "-c", "test -e there; cat there"]).unwrap();
    assert!(record.asks.is_empty() && record.processes.iter().all(|p| p.class == Class::Other));
    assert_eq!(record.processes.last().unwrap().arguments, ["cat", "there"]);
}

/// The compilers of which there is one: those whose calls differ most.
fn compilers() -> Vec<&'static str> {
    let is_there = |number: &&str| {
        let find = format!("command -v clang-{number}");
        command("sh").args(["-c", &find]).output().unwrap().status.success()
    };
    let compilers: Vec<_> = ["15", "19"].into_iter().filter(is_there).collect();
    assert!(!compilers.is_empty(), "there is no clang-15 and no clang-19");
    compilers
}

const HIPCC: &str = "hipcc";
const BITCODE: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";

/// Kernels that read by all the routes there are.
fn kernels() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("inc/name.h", "#pragma once\n#define NAME 3\n"),
        ("data.bin", "bytes"),
        ("inc.s", ".set one, 1\n"),
        (
            "k.cl",
            "#include \"name.h\"\n#if __has_include(\"no/such.h\") || __has_include(\"/no/such.h\")\n#endif\n\
             __kernel void k(__global float *x) { x[0] = sin(x[0]) * NAME; }\n",
        ),
        (
            "k.s",
            ".include \"inc.s\"\n.text\n.globl k\nk:\n s_endpgm\n.macro read what, name\n\
             .\\what \"\\name\"\n.endm\n read incbin, data.bin\n",
        ),
        (
            "k.cpp",
            "#include <cmath>\n#include \"name.h\"\n#if __has_include(<no/such.h>)\n#endif\n\
             extern \"C\" __attribute__((global)) void k(float *x) {\n\
             __asm__ volatile(\".pushsection .rodata\\n.incbin \\\"data.bin\\\"\\n.popsection\");\n\
             x[0] = std::sqrt(x[0]) * NAME; }\n",
        ),
    ];
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// How a kernel is compiled by a driver.
fn words(number: &str, source: &str) -> Vec<String> {
    let libraries = format!("--rocm-device-lib-path={BITCODE}");
    let clang = format!("clang-{number}");
    let mut words: Vec<String> = vec![if number == HIPCC { HIPCC.to_owned() } else { clang }];
    let more: &[&str] = match source.rsplit('.').next().unwrap() {
        _ if number == HIPCC => {
            &["--offload-arch=gfx906", "--cuda-device-only", "--no-gpu-bundle-output", "-c"]
        }
        "cl" => &["-x", "cl", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", &libraries],
        "s" => &["-x", "assembler", "-target", "amdgcn--amdhsa", "-mcpu=gfx906"],
        _ => &[
            "-x",
            "hip",
            "--rocm-path=/usr",
            "--hip-version=5.2.21153",
            &libraries,
            "--offload-arch=gfx906",
            "--cuda-device-only",
            "--no-gpu-bundle-output",
            "-c",
            "-nogpuinc",
        ],
    };
    words.extend(more.iter().map(|&word| word.to_owned()));
    words.extend(["-O1", "-Iinc", source, "-o", "k.o"].map(str::to_owned));
    words
}

#[test]
fn compilers_assemblers_and_linkers_ask_for_what_strace_sees() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    for number in compilers().into_iter().chain([HIPCC]) {
        // hipcc is a driver for HIP alone.
        let sources: &[&str] = if number == HIPCC { &["k.cpp"] } else { &["k.cl", "k.s", "k.cpp"] };
        for &source in sources {
            let words = words(number, source);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            run(&path, &words);
            let plain = fs::read(path.join("k.o")).unwrap();
            let record = assert_equal_to_strace(&path, &words, false);
            let classes: BTreeSet<Class> = record.processes.iter().map(|p| p.class).collect();
            let first = if source == "k.s" { Class::Assembler } else { Class::Compiler };
            assert_eq!(classes, BTreeSet::from([Class::Other, first, Class::Linker]), "{words:?}");
            let reads = |name: &str| record.asks.iter().any(|ask| ask.path == path.join(name));
            assert_eq!(reads("data.bin"), source != "k.cl", "{words:?}");
            assert!(plain == fs::read(path.join("k.o")).unwrap(), "{words:?}");
        }
    }
}

#[test]
fn programs_are_told_with_the_files_that_their_names_may_mean() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let record = assert_equal_to_strace(&path, &[forms.to_str().unwrap(), "-", "start"], true);
    let started = |file: &str, error: Option<i32>| {
        let asks = record.asks.iter().filter(|ask| ask.what == What::Execute);
        asks.filter(|ask| ask.path == path.join(file) && ask.error == error).count()
    };
    let (absent, denied) = (Some(2), Some(13));
    assert_eq!(started("/usr/bin/true", None), 5);
    assert_eq!(started("/nowhere/true", absent), 3);
    assert_eq!(started("/usr/bin/no-such-program", absent), 2);
    assert_eq!(started("below", denied), 1);
    assert_eq!(started("below/script", Some(8)), 1);
    assert_eq!(started("/bin/sh", None), 4);
    let words: Vec<_> = record.processes.iter().map(|process| &process.arguments).collect();
    let shells = words.iter().filter(|words| words[0] == "sh").count();
    assert!(shells >= 3 && words.iter().any(|words| *words == &["cat", "there"]), "{words:?}");
}

#[test]
fn what_lists_directories_for_a_program_is_told() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let record = assert_equal_to_strace(&path, &[forms.to_str().unwrap(), "-cc1", "find"], false);
    let listed = |name: &str| {
        let asks = record.asks.iter().filter(|ask| ask.what == What::List);
        asks.filter(|ask| ask.path == path.join(name)).count()
    };
    assert_eq!((listed("below"), listed("absent"), listed(".")), (2, 2, 5));
    let none =
        |ask: &gfxpack_process::watch::Ask| ask.path == path.join("below/none") && ask.is_absent();
    assert!(record.asks.iter().any(none));
}

/// What a driver's answer rests on: all that it and its scripts ask.
#[test]
fn of_drivers_all_is_told_where_that_is_wished() {
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
    for words in questions {
        let record = assert_equal_to_strace(&path, words, true);
        let asks = record.asks.iter();
        let absent: BTreeSet<&Path> =
            asks.filter(|ask| ask.is_absent()).map(|ask| ask.path.as_path()).collect();
        let lists = record.asks.iter().any(|ask| ask.what == What::List);
        assert!(lists && !absent.is_empty(), "{words:?}: {absent:?}");
        if words[0] == HIPCC {
            let started = |name: &str| {
                let mut started = record.asks.iter().filter(|ask| ask.what == What::Execute);
                started.any(|ask| ask.path.ends_with(name) && ask.error.is_none())
            };
            assert!(started("perl") && started("clang++-15"), "{words:?}");
            // The scripts themselves are read by perl.
            assert!(record.asks.iter().any(|ask| ask.path.ends_with("hipcc.pl")), "{words:?}");
        }
    }
}

#[test]
fn copies_of_a_loaded_compiler_have_records_of_their_own() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    let number = compilers()[0];
    let command_line = words(number, "k.cl");
    let command_line: Vec<&str> = command_line.iter().map(String::as_str).collect();
    let alone = watched(&path, &command_line).unwrap();
    let compiler = alone.processes.iter().find(|p| p.class == Class::Compiler).unwrap();
    let recorders = [Recorder::new().unwrap(), Recorder::new().unwrap()];
    let writing = |name: &str| {
        let mut words = compiler.arguments.clone();
        let output = words.iter().position(|word| word == "-o").unwrap() + 1;
        words[output] = path.join(name).into();
        words
    };
    let (first, second) = (writing("first.o"), writing("second.o"));
    let_in(&path, &compiler.program, [(&recorders[0], &first), (&recorders[1], &second)]);
    let asked = |record: &Record| -> Vec<_> {
        let asks =
            record.of(Class::Compiler).filter(|ask| !ask.path.to_string_lossy().contains(".o"));
        asks.map(|ask| (ask.path.clone(), ask.what.clone(), ask.error)).collect()
    };
    for recorder in recorders {
        let record = recorder.finish().unwrap();
        assert_eq!(record.processes.len(), 1);
        assert_eq!(asked(&record), asked(&alone));
    }
}

#[test]
fn a_copy_of_a_loaded_compiler_starts_no_program() {
    let dir = place();
    let path = dir.path().canonicalize().unwrap();
    let forms = build(&path, "forms.c", &[]);
    let recorders = [Recorder::new().unwrap(), Recorder::new().unwrap()];
    let words = |what: &str| [forms.to_str().unwrap(), "-cc1", what].map(OsString::from);
    let (start, none) = (words("start nothing"), words("dirs"));
    let_in(&path, &forms, [(&recorders[0], &start), (&recorders[1], &none)]);
    let [start, none] = recorders.map(Recorder::finish);
    assert_eq!(start, Err(Unwatched::Untold("execve".into())));
    assert!(none.is_ok());
}

/// A directory and all in it, with when each was last changed in any way.
fn state(path: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    let meta = path.symlink_metadata().unwrap();
    let mut all = vec![(path.to_owned(), meta.ino(), meta.ctime(), meta.ctime_nsec())];
    if meta.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let entries: BTreeSet<PathBuf> = entries.collect();
        all.extend(entries.iter().flat_map(|path| state(path)));
    }
    all
}

/// A directory that may be written, with links out of it, and one that may not.
fn two_places() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let [mine, other] = ["mine", "other"].map(|name| path.join(name));
    for dir in [&mine, &mine.join("below"), &other, &other.join("dir")] {
        fs::create_dir(dir).unwrap();
    }
    fs::write(other.join("file"), "text").unwrap();
    fs::write(mine.join("own"), "").unwrap();
    for (name, to) in
        [("to-dir", "../other"), ("to-file", "../other/file"), ("to-nothing", "../other/new")]
    {
        symlink(to, mine.join(name)).unwrap();
    }
    (dir, mine, other)
}

#[test]
fn what_is_written_elsewhere_fails_before_it_happens_and_is_told() {
    for class in ["-cc1", "a driver"] {
        let (dir, mine, other) = two_places();
        let forms = build(dir.path(), "forms.c", &[]);
        let before = state(&other);
        let outside = other.to_str().unwrap();
        let below = mine.join("below/../../other");
        let bases = [outside, "../other", "to-dir", below.to_str().unwrap(), "to-dir/dir/.."];
        let words = [&[forms.to_str().unwrap(), class, "write"], bases.as_slice()].concat();
        let writable = [mine.as_path()];
        let options = RecorderOptions { writable: Some(&writable), ..RecorderOptions::default() };
        let (said, record) = watched_with(&mine, &words, &options);
        assert_eq!(said, Ok(()), "{class}");
        assert_eq!(state(&other), before, "{class}");
        let record = record.unwrap();
        let refused: Vec<_> = record.asks.iter().filter(|ask| ask.error == Some(13)).collect();
        assert!(refused.iter().all(|ask| ask.what.writes()), "{class}");
        assert_eq!(refused.len(), 49 * bases.len() + 8, "{class}");
        // What a driver writes where it may is its own matter.
        assert_eq!(record.asks.len() > refused.len(), class == "-cc1");
        // Where nothing was said, it may write anything.
        let free = watched_with(&mine, &["touch", "../other/file"], &RecorderOptions::default());
        assert!(free.0.is_ok() && state(&other) != before);
    }
}

#[test]
fn scripts_write_where_they_may() {
    let (_dir, mine, other) = two_places();
    let writable = [mine.as_path()];
    let options = RecorderOptions { writable: Some(&writable), ..RecorderOptions::default() };
    let script = "echo x >own 2>/dev/null && mv own moved && perl -e 'open F, \">\", \"new\" or exit 1' && rm new";
    assert_eq!(watched_with(&mine, &["sh", "-c", script], &options).0, Ok(()));
    for script in ["echo x >../other/file", "mv own ../other/new", "sh -c 'rm to-dir/file'"] {
        let (said, record) = watched_with(&mine, &["sh", "-c", script], &options);
        assert!(said.is_err(), "{script}");
        let asks = record.unwrap().asks;
        assert!(asks.iter().any(|ask| ask.what.writes() && ask.error == Some(13)), "{script}");
    }
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "text");
}

/// What goes past the library: a program's own system calls, and those of one
/// that loads no libraries.
#[test]
fn the_kernel_refuses_what_the_library_does_not_see() {
    use Landlock::{All, Compilers};
    let kernel = landlock_abi().is_some();
    let cases = [
        ("-cc1", None, false),
        ("-cc1", Some(Compilers), kernel),
        ("-cc1", Some(All), kernel),
        ("a driver", Some(Compilers), false),
        ("a driver", Some(All), kernel),
        ("static", Some(Compilers), false),
        ("static", Some(All), kernel),
    ];
    for (class, landlock, refused) in cases {
        let (dir, mine, other) = two_places();
        let options: &[&str] = if class == "static" { &["-static"] } else { &[] };
        let forms = build(dir.path(), "forms.c", options);
        let command = format!("{} {class:?} past {}; exit $?", forms.display(), other.display());
        let script = ["sh", "-c", &command];
        let direct = [forms.to_str().unwrap(), class, "past", other.to_str().unwrap()];
        let words: &[&str] = if class == "static" { &script } else { &direct };
        let before = state(&other);
        let writable = [mine.as_path()];
        let options =
            RecorderOptions { writable: Some(&writable), landlock, ..RecorderOptions::default() };
        let (said, record) = watched_with(&mine, words, &options);
        assert_eq!(said, Ok(()), "{class} {landlock:?}");
        assert_eq!(state(&other) == before, refused, "{class} {landlock:?}");
        let expected = match class {
            "-cc1" => Some(Unwatched::Untold("syscall".into())),
            "static" => Some(Unwatched::Silent(forms)),
            _ => None,
        };
        assert_eq!(record.err(), expected, "{class} {landlock:?}");
        // Nothing of the recorder's is left.
        let names = fs::read_dir(&mine).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    }
}

#[test]
fn the_kernel_refuses_reads_where_there_is_a_list() {
    let (dir, mine, other) = two_places();
    let forms = build(dir.path(), "forms.c", &[]);
    let file = other.join("file");
    let words = [forms.to_str().unwrap(), "-cc1", "read", file.to_str().unwrap()];
    let (writable, system) = ([mine.as_path()], [Path::new("/usr")]);
    let listed = [Path::new("/usr"), &other];
    for (readable, refused) in
        [(None, false), (Some(&listed[..]), false), (Some(&system[..]), true)]
    {
        let options = RecorderOptions {
            writable: Some(&writable),
            readable,
            landlock: Some(Landlock::Compilers),
            ..RecorderOptions::default()
        };
        let said = watched_with(&mine, &words, &options).0;
        assert_eq!(said.is_err(), refused && landlock_abi().is_some(), "{readable:?}");
    }
}

/// More processes deep than the kernel has layers of rules.
#[test]
fn held_by_the_kernel_drivers_and_compilers_do_what_they_did() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    let writable = [path.as_path()];
    let options = RecorderOptions {
        writable: Some(&writable),
        landlock: Some(Landlock::All),
        ..RecorderOptions::default()
    };
    let nested = "test ${1:-0} -ge 20 && exec ls; sh -c \"$0\" \"$0\" $((${1:-0} + 1)); exit $?";
    let (said, record) = watched_with(&path, &["sh", "-c", nested, nested], &options);
    assert_eq!(said, Ok(()));
    assert!(record.unwrap().processes.len() > 20);
    for number in compilers().into_iter().chain([HIPCC]) {
        let words = words(number, "k.cpp");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        run(&path, &words);
        let plain = fs::read(path.join("k.o")).unwrap();
        let (said, record) = watched_with(&path, &words, &options);
        assert_eq!(said, Ok(()), "{words:?}");
        let record = record.unwrap();
        assert!(record.of(Class::Compiler).count() > 0 && record.of(Class::Linker).count() > 0);
        assert!(record.asks.iter().all(|ask| ask.error != Some(13)), "{words:?}");
        assert!(plain == fs::read(path.join("k.o")).unwrap(), "{words:?}");
    }
}
