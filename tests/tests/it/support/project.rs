//! A directory with kernels, in which the real gfxpack binary runs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The page that lists all messages.
const PAGE: &str = include_str!("../../../../docs/messages.md");

/// The checkout.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a member of the workspace")
}

/// Starts a program for a test.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start foreign tools, and gfxpack as a user would"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Optional features that are tested here.
const FEATURES: &str = "gfxpack/remote,gfxpack/remote-cache";

/// The gfxpack binary, built with the same profile as these tests. Beside it are the program that
/// loads libMIOpen, the library that this preloads, and the C library.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let profile_dir = std::env::current_exe().expect("a test binary has a path");
        let profile_dir = profile_dir.ancestors().nth(2).expect("<profile>/deps/<test>");
        let mut cargo = command(env!("CARGO"));
        // With an example named, cargo takes the features that tests have; of the whole workspace,
        // so that nothing is compiled twice that was built for all tests.
        cargo.args(["build", "--quiet", "--workspace", "--features", FEATURES, "--lib"]);
        cargo.args(["--bin", "gfxpack", "--bin", "gfxpack-miopen-probe", "--example", "lookup"]);
        // Build scripts of other crates depend on these variables; with them, crates would be
        // compiled again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"]
                .iter()
                .any(|start| text.starts_with(start))
            {
                cargo.env_remove(&name);
            }
        }
        if profile_dir.ends_with("release") {
            cargo.arg("--release");
        }
        let target_dir = profile_dir.parent().expect("the profile's directory lies in target");
        let status = cargo.arg("--target-dir").arg(target_dir).current_dir(workspace()).status();
        assert!(status.expect("cargo starts").success(), "gfxpack could not be built");
        profile_dir.join("gfxpack")
    })
}

/// The result of running gfxpack.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; `None` for a signal.
    pub(crate) code: Option<i32>,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error.
    pub(crate) stderr: String,
}

impl Run {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The JSON messages on stdout.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        let parse = |line: &str| -> Value {
            let message: Value = serde_json::from_str(line).expect("one JSON object a line");
            assert_eq!(message["format"], 1, "{line}");
            let row = format!("`{}`", message["type"].as_str().expect("a type"));
            assert!(PAGE.contains(&row), "docs/messages.md does not have {row}");
            message
        };
        self.stdout.lines().map(parse).collect()
    }

    /// The messages of a type.
    #[track_caller]
    pub(crate) fn of_type(&self, kind: &str) -> Vec<Value> {
        self.messages().into_iter().filter(|message| message["type"] == kind).collect()
    }
}

/// A temporary directory with a cache of its own.
#[derive(Debug)]
pub(crate) struct Project {
    dir: tempfile::TempDir,
}

/// A HIP kernel that does not compile with `-DBROKEN`; its code contains `N`. Without HIP's header,
/// which takes longer to compile than all the rest.
const BREAKABLE_SOURCE: &str = "#ifdef BROKEN\n#error this kernel is broken\n#endif\n\
    extern \"C\" __global__ void k(float* x) { *x *= N; }\n";

impl Project {
    /// An empty project.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    /// A project with the [`small library`](SMALL_MANIFEST): every language, five keys.
    pub(crate) fn small() -> Self {
        let project = Self::new();
        project.write("kernels.toml", SMALL_MANIFEST);
        project.write("src/add.cpp", HIP_SOURCE);
        project.write("src/scale.cl", OPENCL_SOURCE);
        project.write("src/fill.s", ASSEMBLY_SOURCE);
        project.write("include/step.h", "#define STEP 3.0f\n");
        project
    }

    /// The small library without HIP, whose kernels take the compiler a moment only.
    pub(crate) fn light() -> Self {
        let project = Self::small();
        let (head, rest) = SMALL_MANIFEST.split_once("[[kernel]]").expect("kernels");
        let (_, rest) = rest.split_once("[[kernel]]").expect("kernels in OpenCL C");
        project.write("kernels.toml", &format!("{head}[[kernel]]{rest}"));
        project
    }

