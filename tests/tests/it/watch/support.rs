//! Runs programs with a record, and with strace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gfxpack_process::find_in_path;
use gfxpack_process::watch::{
    FileAccess, Operation, Record, Recorder, RecorderOptions, WatchError,
};

const ALL: RecorderOptions<'_> =
    RecorderOptions { all: true, writable: None, landlock: None, visible: None };

/// A program to start.
#[expect(clippy::disallowed_methods, reason = "tests start programs")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// What a program asks for, however it ends.
pub(crate) fn watched(directory: &Path, args: &[&str]) -> Result<Record, WatchError> {
    watched_with(directory, args, &ALL).1
}

/// Likewise, with what it wrote if it failed.
pub(crate) fn watched_with(
    directory: &Path,
    args: &[&str],
    options: &RecorderOptions<'_>,
) -> (Result<(), String>, Result<Record, WatchError>) {
    let recorder = Recorder::with(options).unwrap();
    let mut command = command(args[0]);
    command.args(&args[1..]).current_dir(directory).env("TMPDIR", directory);
    command.envs(recorder.environment().unwrap());
    let program = find_in_path(args[0], "/usr/bin:/bin".as_ref()).unwrap_or(args[0].into());
    let output = recorder.start(&program, || command.output()).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (if output.status.success() { Ok(()) } else { Err(stderr) }, recorder.finish())
}

