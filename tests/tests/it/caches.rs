//! `gfxpack caches` on real caches: PyOpenCL, loopy and PoCL run a kernel, and only their files are
//! found, measured, disabled and cleared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::project::{Run, binary, command, finish, workspace};
use crate::support::terminal::on_a_terminal;
use serde_json::Value;

/// Runs a kernel by PyOpenCL and one by loopy, and has PyOpenCL keep a binary
/// itself, as it does on platforms that keep none. With an argument, it stays
/// until its input ends.
const PROGRAM: &str = r#"
import sys
import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.cache
import loopy as lp

device = next(p for p in cl.get_platforms() if p.name == "Portable Computing Language").get_devices()[0]
context = cl.Context([device])
queue = cl.CommandQueue(context)
source = "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }"
x = cl.array.to_device(queue, np.arange(16, dtype=np.float32))
cl.Program(context, source).build().twice(queue, (16,), None, x.data)
kernel = lp.make_kernel("{[i]: 0<=i<n}", "out[i] = 2*a[i]", lang_version=(2018, 2))
_, (out,) = kernel(queue, a=x)
assert (out.get() == 4 * np.arange(16)).all()
if not cl._PYOPENCL_NO_CACHE:
    cl.cache.create_built_program_from_source_cached(context, source, b"", [device], None, [])
print("ran", flush=True)
if len(sys.argv) > 1:
    sys.stdin.read()
"#;

/// A user with a home directory, a cache directory and nothing else.
struct User(tempfile::TempDir);

impl User {
    fn new() -> Self {
        let user = Self(tempfile::tempdir().expect("a directory"));
        for dir in ["home", "tmp"] {
            fs::create_dir(user.at(dir)).expect("made");
        }
        user
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("below")).expect("made");
        fs::write(path, "mine").expect("written");
    }

    /// The command with this user's environment and nothing else.
    fn environment(&self, command: &mut Command) {
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", self.at("home")).env("XDG_CACHE_HOME", self.at("xdg"));
        command.env("TMPDIR", self.at("tmp")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("PYTHONWARNINGS", "ignore");
    }

    /// Python with PyOpenCL and loopy, after some lines of shell.
    fn python(&self, before: &str, arguments: &[&str]) -> Command {
        let python = workspace().join("target/tools/opencl/bin/python");
        assert!(
            python.is_file(),
            "PyOpenCL and loopy are needed: `cargo xtask test --setup` installs them"
        );
        let mut command = command("sh");
        self.environment(&mut command);
        let script = format!("{before}\nexec \"$0\" -c \"$@\"");
        command.args(["-c", &script]).arg(python).arg(PROGRAM).args(arguments);
        command
    }

    #[track_caller]
    fn run_kernels(&self, before: &str) {
        let run = finish(self.python(before, &[])).expect_code(0);
        assert_eq!(run.stdout, "ran\n");
    }

    fn gfxpack(&self, arguments: &[&str]) -> Run {
        let mut command = command(binary());
        self.environment(&mut command);
        command.arg("caches").args(arguments);
        finish(command)
    }

    fn json(&self, arguments: &[&str], kind: &str) -> Vec<Value> {
        let arguments = [arguments, &["--json", "-"]].concat();
        self.gfxpack(&arguments).expect_code(0).of_type(kind)
    }

    /// Every file of this user's with its size.
    fn files(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        let mut queue = vec![self.0.path().to_owned()];
        while let Some(path) = queue.pop() {
            let metadata = fs::symlink_metadata(&path).expect("there");
            if metadata.is_dir() {
                queue.extend(fs::read_dir(path).expect("readable").map(|e| e.expect("one").path()));
            } else {
                found.insert(path, metadata.len());
            }
        }
        found
    }

    /// Rows in all of pytools' databases.
    fn rows(&self) -> u64 {
        let script = "import pathlib, sqlite3, sys\n\
                      files = pathlib.Path(sys.argv[1]).glob('pdict-*.sqlite')\n\
                      print(sum(sqlite3.connect(f).execute('select count(*) from dict')\
                      .fetchone()[0] for f in files))";
        let dir = self.at("xdg/pytools");
        let mut python = command("python3");
        python.args(["-c", script]).arg(dir);
        finish(python).expect_code(0).stdout.trim().parse().expect("a number")
    }
}