    /// Puts HIP's header into the small library's HIP kernel, as most kernels have it.
    pub(crate) fn add_hips_header(&self) {
        self.write("src/add.cpp", &format!("#include <hip/hip_runtime.h>\n{HIP_SOURCE}"));
    }

    /// The small library with additional HIP kernels: two whose objects contain paths, and one for
    /// each of these options.
    pub(crate) fn with_paths_in_objects(options: &[&str]) -> Self {
        let project = Self::small();
        let options = ["-DTYPE=float -g", "-DTYPE=float -DWHERE"].iter().chain(options);
        let options: Vec<String> = options.map(|options| format!("\"{options}\"")).collect();
        let more = format!("[[kernel.variant]]\noptions = [{}]\n", options.join(", "));
        let next = "\n[[kernel]]\nsource = \"src/scale.cl\"";
        let manifest = SMALL_MANIFEST.replacen(next, &format!("{more}{next}"), 1);
        project.write("kernels.toml", &manifest);
        let aware = "#ifdef WHERE\n#include <cassert>\n\
                     __constant__ const char where[] = __FILE__;\n#endif\n\
                     #ifdef N\n__constant__ const int number = N;\n#endif\n";
        project.write("src/add.cpp", &format!("{HIP_SOURCE}{aware}"));
        project
    }

    /// Writes a stand-in for hipcc into bin.
    pub(crate) fn add_compiler(&self, stand_in: &str) {
        let stand_in = self.write("bin/hipcc", stand_in);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&stand_in, executable).expect("one's own file");
    }

    /// Copies a clang that reads configuration files (`clang.cfg` beside it) into newer/bin.
    pub(crate) fn add_newer_clang(&self) {
        let find = "command -v clang-19 || command -v clang-20 || command -v clang-21";
        let clang = fs::canonicalize(tool("sh", &["-c", find], Path::new("/")).trim());
        let clang = clang.expect("a newer clang");
        let from = clang.parent().expect("a program's directory");
        let at = |name: &str| self.path().join("newer").join(name);
        fs::create_dir_all(at("bin")).expect("one's own directory");
        fs::copy(&clang, at("bin/clang")).expect("a copy");
        fs::copy(from.join("lld"), at("bin/lld")).expect("a copy");
        std::os::unix::fs::symlink("lld", at("bin/ld.lld")).expect("a link");
        std::os::unix::fs::symlink(from.join("../lib"), at("lib")).expect("a link");
    }

    /// A project with a stand-in for hipcc in bin, and a HIP kernel for each of these texts of
    /// defines, which `-DBROKEN` breaks.
    pub(crate) fn with_compiler(stand_in: &str, defines: &[&str]) -> Self {
        let project = Self::new();
        project.add_compiler(stand_in);
        project.write("k.cpp", BREAKABLE_SOURCE);
        let numbered = defines.iter().enumerate();
        let options = numbered.map(|(number, define)| format!("-DN={number} {define}"));
        project.write_manifest("k.cpp", options);
        project
    }

    /// Writes a manifest with one source and a kernel for each of these options.
    pub(crate) fn write_manifest(&self, source: &str, options: impl Iterator<Item = String>) {
        let options: Vec<String> = options.map(|text| format!("\"{text}\"")).collect();
        self.write(
            "kernels.toml",
            &format!(
                "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
                 [[kernel]]\nsource = \"{source}\"\n[[kernel.variant]]\noptions = [{}]\n",
                options.join(", ")
            ),
        );
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file, and creates its directory.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    /// Reads a file.
    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).expect("readable")
    }

    /// gfxpack in this directory, with a cache of its own and without the user's settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.start_by(command(binary()), arguments)
    }

    /// gfxpack with these arguments as `"$@"` of a script for bash.
    pub(crate) fn script(&self, script: &str, arguments: &[&str]) -> Command {
        let mut shell = command("bash");
        shell.args(["-c", script, "bash"]).arg(binary());
        self.start_by(shell, arguments)
    }

    fn start_by(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .args(arguments)
            .current_dir(self.path())
            .env("GFXPACK_CACHE_DIR", self.path().join("cache"));
        for name in [
            "HIPCC",
            "SOURCE_DATE_EPOCH",
            "DEBFULLNAME",
            "DEBEMAIL",
            "GFXPACK_LOG",
            "GFXPACK_CACHE_SIZE",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Runs gfxpack in this directory.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        finish(self.command(arguments))
    }

    /// Starts gfxpack in this directory, without its output.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("gfxpack starts")
    }

    /// The files below a directory, relative to it, with their bytes.
    pub(crate) fn tree(&self, dir: &str) -> Vec<(String, Vec<u8>)> {
        let root = self.path().join(dir);
        let mut found = Vec::new();
        let mut queue = vec![root.clone()];
        while let Some(dir) = queue.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    queue.push(path);
                } else {
                    let name = path.strip_prefix(&root).expect("below").display().to_string();
                    found.push((name, fs::read(&path).expect("readable")));
                }
            }
        }
        found.sort();
        found
    }

    /// The number of objects in this project's cache.
    pub(crate) fn objects(&self) -> usize {
        let temporary = |name: &str| name.rsplit('/').next().is_some_and(|n| n.starts_with('.'));
        self.tree("cache/v1/objects").iter().filter(|(name, _)| !temporary(name)).count()
    }
}