/// Copies of a program that was loaded once, two at once: each with its
/// arguments, its name first, and a record.
pub(crate) fn let_in(directory: &Path, program: &Path, jobs: [(&Recorder, &[OsString]); 2]) {
    let door = build(directory, "door.c", &["-shared", "-fPIC", "-ldl"]);
    let library = gfxpack_process::preload::path().unwrap();
    let mut doorway = command(program);
    let preload = format!("{} {}", library.display(), door.display());
    doorway.env("LD_PRELOAD", preload).current_dir(directory);
    for (number, (recorder, args)) in jobs.into_iter().enumerate() {
        let file = directory.join(format!("{number}.arguments"));
        let text = args.iter().flat_map(|arg| [arg.as_encoded_bytes(), &[0]].concat());
        fs::write(&file, text.collect::<Vec<u8>>()).unwrap();
        doorway.arg(recorder.path()).arg(file);
    }
    let output = doorway.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
pub(crate) fn assert_equal_to_strace(directory: &Path, args: &[&str]) -> Record {
    let (record, recorded, all_traced) = both(directory, args);
    // What is absent by a `/` at its end is told by another way to write that.
    let mut traced = Calls::new();
    for ((what, path, found), count) in all_traced {
        let text = path.as_os_str().as_encoded_bytes();
        let is_cut = !found && (text.ends_with(b"/") || text.ends_with(b"/."));
        let path = if is_cut { path.join("..") } else { path };
        *traced.entry((what, path, found)).or_default() += count;
    }
    assert!(recorded.len() > 3, "{args:?}: {recorded:?}");
    let (more, less) = (difference(&recorded, &traced), difference(&traced, &recorded));
    let lines = |calls: &[_]| calls.iter().map(|call| format!("{call:?}\n")).collect::<String>();
    let (more, less) = (lines(&more), lines(&less));
    assert!(more.is_empty() && less.is_empty(), "{args:?}\nrecord:\n{more}strace:\n{less}");
    record
}

/// A C program, or a library where that is asked for.
pub(crate) fn build(directory: &Path, source: &str, options: &[&str]) -> PathBuf {
    let text = match source {
        "door.c" => include_str!("door.c"),
        "forms.c" => include_str!("forms.c"),
        other => panic!("no source {other}"),
    };
    let sources = tempfile::tempdir().unwrap();
    let source = sources.path().join(source);
    fs::write(&source, text).unwrap();
    let program = directory.join(source.file_stem().unwrap());
    let program =
        if options.contains(&"-static") { program.with_extension("static") } else { program };
    let status = command("cc")
        .args(["-w", "-pthread", "-o"])
        .args([&program, &source])
        .args(options)
        .status()
        .unwrap();
    assert!(status.success(), "{}", source.display());
    program
}

/// A call as both tell it: what it is, of which path, and whether that was
/// there.
pub(crate) type Call = (&'static str, PathBuf, bool);

/// How often each call was made.
pub(crate) type Calls = BTreeMap<Call, usize>;

/// The same program with strace around it: the record, and the calls of every
/// process that the recorder tells of, as the record and as strace tell them.
pub(crate) fn both(directory: &Path, args: &[&str]) -> (Record, Calls, Calls) {
    let recorder = Recorder::with(&ALL).unwrap();
    let traces = tempfile::tempdir().unwrap();
    let mut strace = command("strace");
    strace.args(["-ff", "-q", "-s", "65536", "-e", "trace=file,desc,process"]);
    strace.arg("-o").arg(traces.path().join("t"));
    for (name, value) in recorder.environment().unwrap() {
        strace.arg("-E").arg(format!("{}={}", name.display(), value.display()));
    }
    strace.env_clear().env("PATH", "/usr/bin:/bin");
    let output = strace.args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let own = recorder.path();
    let record = recorder.finish().unwrap();
    let mut recorded = Calls::new();
    for access in &record.accesses {
        if let Some(call) = as_call(access) {
            *recorded.entry(call).or_default() += 1;
        }
    }
    let mut trace =
        Trace { record: &record, own: &own, traces: traces.path(), calls: Calls::new() };
    trace.read(record.processes[0].pid, State::at(directory), false);
    let mut traced = trace.calls;
    traced.retain(|call, count| {
        let recorded = recorded.get(call).copied().unwrap_or_default();
        if *count > recorded && is_systems_own(&record, call) {
            *count = recorded;
        }
        *count > 0
    });
    (record, recorded, traced)
}

/// What only one of the two tells.
pub(crate) fn difference<'a>(these: &'a Calls, others: &Calls) -> Vec<(&'a Call, usize, usize)> {
    let count = |call: &Call| others.get(call).copied().unwrap_or_default();
    let own = these.iter().map(|(call, &times)| (call, times, count(call)));
    own.filter(|(_, times, other)| times != other).collect()
}

fn as_call(access: &FileAccess) -> Option<Call> {
    let kind = match &access.operation {
        // A directory is opened to be listed.
        Operation::Open { .. } | Operation::List => "open",
        Operation::Stat => "stat",
        Operation::Lstat => "lstat",
        Operation::Access(_) => "access",
        Operation::Readlink(_) => "readlink",
        Operation::Realpath(_) => return None,
        Operation::FileSystem => "statfs",
        Operation::Change => "change",
        Operation::Execute => "execute",
        other => panic!("{other:?}"),
    };
    (!is_descriptor(&access.path)).then(|| (kind, access.path.clone(), access.error.is_none()))
}

/// What the C library and the loader ask for themselves, which no function of
/// theirs that could be replaced asks for them.
fn is_systems_own(record: &Record, (kind, path, _): &Call) -> bool {
    // Locales, character sets, time zones and users.
    const FILES: [&str; 6] = [
        "/usr/lib/locale/",
        "/usr/share/locale/",
        "/usr/lib/x86_64-linux-gnu/gconv/",
        "/etc/localtime",
        "/etc/nsswitch.conf",
        "/etc/passwd",
    ];
    let starts = |prefix: &&str| path.as_os_str().as_encoded_bytes().starts_with(prefix.as_bytes());
    let known = || FILES.iter().any(starts);
    // What a program loaded while it ran is listed at its end.
    let loaded = || record.processes.iter().any(|process| process.libraries.contains(path));
    // A path without its links is found by asking each part of it.
    let resolved = || {
        record.accesses.iter().any(|access| match &access.operation {
            Operation::Realpath(real) => {
                access.path.starts_with(path)
                    || real.as_ref().is_some_and(|real| real.starts_with(path))
            }
            _ => false,
        })
    };
    // Whether a file may be used is asked by some with its mode, and the
    // recorder asks it of a directory that was listed.
    let accessed = || {
        let mut accesses = record.accesses.iter().filter(|access| access.path == *path);
        accesses.any(|access| matches!(access.operation, Operation::Access(_) | Operation::List))
    };
    match *kind {
        // For nsswitch, whether the root directory is another one.
        "stat" => known() || accessed() || path == Path::new("/"),
        "open" => known() || loaded(),
        "readlink" => resolved(),
        _ => false,
    }
}

/// Where an open file lies, which the library asks too.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc/self/fd/")
}

struct Trace<'a> {
    record: &'a Record,
    own: &'a Path,
    traces: &'a Path,
    calls: Calls,
}

/// Where a process or a thread stands.
#[derive(Clone)]
struct State {
    directory: PathBuf,
    /// Which of the record's processes it is, from where the library began to
    /// write down its calls: what comes before is the loader's.
    process: Option<usize>,
    /// How many calls of the library's own are to come.
    begins: usize,
}

