//! Programs run with a record, and what strace says of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gfxpack_process::watch::{Ask, Class, Record, Recorder, Unwatched, What};

/// A program to start.
#[expect(clippy::disallowed_methods, reason = "tests start programs")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// The first words of a command line, in a directory; its program's output
/// must be of success.
pub(crate) fn run(directory: &Path, words: &[&str]) {
    let output = command(words[0]).args(&words[1..]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What a program asks for, however it ends.
pub(crate) fn watched(directory: &Path, words: &[&str]) -> Result<Record, Unwatched> {
    let recorder = Recorder::new().unwrap();
    let mut command = command(words[0]);
    command.args(&words[1..]).current_dir(directory).envs(recorder.environment().unwrap());
    command.output().unwrap();
    recorder.finish()
}

/// A C program, or a library where that is asked for.
pub(crate) fn build(directory: &Path, source: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let program = directory.join(source.file_stem().unwrap());
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
/// process that is no driver, as the record and as strace tell them.
pub(crate) fn both(directory: &Path, words: &[&str]) -> (Record, Calls, Calls) {
    let recorder = Recorder::new().unwrap();
    let traces = tempfile::tempdir().unwrap();
    let mut strace = command("strace");
    strace.args(["-ff", "-q", "-s", "65536", "-e", "trace=file,desc,process"]);
    strace.arg("-o").arg(traces.path().join("t"));
    for (name, value) in recorder.environment().unwrap() {
        strace.arg("-E").arg(format!("{}={}", name.display(), value.display()));
    }
    let output = strace.args(words).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let own = recorder.path();
    let record = recorder.finish().unwrap();
    let mut told = Calls::new();
    for ask in &record.asks {
        if let Some(call) = as_call(ask) {
            *told.entry(call).or_default() += 1;
        }
    }
    let mut traced = Calls::new();
    for process in record.processes.iter().filter(|process| process.class != Class::Other) {
        let mut trace = Trace { own: &own, directory: directory.to_owned(), calls: &mut traced };
        trace.read(traces.path(), process.pid, false);
    }
    (record, told, traced)
}

/// What only one of the two tells.
pub(crate) fn difference<'a>(these: &'a Calls, others: &Calls) -> Vec<(&'a Call, usize, usize)> {
    let count = |call: &Call| others.get(call).copied().unwrap_or_default();
    let own = these.iter().map(|(call, &times)| (call, times, count(call)));
    own.filter(|(_, times, other)| times != other).collect()
}

fn as_call(ask: &Ask) -> Option<Call> {
    let kind = match &ask.what {
        // A directory is opened to be listed.
        What::Open { .. } | What::List => "open",
        What::Stat => "stat",
        What::Lstat => "lstat",
        What::Access(_) => "access",
        What::Readlink(_) => "readlink",
        What::Realpath(_) => return None,
        What::FileSystem => "statfs",
        What::Remove => "remove",
        What::Rename(_) => "rename",
        What::Link(_) => "link",
        What::Symlink(_) => "symlink",
        What::Make => "make",
        What::Change => "change",
        other => panic!("{other:?}"),
    };
    (!is_descriptor(&ask.path)).then(|| (kind, ask.path.clone(), ask.error.is_none()))
}

/// Where an open file lies, which the library asks too.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc/self/fd/")
}

struct Trace<'a> {
    own: &'a Path,
    directory: PathBuf,
    calls: &'a mut Calls,
}

impl Trace<'_> {
    /// A process's or a thread's calls, from where the library began to write
    /// them down: what comes before is the loader's.
    fn read(&mut self, traces: &Path, pid: u32, mut begun: bool) {
        let text = fs::read_to_string(traces.join(format!("t.{pid}"))).unwrap();
        let mut begins = 0;
        for line in text.lines() {
            let Some((name, rest)) = line.split_once('(') else { continue };
            let failed = rest.contains(") = -1 ") || rest.contains(" = -1 E");
            if name == "execve" && !failed {
                (begun, begins) = (false, 0);
            }
            if begun && name.starts_with("clone") && rest.contains("CLONE_THREAD") {
                let thread = rest.rsplit("= ").next().unwrap().trim();
                self.read(traces, thread.parse().unwrap(), true);
            }
            let paths: Vec<PathBuf> = quoted(rest);
            if name == "openat" && paths.first().is_some_and(|path| path == self.own) {
                begun = true;
                // Its arguments and its program's file.
                begins = 2;
                continue;
            }
            if !begun || paths.is_empty() {
                continue;
            }
            let own = ["/proc/self/cmdline", "/proc/self/exe"].map(Path::new);
            if begins > 0 && own.contains(&paths[0].as_path()) {
                begins -= 1;
                continue;
            }
            self.take(name, rest, &paths, failed);
        }
    }

    fn take(&mut self, name: &str, rest: &str, paths: &[PathBuf], failed: bool) {
        let nofollow = rest.contains("AT_SYMLINK_NOFOLLOW");
        let (kind, at) = match name {
            "open" | "openat" | "openat2" | "creat" => ("open", 0),
            "stat" => ("stat", 0),
            "lstat" => ("lstat", 0),
            "newfstatat" | "statx" if paths[0].as_os_str().is_empty() => return,
            "newfstatat" | "statx" => (if nofollow { "lstat" } else { "stat" }, 0),
            "access" | "faccessat" | "faccessat2" => ("access", 0),
            "readlink" | "readlinkat" => ("readlink", 0),
            "statfs" => ("statfs", 0),
            "unlink" | "unlinkat" | "rmdir" => ("remove", 0),
            "rename" | "renameat" | "renameat2" => ("rename", 0),
            "link" | "linkat" => ("link", 1),
            "symlink" | "symlinkat" => ("symlink", 1),
            "mkdir" | "mkdirat" | "mknod" | "mknodat" => ("make", 0),
            "chmod" | "fchmodat" | "fchmodat2" | "chown" | "lchown" | "fchownat" | "truncate" => {
                ("change", 0)
            }
            "utime" | "utimes" | "utimensat" | "futimesat" => ("change", 0),
            "chdir" => {
                if !failed {
                    self.directory = self.directory.join(&paths[0]);
                    self.directory = fs::canonicalize(&self.directory).unwrap();
                }
                return;
            }
            "getcwd" | "write" | "read" | "pread64" | "pwrite64" | "getdents64" | "writev" => {
                return;
            }
            other => panic!("a call that this test does not know: {other}({rest}"),
        };
        let descriptor = rest.split(',').next().unwrap().trim();
        assert!(descriptor.parse::<u32>().is_err() || paths[at].is_absolute(), "{name}({rest}");
        let path = self.directory.join(&paths[at]);
        if !is_descriptor(&path) {
            *self.calls.entry((kind, path, !failed)).or_default() += 1;
        }
    }
}

/// The texts in quotes of a line.
fn quoted(line: &str) -> Vec<PathBuf> {
    line.split('"').skip(1).step_by(2).map(PathBuf::from).collect()
}