/// The files of entries as gfxpack tells them.
fn files_of(entries: &[Value], all: &BTreeMap<PathBuf, u64>) -> BTreeSet<PathBuf> {
    let path = |value: &Value| PathBuf::from(value.as_str().expect("a path"));
    let mut found = BTreeSet::new();
    for entry in entries {
        let own = path(&entry["path"]);
        let beside: Vec<PathBuf> =
            entry["beside"].as_array().expect("a list").iter().map(path).collect();
        let files: Vec<&Path> = all
            .keys()
            .map(PathBuf::as_path)
            .filter(|file| file.starts_with(&own) || beside.iter().any(|one| one == file))
            .collect();
        assert_eq!(entry["files"], files.len(), "{entry}");
        assert_eq!(entry["bytes"], files.iter().map(|file| all[*file]).sum::<u64>(), "{entry}");
        found.extend(files.into_iter().map(Path::to_owned));
    }
    found
}

#[test]
fn only_cache_files_are_found_measured_and_cleared() {
    let user = User::new();
    for sentinel in [
        "home/.cache/pytools/pdict-v5-of-another-place.sqlite",
        "home/.config/miopen/gfx906_60.HIP.3_3_0_.udb.txt",
        "xdg/other/pdict-v5-x.sqlite",
        "xdg/pytools/mine.sqlite",
        "xdg/pyopencl/notes",
        "xdg/pocl/kcache/notes.txt",
        "xdg/pocl/kcache/src/program.bc",
        "tmp/x",
    ] {
        user.write(sentinel);
    }
    let before = user.files();
    user.run_kernels("");
    let after = user.files();
    let written: BTreeSet<PathBuf> =
        after.keys().filter(|file| !before.contains_key(*file)).cloned().collect();
    let names = ["pytools", "pyopencl", "pocl"];
    let listed = |name: &str| user.json(&["list", "--entries", name], "caches-entry");
    for name in names {
        assert!(!listed(name).is_empty(), "{name} has written something");
    }
    let all: Vec<Value> = names.iter().flat_map(|name| listed(name)).collect();
    assert_eq!(files_of(&all, &after), written, "exactly what they wrote");
    let total = &user.json(&[&["size"], &names[..]].concat(), "caches-total")[0];
    assert_eq!(total["bytes"], written.iter().map(|file| after[file]).sum::<u64>());

    let shown = user.gfxpack(&["clear", "--dry-run"]).expect_code(0);
    assert!(shown.stdout.contains("pdict-v5-loopy"), "{}", shown.stdout);
    let unasked = user.gfxpack(&["clear"]).expect_code(2);
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    let young = user.gfxpack(&["clear", "--yes", "--older-than", "1d"]).expect_code(0);
    assert!(young.stderr.contains("changed lately"), "{}", young.stderr);
    assert_eq!(user.files(), after, "nothing is removed yet");

    user.gfxpack(&["clear", "--yes", "pocl"]).expect_code(0);
    assert!(listed("pocl").is_empty() && !listed("pytools").is_empty());
    user.gfxpack(&["clear", "--yes"]).expect_code(0);
    assert_eq!(user.files(), before, "all of it, and nothing else");
    user.run_kernels("");
}

#[test]
fn disabled_caches_store_nothing() {
    let user = User::new();
    let exports = user.gfxpack(&["env"]).expect_code(0).stdout;
    for name in ["LOOPY_NO_CACHE=1", "PYOPENCL_NO_CACHE=1", "POCL_KERNEL_CACHE=0"] {
        assert!(exports.contains(&format!("export {name}\n")), "{exports}");
    }
    user.run_kernels(&exports);
    let kept: u64 = ["pocl", "pyopencl"]
        .iter()
        .flat_map(|name| user.json(&["size", name], "caches-total"))
        .map(|total| total["bytes"].as_u64().expect("a number"))
        .sum();
    assert_eq!(kept, 0, "{:?}", user.files());
    assert_eq!(user.rows(), 0, "loopy's databases are empty");

    // Where there is something, it stays as it is.
    user.run_kernels("");
    let (rows, files) = (user.rows(), user.files());
    assert!(rows > 0);
    user.run_kernels(&exports);
    assert_eq!(user.rows(), rows);
    let compiled = |files: &BTreeMap<PathBuf, u64>| -> Vec<PathBuf> {
        let kept = |file: &&PathBuf| !file.display().to_string().contains("/tempfile");
        files.keys().filter(kept).cloned().collect()
    };
    assert_eq!(compiled(&user.files()), compiled(&files));
}

#[test]
fn open_files_are_not_removed() {
    let user = User::new();
    let mut program = user.python("", &["stay"]);
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = program.spawn().expect("python starts");
    let mut line = String::new();
    let stdout = program.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("read");
    assert_eq!(line, "ran\n");
    let rows = user.rows();
    assert!(rows > 0);
    let kept = user.json(&["clear", "--yes", "pytools"], "caches-kept");
    let live: Vec<&Value> = kept.iter().filter(|entry| entry["reason"] == "live").collect();
    assert!(!live.is_empty(), "{kept:?}");
    assert_eq!(user.rows(), rows, "no row is lost to a program that runs");
    drop(program.stdin.take());
    assert!(program.wait().expect("it ends").success());
    let kept = user.json(&["clear", "--yes", "pytools"], "caches-kept");
    assert!(kept.is_empty(), "{kept:?}");
    assert!(user.json(&["list", "--entries", "pytools"], "caches-entry").is_empty());
}