/// A program as root, in English: in a user namespace for anyone who isn't root.
pub(crate) fn as_root(program: &str) -> Command {
    let mut root = if rustix::process::geteuid().is_root() {
        command(program)
    } else {
        let mut unshare = command("unshare");
        unshare.args(["--map-root-user", "--", program]);
        unshare
    };
    root.env("LC_ALL", "C.UTF-8");
    root
}

/// The words of a command line.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Run {
    let output = command.output().expect("gfxpack starts");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A command of gfxpack under strace, which writes these calls of all processes into a file.
pub(crate) fn strace(traced: &Command, calls: &str, log: &Path) -> Command {
    let mut strace = command("strace");
    strace.args(["-f", "-y", "--seccomp-bpf", "-qq", "-e", "signal=none", "-e"]);
    strace.arg(format!("trace={calls}")).arg("-o").arg(log);
    strace.arg("--");
    started_by(strace, traced)
}

/// A program that starts another one, in its directory and environment.
pub(crate) fn started_by(mut starter: Command, started: &Command) -> Command {
    starter.arg(started.get_program()).args(started.get_args());
    for (name, value) in started.get_envs() {
        match value {
            Some(value) => starter.env(name, value),
            None => starter.env_remove(name),
        };
    }
    if let Some(dir) = started.get_current_dir() {
        starter.current_dir(dir);
    }
    starter
}

