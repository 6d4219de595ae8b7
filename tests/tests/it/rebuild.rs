//! Which jobs run again after a change in a copy of the toolchain's files, and what `plan
//! --explain` reports.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::gate::Gate;
use crate::support::project::{Project, Run, command, finish, strace, tool};
use gfxpack_process::watch::landlock_abi;
use serde_json::Value;

/// What hipcc of this machine uses.
struct Toolchain {
    clang: PathBuf,
    lld: PathBuf,
    resource_dir: PathBuf,
    device_libs: PathBuf,
    headers: PathBuf,
}

fn installed() -> Toolchain {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.hip"), "").unwrap();
    let mut hipcc = command("hipcc");
    hipcc.current_dir(dir.path());
    let arguments = ["-###", "--offload-arch=gfx906", "--cuda-device-only", "-c", "x.hip"];
    let output = hipcc.args(arguments).output().expect("hipcc starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let args: Vec<&str> = stderr.split_whitespace().map(|arg| arg.trim_matches('"')).collect();
    let after = |option: &str| {
        let at = args.iter().position(|arg| *arg == option).expect(option);
        PathBuf::from(args[at + 1])
    };
    let clang = PathBuf::from(args[args.iter().position(|arg| *arg == "-cc1").unwrap() - 1]);
    let lld = args.iter().find(|arg| arg.ends_with("/lld") || arg.ends_with("ld.lld"));
    Toolchain {
        clang: fs::canonicalize(clang).unwrap(),
        lld: fs::canonicalize(lld.expect("hipcc links with lld")).unwrap(),
        resource_dir: after("-resource-dir"),
        device_libs: after("-mlink-builtin-bitcode").parent().unwrap().to_owned(),
        headers: PathBuf::from("/usr/include/hip"),
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    tool("cp", &["-rL", from.to_str().unwrap(), to.to_str().unwrap()], Path::new("/"));
}

/// A library of every language, and a toolchain of its own to change: a copy
/// of each of its files, in an LLVM prefix beside a ROCm prefix.
fn project() -> Project {
    let project = Project::small();
    project.add_hips_header();
    let installed = installed();
    let at = |path: &str| project.path().join(path);
    copy(&installed.clang, &at("llvm/bin/clang"));
    copy(&installed.lld, &at("llvm/bin/lld"));
    symlink("lld", at("llvm/bin/ld.lld")).unwrap();
    let version = installed.resource_dir.file_name().unwrap().to_str().unwrap().to_owned();
    copy(
        &installed.resource_dir.join("include"),
        &at(&format!("llvm/lib/clang/{version}/include")),
    );
    copy(&installed.device_libs, &at("rocm/amdgcn/bitcode"));
    copy(&installed.headers, &at("rocm/include/hip"));
    project
}

const TOOLS: [&str; 8] = [
    "--clang",
    "llvm/bin/clang",
    "--rocm-path",
    "rocm",
    "--device-libs",
    "rocm/amdgcn/bitcode",
    "--json",
    "-",
];
const INPUT: [&str; 4] = ["--manifest", "kernels.toml", "--target", "gfx906"];

fn build(project: &Project) -> Run {
    let arguments = [&["build", "--out", "o"], &INPUT[..], &TOOLS].concat();
    project.run(&arguments).expect_code(0)
}

/// Names of the kernels that a build compiles, each as often as it has keys.
fn compiled(project: &Project) -> Vec<String> {
    let run = build(project);
    let finished = &run.of_type("build-finished")[0];
    let mut names: Vec<String> = run
        .of_type("job-finished")
        .iter()
        .map(|job| job["kernel_name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(finished["compiled"], names.len(), "{finished}");
    names
}

fn explained(project: &Project, key: &str) -> Value {
    let arguments = [&["plan", "--explain", key], &INPUT[..], &TOOLS].concat();
    let run = project.run(&arguments).expect_code(0);
    run.of_type("explained").remove(0)
}

/// What is said of a kernel that would be compiled again.
fn changes(project: &Project, key: &str) -> Vec<String> {
    let message = explained(project, key);
    let change = |change: &Value| {
        let field = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
        [field("what"), field("name"), field("how")].join(" ")
    };
    message["changes"].as_array().unwrap().iter().map(change).collect()
}

/// Changes one byte of a file that was put there for that.
fn append(project: &Project, file: &str, byte: &str) {
    let path = project.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(byte.as_bytes());
    fs::write(&path, bytes).unwrap();
}

const HIP: &str = "add.cpp.o";
const OPENCL: &str = "scale.cl.o";
const ASSEMBLY: &str = "fill.s.o";

#[test]
fn a_changed_byte_rebuilds_exactly_the_jobs_that_depend_on_it() {
    let project = project();
    let all = [HIP, HIP, ASSEMBLY, OPENCL, OPENCL];
    assert_eq!(explained(&project, "add.cpp")["state"], "new");
    assert_eq!(compiled(&project), all);
    assert!(compiled(&project).is_empty(), "nothing changed");
    assert_eq!(explained(&project, "add.cpp")["state"], "stored");

    append(&project, "rocm/include/hip/hip_runtime.h", " ");
    assert_eq!(changes(&project, "add.cpp"), ["header hip/hip_runtime.h changed"]);
    assert_eq!(explained(&project, "scale.cl")["state"], "stored");
    assert_eq!(compiled(&project), [HIP, HIP]);

    // Of another processor: nothing that is linked, but of the libraries.
    append(&project, "rocm/amdgcn/bitcode/oclc_isa_version_1030.bc", "\0");
    let changed = ["device-library bitcode/oclc_isa_version_1030.bc changed"];
    assert_eq!(changes(&project, "scale.cl"), changed);
    assert_eq!(explained(&project, "fill.s")["state"], "stored");
    assert_eq!(compiled(&project), [HIP, HIP, OPENCL, OPENCL]);

    append(&project, "llvm/bin/clang", "\0");
    assert_eq!(changes(&project, "fill.s"), ["compiler clang changed"]);
    append(&project, "llvm/bin/lld", "\0");
    let both = ["compiler clang changed", "compiler lld changed"];
    assert_eq!(changes(&project, "fill.s"), both);
    assert_eq!(compiled(&project), all);

    project.write("include/step.h", "#define STEP 5.0f\n");
    assert_eq!(changes(&project, "scale.cl"), ["source gfxpack-include-0/step.h changed"]);
    assert_eq!(compiled(&project), [HIP, HIP, OPENCL, OPENCL]);

    append(&project, "src/fill.s", "// more\n");
    assert_eq!(changes(&project, "fill.s"), ["source src/fill.s changed"]);
    assert_eq!(compiled(&project), [ASSEMBLY]);

    let manifest = fs::read_to_string(project.path().join("kernels.toml")).unwrap();
    project.write("kernels.toml", &manifest.replace("FACTOR=2", "FACTOR=9"));
    assert_eq!(explained(&project, "FACTOR=9")["state"], "new");
    assert_eq!(compiled(&project), [OPENCL]);
    assert!(compiled(&project).is_empty());

    let key = explained(&project, "fill.s")["object"].as_str().unwrap().to_owned();
    fs::remove_file(project.path().join("cache/v1/objects").join(&key[..2]).join(&key)).unwrap();
    assert_eq!(explained(&project, "fill.s")["state"], "gone");
    assert_eq!(compiled(&project), [ASSEMBLY]);
}

#[test]
fn a_rocm_directory_with_the_same_hip_headers_is_not_the_same() {
    let (project, installed) = (Project::new(), installed());
    project.write("k.cpp", "#include <own/v.h>\n__global__ void k(int* x) { *x = V; }\n");
    project.write_manifest("k.cpp", std::iter::empty());
    let kdb = |rocm: &str, value: &str| {
        copy(&installed.headers, &project.path().join(rocm).join("include/hip"));
        project.write(&format!("{rocm}/include/own/v.h"), &format!("#define V {value}\n"));
        let clang = ["--clang", installed.clang.to_str().unwrap(), "--rocm-path", rocm];
        let libs = ["--device-libs", installed.device_libs.to_str().unwrap(), "--out", "o"];
        let arguments = [&["build"], &INPUT[..], &clang, &libs].concat();
        let _ = project.run(&arguments).expect_code(0);
        project.tree("o/kdb")
    };
    assert_ne!(kdb("rocm", "1"), kdb("other", "2"));
}

/// What is there differs from process to process.
#[test]
fn no_option_allows_files_below_proc() {
    let project = Project::new();
    project.write("e.s", ".incbin \"/proc/self/maps\"\n");
    project.write_manifest("e.s", std::iter::empty());
    let arguments = [&["build", "--out", "o", "--allow-read", "/proc"], &INPUT[..]].concat();
    let run = project.run(&arguments).expect_code(100);
    assert!(run.stderr.contains("`/proc/self/maps`, which is below /proc"), "{}", run.stderr);
}

/// A run with the stand-in for hipcc, which must succeed.
fn by_hipcc(project: &Project, arguments: &[&str]) -> Run {
    let more = ["--hipcc", "bin/hipcc", "--json", "-"];
    project.run(&[arguments, &INPUT, &more].concat()).expect_code(0)
}

/// How many kernels a build with it compiles.
fn compiled_by_hipcc(project: &Project, more: &[&str]) -> u64 {
    let run = by_hipcc(project, &[&["build", "--out", "o"], more].concat());
    run.of_type("build-finished")[0]["compiled"].as_u64().unwrap()
}

#[test]
fn objects_of_a_wrapper_in_bash_are_cached() {
    let project = Project::new();
    project.write("k.cl", "__kernel void k(__global int *x) { *x = 1; }\n");
    project.write_manifest("k.cl", std::iter::empty());
    // Without a terminal and with one, bash looks for its own.
    project.add_compiler("#!/bin/bash\nexec hipcc \"$@\"\n");
    let compiled = || compiled_by_hipcc(&project, &["--via", "hipcc"]);
    assert_eq!([compiled(), compiled()], [1, 0]);
}

/// Adds the options in the file `flags`, appends to the file `log`, and becomes hipcc.
const LAUNCHER: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **arguments) {
    char flag[99] = "";
    fread(flag, 1, 98, fopen(DIR "/flags", "r"));
    int log = open(DIR "/log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    write(log, "x", 1);
    char *all[count + 2];
    memcpy(all, arguments, count * sizeof *all);
    all[count] = flag;
    all[count + 1] = NULL;
    return execv("/usr/bin/hipcc", all);
}
"#;

/// A program without libraries can't be watched: what it reads is not known, so nothing that is
/// made behind it is kept. The kernel keeps it from writing elsewhere.
#[test]
fn objects_behind_a_static_launcher_are_not_kept_and_it_writes_nothing() {
    for behind_script in [false, true] {
        let project = Project::new();
        project.write("k.cpp", "extern \"C\" __global__ void k(int *x) { *x = Y; }\n");
        project.write_manifest("k.cpp", std::iter::empty());
        project.write("launcher.c", LAUNCHER);
        project.add_compiler("#!/bin/sh\nexec ${0%/*}/launcher \"$@\"\n");
        let to = if behind_script { "bin/launcher" } else { "bin/hipcc" };
        let dir = format!("-DDIR=\"{}\"", project.path().display());
        tool("cc", &["-static", "-w", &dir, "-o", to, "launcher.c"], project.path());
        let object = |flag: &str| {
            project.write("flags", flag);
            assert_eq!(compiled_by_hipcc(&project, &[]), 1);
            fs::read(project.path().join("o/kdb/gfx906.kdb")).unwrap()
        };
        assert_ne!(object("-DY=1"), object("-DY=2"), "{behind_script}");
        assert_eq!(
            project.path().join("log").exists(),
            landlock_abi().is_none(),
            "{behind_script}"
        );
    }
}

/// Stand-ins that run the real hipcc: with nothing preloaded that could watch it; with a macro that
/// it does not tell of when it is asked what it would run; and not to be asked that.
const UNBOUND: [(&str, &str); 3] = [
    ("unset LD_PRELOAD", "the next build compiles them again"),
    ("case \" $* \" in *' -### '*) ;; *) set -- \"$@\" -DMORE ;; esac", "ran other commands"),
    ("case \" $* \" in *' -### '*gfxpack_slot*) exit 1 ;; esac", ""),
];

#[test]
fn objects_of_drivers_that_can_not_be_bound_are_for_one_build() {
    for (script, warning) in UNBOUND {
        let stand_in = format!("#!/bin/sh\n{script}\nexec hipcc \"$@\"\n");
        let project = Project::with_compiler(&stand_in, &["", ""]);
        let kdbs = [(), ()].map(|()| {
            let run = by_hipcc(&project, &["build", "--out", "o", "--via", "hipcc"]);
            assert_eq!(run.of_type("build-finished")[0]["compiled"], 2, "{script}");
            let text = |warning: &Value| warning["message"].as_str().unwrap().to_owned();
            let warnings: Vec<String> = run.of_type("warning").iter().map(text).collect();
            let told = warnings.iter().filter(|it| it.contains(warning)).count();
            assert!(told == 1 || warning.is_empty(), "{script}: {warnings:?}");
            project.tree("o/kdb")
        });
        assert!(kdbs[0] == kdbs[1] && kdbs[0].len() == 1);
    }
}

#[test]
fn no_kernel_reads_precompiled_headers() {
    let project = Project::new();
    project.write("k.cpp", "#include <hip/hip_runtime.h>\n__global__ void k(int *x) { *x = X; }\n");
    project.write_manifest("k.cpp", (0..4).map(|number| format!("-DX={number}")));
    let build = |code| {
        project.run(&[&["build", "--out", "o"], &INPUT[..]].concat()).expect_code(code).stderr
    };
    build(0);
    let headers = fs::read_dir(project.path().join("cache/v1/headers")).unwrap();
    let headers: Vec<_> = headers.map(|entry| entry.unwrap().path()).collect();
    let header = |extension: &str| {
        let mut found = headers.iter().filter(|path| path.extension().unwrap() == extension);
        found.next().unwrap_or_else(|| panic!("no .{extension} was made")).display()
    };
    for extension in ["json", "pch"] {
        let header = header(extension);
        let text = format!("__global__ void k() {{ asm(\".incbin \\\"{header}\\\"\"); }}\n");
        project.write("k.cpp", &text);
        let expected = format!("it reads `{header}`, which is not among the sources");
        let stderr = build(100);
        assert!(stderr.contains(&expected), "{stderr}");
    }
}

#[test]
fn the_scratch_directory_of_a_killed_builds_driver_is_removed() {
    let project = Project::small();
    let root = project.path().to_str().unwrap();
    let script = "#!/bin/sh\ncase \" $* \" in *' -### '*gfxpack_slot*)\n\
                  if [ -e ROOT/kill ]; then kill -KILL $PPID; sleep 100000; fi ;;\nesac\n\
                  exec hipcc \"$@\"\n";
    project.add_compiler(&script.replace("ROOT", root));
    let temporary = project.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let build = || {
        let more = ["--hipcc", "bin/hipcc"];
        let mut build = project.command(&[&["build", "--out", "o"], &INPUT[..], &more].concat());
        build.env("TMPDIR", &temporary);
        finish(build)
    };
    let kill = project.write("kill", "");
    assert_eq!(build().code, None);
    fs::remove_file(kill).unwrap();
    build().expect_code(0);
    let left = |dir: &Path| -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(left(&temporary), Vec::<String>::new());
    assert_eq!(left(&project.path().join("cache/work")), Vec::<String>::new());
}

#[test]
fn a_new_header_that_hides_a_used_one_is_noticed() {
    let project = Project::new();
    let root = project.path().display().to_string();
    let first_and_second = format!("-isystem '{root}/first' -isystem '{root}/second'");
    project.add_compiler(&format!("#!/bin/sh\nexec hipcc {first_and_second} \"$@\"\n"));
    project
        .write("k.cpp", "#include <zqv.h>\nextern \"C\" __global__ void k(int* x) { *x = ZQV; }\n");
    project.write_manifest("k.cpp", std::iter::empty());
    project.write("first/other.h", "");
    project.write("second/zqv.h", "#define ZQV 3\n");
    let compiled = || (compiled_by_hipcc(&project, &[]), project.tree("o/kdb"));
    let (count, before) = compiled();
    assert_eq!((count, compiled().0), (1, 0));
    let header = project.write("first/zqv.h", "#define ZQV 4711\n");
    let run = by_hipcc(&project, &["plan", "--explain", "k.cpp"]);
    let change = &run.of_type("explained")[0]["changes"][0];
    assert_eq!(
        (&change["name"], &change["how"]),
        (&header.display().to_string().into(), &"added".into())
    );
    let (count, after) = compiled();
    assert_eq!((count, compiled().0), (1, 0));
    assert!(after != before);
    fs::remove_file(header).unwrap();
    assert_eq!(compiled(), (0, before), "it is kept");
}

#[test]
fn clangs_configuration_files_are_part_of_the_toolchain() {
    let project = Project::new();
    project.add_newer_clang();
    project.write(
        "k.cl",
        "#ifndef V\n#define V 1\n#endif\n__kernel void k(__global int* x) { *x = V; }\n",
    );
    project.write_manifest("k.cl", std::iter::empty());
    let libs = installed().device_libs;
    let tools = ["--clang", "newer/bin/clang", "--device-libs", libs.to_str().unwrap()];
    let run = |arguments: &[&str]| {
        let more = ["--json", "-"];
        project.run(&[arguments, &INPUT, &tools, &more].concat()).expect_code(0)
    };
    let compiled = || {
        let run = run(&["build", "--out", "o"]);
        (run.of_type("build-finished")[0]["compiled"].clone(), project.tree("o/kdb"))
    };
    let (count, plain) = compiled();
    assert_eq!((count, compiled().0), (1.into(), 0.into()));
    project.write("newer/bin/clang.cfg", "# what all jobs get\n-DV=2 @more.cfg\n");
    project.write("newer/bin/more.cfg", "-DX1\n");
    let (count, configured) = compiled();
    assert_eq!((count, compiled().0), (1.into(), 0.into()));
    assert!(configured != plain);
    project.write("newer/bin/more.cfg", "-UV -DV=3\n");
    let message = run(&["plan", "--explain", "k.cl"]).of_type("explained").remove(0);
    assert_eq!(message["changes"][0]["name"], "more.cfg", "{message}");
    let (count, nested) = compiled();
    assert_eq!(count, 1);
    assert!(nested != configured);
    fs::remove_file(project.path().join("newer/bin/clang.cfg")).unwrap();
    assert_eq!(compiled(), (0.into(), plain), "as it was at first");
}

#[test]
fn files_that_a_configuration_file_of_hipccs_clang_includes_are_part_of_the_toolchain() {
    let project = Project::new();
    project.add_newer_clang();
    symlink("clang", project.path().join("newer/bin/clang++")).unwrap();
    project.add_compiler(&format!(
        "#!/bin/sh\nexec {}/newer/bin/clang++ -x hip \"$@\"\n",
        project.path().display()
    ));
    let libs = installed().device_libs;
    let configure = |define: &str| {
        let dirs = format!("--rocm-path=/usr --hip-device-lib-path={}", libs.display());
        project.write("newer/bin/own.cfg", &format!("{dirs} --hip-version=5.2.0 {define}\n"));
    };
    project.write("newer/bin/clang++.cfg", "@own.cfg\n");
    configure("-DV=1");
    project.write("k.cpp", "extern \"C\" __global__ void k(int* x) { *x = V; }\n");
    project.write_manifest("k.cpp", std::iter::empty());
    compiled_by_hipcc(&project, &[]);
    configure("-DV=2");
    let run = by_hipcc(&project, &["plan", "--explain", "k.cpp"]);
    assert_eq!(run.of_type("explained")[0]["changes"][0]["name"], "own.cfg");
}

/// Waits at a pipe, if there is one, after the compiler has read all.
const WAITING_COMPILER: &str = r#"#!/bin/sh
hipcc "$@"
code=$?
case "$*" in
    *'###'* | *version*) ;;
    *) if [ -p PIPE ]; then read -r word < PIPE; fi ;;
esac
exit $code
"#;

#[test]
fn a_header_that_changes_while_it_is_read_is_read_again() {
    let project = Project::new();
    project.write("k.cpp", "");
    let (header, pipe) = (project.path().join("elsewhere/zqv.h"), project.path().join("pipe"));
    project.add_compiler(&WAITING_COMPILER.replace("PIPE", pipe.to_str().unwrap()));
    let source = format!(
        "#include \"{}\"\nextern \"C\" __global__ void k(int* x) {{ *x = ZQV; }}\n",
        header.display()
    );
    project.write("k.cpp", &source);
    project.write_manifest("k.cpp", std::iter::empty());
    project.write("elsewhere/zqv.h", "#define ZQV 3\n");
    let build = |out: &str| {
        let arguments = [
            "build",
            "--via",
            "hipcc",
            "--hipcc",
            "bin/hipcc",
            "--allow-read",
            "elsewhere",
            "--out",
            out,
        ];
        project.run(&[&arguments[..], &INPUT].concat()).expect_code(0);
        project.tree(&format!("{out}/kdb"))
    };
    let change = Gate::new(&pipe, move || fs::write(header, "#define ZQV 4\n").unwrap());
    build("o");
    change.wait_until_gone();
    let after = build("o");
    fs::rename(project.path().join("cache"), project.path().join("old")).unwrap();
    assert!(build("p") == after, "as from a new cache");
}

#[test]
fn a_toolchain_is_probed_again_when_its_answers_may_have_changed() {
    let project = Project::small();
    let log = project.path().join("log");
    let hipcc = project.path().join("rocm/bin/hipcc");
    let script = "#!/bin/sh\nexec hipcc \"$@\"\n";
    let install = |text: &str| {
        project.write("rocm/bin/hipcc.new", text);
        fs::set_permissions(hipcc.with_extension("new"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::rename(hipcc.with_extension("new"), &hipcc).unwrap();
    };
    install(script);
    // It can't tell by itself, since it may write nowhere.
    let run = |arguments: &[&str]| {
        let hipcc = hipcc.to_str().unwrap();
        let traced = project.command(&[arguments, &["--hipcc", hipcc]].concat());
        let run = finish(strace(&traced, "execve", &log)).expect_code(0);
        (run.stdout, fs::read_to_string(&log).unwrap().contains(&format!("execve(\"{hipcc}\"")))
    };
    // A plan asks such a wrapper about each kernel anyway.
    let probe = ["targets", "--toolchains"];
    let (first, asks) = run(&probe);
    assert!(asks);
    // What was changed a moment ago is asked about again.
    let keeps = |_: &u32| !run(&probe).1;
    assert!((0..300).any(|number| keeps(&number)), "it is asked every time");
    let cache = project.tree("cache");
    assert_eq!(run(&probe), (first.clone(), false));
    assert!(project.tree("cache") == cache, "looking changes nothing");
    install(&format!("{script}\n"));
    let (_, asks) = run(&probe);
    assert!(asks, "another hipcc");
}

/// The linker of a job, which waits at a pipe and then makes something else: that
/// is where the toolchain is changed under it. Trials of toolchains do not wait.
const WAITING_LINKER: &str = r#"#!/bin/sh
case "$*" in
    *trial.o*) ;;
    *) if [ -p 'ROOT/pipe' ]; then read -r word < 'ROOT/pipe'; waited=1; fi ;;
esac
"ROOT/llvm/real/${0##*/}" "$@" || exit
if [ "$waited" ]; then
    while [ "$1" != -o ]; do shift; done
    echo >> "$2"
fi
"#;

/// The library, with a toolchain that has this linker.
fn project_with_waiting_linker() -> Project {
    let project = project();
    project.write("kernels.toml", &Project::light().text("kernels.toml"));
    let at = |path: &str| project.path().join(path);
    fs::create_dir(at("llvm/real")).unwrap();
    for name in ["lld", "ld.lld"] {
        fs::rename(at("llvm/bin").join(name), at("llvm/real").join(name)).unwrap();
    }
    let root = project.path().to_str().unwrap();
    project.write("llvm/bin/lld", &WAITING_LINKER.replace("ROOT", root));
    fs::set_permissions(at("llvm/bin/lld"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("lld", at("llvm/bin/ld.lld")).unwrap();
    project
}

#[test]
fn objects_made_while_the_toolchain_changed_are_not_kept() {
    let project = project_with_waiting_linker();
    let at = |path: &str| project.path().join(path);
    // What is tried of a toolchain once, is tried here.
    let other = ["build", "--out", "p", "--manifest", "kernels.toml", "--target", "gfx900"];
    project.run(&[&other[..], &TOOLS].concat()).expect_code(0);
    let before = project.objects();
    // One after the other, so that nothing is made before the change.
    let arguments = [&["build", "--jobs", "1", "--out", "o"], &INPUT[..], &TOOLS].concat();

    let library = at("rocm/amdgcn/bitcode/oclc_isa_version_1036.bc");
    let pipe = at("pipe");
    let changing = || {
        let library = library.clone();
        Gate::new(&pipe, move || {
            fs::write(&library, [&fs::read(&library).unwrap()[..], b"x"].concat()).unwrap()
        })
    };

    let changed = changing();
    let run = project.run(&arguments).expect_code(1);
    changed.wait_until_gone();
    let error = &run.of_type("error")[0];
    assert_eq!(
        error["messages"][0],
        "failed to trust what was compiled: the toolchain's `bitcode/oclc_isa_version_1036.bc` changed meanwhile"
    );
    assert_eq!(project.objects(), before);
    assert_eq!(project.tree("o"), []);

    // To whoever reads it nothing else is said.
    let changed = changing();
    let args = ["build", "--jobs=1", "--out=w", "--manifest=kernels.toml", "--target=gfx908"];
    let stderr = project.run(&[&args[..], &TOOLS[..6]].concat()).expect_code(1).stderr;
    changed.wait_until_gone();
    assert!(stderr.contains("before the change is kept"), "{stderr}");
    assert_eq!(project.objects(), before);

    // With the toolchain as it is now, everything is made anew.
    let run = project.run(&arguments).expect_code(0);
    let finished = &run.of_type("build-finished")[0];
    assert_eq!((&finished["compiled"], &finished["cached"]), (&3.into(), &0.into()));
}