impl State {
    fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), process: None, begins: 0 }
    }
}

impl Trace<'_> {
    /// The calls of a process and of all that it starts.
    fn read(&mut self, pid: u32, mut state: State, forked: bool) {
        let processes = self.record.processes.iter().enumerate();
        let mut known = processes.filter(|(_, process)| process.pid == pid).map(|(index, _)| index);
        if state.process.is_some() && forked {
            state.process = known.next();
        }
        let text = fs::read_to_string(self.traces.join(format!("t.{pid}"))).unwrap();
        for line in text.lines() {
            let Some((name, rest)) = line.split_once('(') else { continue };
            let failed = rest.contains(") = -1 ") || rest.contains(" = -1 E");
            let paths: Vec<PathBuf> = quoted(rest);
            if name.starts_with("clone") || name.ends_with("fork") {
                let child = rest.rsplit("= ").next().unwrap().trim();
                let forked =
                    !["CLONE_THREAD", "CLONE_VFORK"].iter().any(|flag| rest.contains(flag));
                let state = State { begins: 0, ..state.clone() };
                self.read(child.parse().unwrap(), state, forked && name != "vfork");
            } else if name == "openat" && paths.first().is_some_and(|path| path == self.own) {
                state.process = known.next();
                // Its arguments and its program's file.
                state.begins = 2;
            } else if state.process.is_some() && !paths.is_empty() {
                self.call(name, rest, &paths, failed, &mut state);
            }
            if name == "execve" && !failed {
                state.process = None;
            }
        }
    }

    fn call(&mut self, name: &str, rest: &str, paths: &[PathBuf], failed: bool, state: &mut State) {
        let own = ["/proc/self/cmdline", "/proc/self/exe"].map(Path::new);
        if state.begins > 0 && own.contains(&paths[0].as_path()) {
            state.begins -= 1;
        } else {
            self.take(name, rest, paths, failed, state);
        }
    }

    fn take(&mut self, name: &str, rest: &str, paths: &[PathBuf], failed: bool, state: &mut State) {
        let nofollow = rest.contains("AT_SYMLINK_NOFOLLOW");
        let (kind, at) = match name {
            "open" | "openat" | "openat2" | "creat" => ("open", 0),
            "stat" => ("stat", 0),
            "lstat" => ("lstat", 0),
            "newfstatat" | "statx" if paths[0].as_os_str().is_empty() => return,
            "newfstatat" | "statx" => (if nofollow { "lstat" } else { "stat" }, 0),
            // It is told like a question whether the directory is there.
            "access" | "faccessat" | "faccessat2" | "chdir" => ("access", 0),
            "readlink" | "readlinkat" => ("readlink", 0),
            "statfs" => ("statfs", 0),
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
                self.count("change", state.directory.join(&paths[0]), failed);
                ("change", 1)
            }
            "symlink" | "symlinkat" => ("change", 1),
            "unlink" | "unlinkat" | "rmdir" | "mkdir" | "mkdirat" | "mknod" | "mknodat" => {
                ("change", 0)
            }
            "chmod" | "fchmodat" | "fchmodat2" | "chown" | "lchown" | "fchownat" | "truncate" => {
                ("change", 0)
            }
            "utime" | "utimes" | "utimensat" | "futimesat" => ("change", 0),
            "execve" | "execveat" => ("execute", 0),
            "getcwd" | "write" | "read" | "pread64" | "pwrite64" | "getdents64" | "writev" => {
                return;
            }
            other => panic!("a call that this test does not know: {other}({rest}"),
        };
        let descriptor = rest.split(',').next().unwrap().trim();
        assert!(descriptor.parse::<u32>().is_err() || paths[at].is_absolute(), "{name}({rest}");
        let path = state.directory.join(&paths[at]);
        if name == "chdir" && !failed {
            state.directory = fs::canonicalize(&path).unwrap();
        }
        self.count(kind, path, failed);
    }

    fn count(&mut self, kind: &'static str, path: PathBuf, failed: bool) {
        if !is_descriptor(&path) {
            *self.calls.entry((kind, path, !failed)).or_default() += 1;
        }
    }
}

/// The texts in quotes of a line.
fn quoted(line: &str) -> Vec<PathBuf> {
    line.split('"').skip(1).step_by(2).map(PathBuf::from).collect()
}