#[test]
fn nothing_to_clear_is_no_error() {
    let user = User::new();
    for arguments in [&["clear", "pocl"][..], &["clear", "pocl", "--yes"]] {
        let run = user.gfxpack(arguments).expect_code(0);
        assert!(run.stderr.contains("nothing to remove"), "{}", run.stderr);
    }
}

#[test]
fn a_disabled_cache_is_listed_with_the_variable() {
    let user = User::new();
    let state = |variable: &str, cache: &str| {
        let mut listed = command("env");
        user.environment(&mut listed);
        listed.arg(variable).arg(binary());
        listed.args(["caches", "list", cache, "--json", "-"]);
        finish(listed).expect_code(0).of_type("caches-state").remove(0)["off"].clone()
    };
    let off = state("MIOPEN_DISABLE_CACHE=yes", "miopen");
    assert_eq!(
        (&off[0]["name"], &off[0]["value"]),
        (&"MIOPEN_DISABLE_CACHE".into(), &"yes".into())
    );
    assert_eq!(state("AMD_COMGR_CACHE=0", "comgr")[0]["name"], "AMD_COMGR_CACHE");
    assert_eq!(state("AMD_COMGR_CACHE=1", "comgr"), Value::Array(Vec::new()));
}

#[test]
fn moved_caches_write_only_to_the_new_directory() {
    let user = User::new();
    let to = user.at("elsewhere is it");
    let to = to.to_str().expect("UTF-8");
    let exports = user.gfxpack(&["env", "--to", to, "--per-rank"]).expect_code(0).stdout;
    let ranked = format!("export OMPI_COMM_WORLD_LOCAL_RANK=3\n{exports}");
    user.run_kernels(&ranked);
    let written: Vec<PathBuf> = user.files().into_keys().collect();
    assert!(written.iter().any(|file| file.extension().is_some_and(|end| end == "sqlite")));
    for file in written {
        let below = file.strip_prefix(to).expect("below the directory given");
        let rank = below.components().nth(1).expect("below the machine's name");
        assert_eq!(rank.as_os_str(), "rank-3", "{}", file.display());
    }
    let mut plain = command("sh");
    user.environment(&mut plain);
    let exports = user.gfxpack(&["env", "miopen", "--to", to]).expect_code(0).stdout;
    plain.args(["-c", &format!("{exports}\nls -d \"$MIOPEN_CUSTOM_CACHE_DIR\"")]);
    assert_eq!(finish(plain).expect_code(0).stdout, format!("{to}/miopen/kernels\n"));
}

#[test]
fn a_version_is_cleared_only_in_miopens_cache() {
    let user = User::new();
    user.write("home/.cache/miopen/3.3.0./gfx906_60.ukdb");
    user.write("home/.cache/miopen/3.4.0./gfx906_60.ukdb");
    let refused = user.gfxpack(&["clear", "--keep-newest", "--yes"]).expect_code(2);
    assert!(refused.stderr.contains("clear miopen"), "{}", refused.stderr);
    user.gfxpack(&["clear", "miopen", "--version", "3.5.1", "--yes"]).expect_code(0);
    assert!(user.at("home/.cache/miopen/3.3.0.").exists());
    user.gfxpack(&["clear", "miopen", "--keep-newest", "--yes"]).expect_code(0);
    assert!(!user.at("home/.cache/miopen/3.3.0.").exists());
    assert!(user.at("home/.cache/miopen/3.4.0./gfx906_60.ukdb").exists());
}

#[test]
fn on_a_terminal_the_user_is_asked() {
    let user = User::new();
    let path = user.at("xdg/pytools/pdict-v5-x-3.11.sqlite");
    user.write("xdg/pytools/pdict-v5-x-3.11.sqlite");
    for (answer, gone) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let mut clear = command(binary());
        let mut asked = on_a_terminal(clear.args(["caches", "clear", "pytools"]), 80);
        user.environment(&mut asked);
        fs::write(user.at("answer"), answer).unwrap();
        asked.stdin(fs::File::open(user.at("answer")).unwrap());
        let run = finish(asked).expect_code(0);
        assert!(run.stdout.contains("remove 1 entry,"), "{}", run.stdout);
        assert_eq!(!path.exists(), gone, "{answer:?}: {}", run.stdout);
    }
}