/// Runs an external tool that must succeed, and returns its output.
#[track_caller]
pub(crate) fn tool(program: &str, arguments: &[&str], dir: &Path) -> String {
    let output =
        command(program).args(arguments).current_dir(dir).output().unwrap_or_else(|error| {
            panic!("{program} is needed ({error}): `cargo xtask test --setup` installs it")
        });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs a Python script, which must succeed, and returns what it prints.
#[track_caller]
pub(crate) fn python(script: &str, arguments: &[&Path]) -> String {
    let text = |path: &&Path| path.to_str().expect("a plain path").to_owned();
    let arguments: Vec<String> = arguments.iter().map(text).collect();
    let arguments = arguments.iter().map(String::as_str);
    let arguments: Vec<&str> = ["-c", script].into_iter().chain(arguments).collect();
    tool("python3", &arguments, workspace())
}

/// Reads a kdb with an independent reader: Python's sqlite3, bz2 and hashlib. Returns the keys.
#[track_caller]
pub(crate) fn python_reads(kdb: &Path, processor_number: u32) -> Vec<(String, String)> {
    let number = processor_number.to_string();
    let kdb = kdb.to_str().expect("a plain path");
    let printed = tool("python3", &["-c", READER, kdb, &number], workspace());
    let key = |line: &str| line.split_once('\t').map(|(name, args)| (name.into(), args.into()));
    printed.lines().filter_map(key).collect()
}

const READER: &str = r#"
import bz2, hashlib, sqlite3, struct, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
for name, value in dict(integrity_check="ok", journal_mode="delete", page_size=4096, encoding="UTF-8", auto_vacuum=0, freelist_count=0).items():
    assert db.execute(f"pragma {name}").fetchall() == [(value,)], name
assert db.execute("select name from sqlite_master order by name").fetchall() == [("idx_kern_db",), ("kern_db",)]
assert [c[1:4] + c[5:] for c in db.execute("pragma table_info(kern_db)")] == [
    ("id", "INTEGER", 0, 1), ("kernel_name", "TEXT", 1, 0), ("kernel_args", "TEXT", 1, 0),
    ("kernel_blob", "BLOB", 1, 0), ("kernel_hash", "TEXT", 1, 0), ("uncompressed_size", "INT", 1, 0)]
assert [c[2] for c in db.execute("pragma index_info(idx_kern_db)")] == ["kernel_name", "kernel_args"]
assert [i[2] for i in db.execute("pragma index_list(kern_db)")] == [1]
ids = [row[0] for row in db.execute("select id from kern_db order by id")]
assert ids == list(range(1, len(ids) + 1))
def machine(elf):
    assert elf[:4] == b"\x7fELF" and struct.unpack_from("<H", elf, 18)[0] == 0xe0
    return struct.unpack_from("<I", elf, 48)[0] & 0xff
previous = None
rows = db.execute("select kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size from kern_db order by id")
for name, args, blob, digest, size in rows:
    code = bz2.decompress(blob) if size else blob
    assert not size or len(code) == size and blob == bz2.compress(code, 9), name
    assert hashlib.md5(code).hexdigest() == digest, name
    assert machine(code) == int(sys.argv[2]), name
    key = (name.encode(), args.encode())
    assert previous is None or previous < key, name
    previous = key
    # The statement MIOpen itself runs.
    found = db.execute("SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE (kernel_name = '%s') AND (kernel_args = '%s')" % (name, args)).fetchall()
    assert found == [(blob, digest, size)], name
    print(f"{name}\t{args}")
"#;

/// Every language, five keys for a target.
pub(crate) const SMALL_MANIFEST: &str = r#"
format = 1

[library]
name = "small"
version = "1.2.3"
license = "MIT"
copyright = "2026 Somebody"
maintainer = "Somebody <somebody@example.org>"
include-dirs = ["include"]

[[kernel]]
source = "src/add.cpp"
[[kernel.variant]]
defines = { TYPE = ["float", "double"] }

[[kernel]]
source = "src/scale.cl"
options = "-DGROUP=64"
[[kernel.variant]]
options = ["-DFACTOR=2", "-DFACTOR=3"]

[[kernel]]
source = "src/fill.s"
[[kernel.variant]]
defines = { VALUE = 7 }
"#;

/// Like [`BREAKABLE_SOURCE`] without HIP's header.
const HIP_SOURCE: &str = r#"
#include <limits>
#include "step.h"
extern "C" __global__ void add(TYPE* x, int n)
{
    const int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    if(i < n)
        x[i] = x[i] < std::numeric_limits<TYPE>::max() ? x[i] + static_cast<TYPE>(STEP) : x[i];
}
"#;

const OPENCL_SOURCE: &str = r#"
#include "step.h"
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void scale(__global float* x, int n)
{
    const int i = get_global_id(0);
    if(i < n)
        x[i] = native_sin(x[i]) * FACTOR * STEP;
}
"#;

/// A kernel that does nothing, in a form that every generation accepts.
const ASSEMBLY_SOURCE: &str = r#"
.ifndef VALUE
.error "VALUE must be defined"
.endif
.text
.globl fill
.p2align 8
.type fill,@function
fill:
    s_endpgm
.size fill, .-fill
.section .rodata,"a",@progbits
.p2align 6
.set ACCUM, (.amdgcn.gfx_generation_minor == 0 && .amdgcn.gfx_generation_stepping == 10) || .amdgcn.gfx_generation_minor >= 4
.if (.amdgcn.gfx_generation_number == 9) && ACCUM
.amdhsa_kernel fill
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 8
    .amdhsa_accum_offset 4
.end_amdhsa_kernel
.else
.amdhsa_kernel fill
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
.endif
.data
.long VALUE
"#;
