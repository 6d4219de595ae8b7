//! The cache: its commands and limits, and that it never returns a wrong object, whatever happens
//! to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::support::project::{Project, Run, binary, command, finish, python_reads};
use serde_json::Value;

const GFX906: u32 = 0x2f;
const BUILD: [&str; 9] =
    ["build", "--manifest", "kernels.toml", "--target", "gfx906", "--json", "-", "--out", "o"];

fn build(project: &Project, more: &[&str]) -> Run {
    project.run(&[&BUILD, more].concat())
}

/// The last message of a type.
fn message(run: &Run, kind: &str) -> Value {
    run.of_type(kind).pop().unwrap_or_else(|| panic!("no {kind} in {}", run.stdout))
}

fn compiled(run: &Run) -> u64 {
    message(run, "build-finished")["compiled"].as_u64().unwrap()
}

/// The kdb of a build that nothing happened to.
fn undisturbed() -> &'static [(String, Vec<u8>)] {
    static KDB: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    KDB.get_or_init(|| {
        let project = Project::small();
        build(&project, &[]).expect_code(0);
        project.tree("o/kdb")
    })
}

fn cache(project: &Project, arguments: &[&str]) -> Run {
    project.run(&[&["cache", "--json", "-"], arguments].concat())
}

fn stats(project: &Project) -> Value {
    let mut stats = message(&cache(project, &["stats"]).expect_code(0), "cache-stats");
    // Two looks at the same cache may differ in that.
    assert!(stats["unused_seconds"].take().as_u64().is_none_or(|seconds| seconds < 24 * 3600));
    stats
}

#[test]
fn the_cache_is_counted_limited_and_checked() {
    let project = Project::small();
    cache(&project, &["gc", "--max-size", "0"]).expect_code(2);
    assert_eq!(stats(&project)["objects"], 0);
    build(&project, &[]).expect_code(0);
    let full = stats(&project);
    assert_eq!((&full["objects"], &full["limit"]), (&5.into(), &Value::Null));
    let kinds = ["objects", "history", "headers", "commands"].map(|kind| format!("v1/{kind}"));
    let bytes: u64 = kinds
        .into_iter()
        .chain(["answers".to_owned(), "outputs".to_owned()])
        .flat_map(|kind| project.tree(&format!("cache/{kind}")))
        .map(|(_, bytes)| bytes.len() as u64)
        .sum();
    assert_eq!(full["bytes"], bytes);
    let usage = cache(&project, &["gc"]).expect_code(2);
    assert!(usage.stdout.contains("--max-size"), "{}", usage.stdout);

    let dry = cache(&project, &["gc", "--max-size", "0", "--dry-run"]).expect_code(0);
    assert_eq!(message(&dry, "cache-gc")["files"], 0);
    assert_eq!(stats(&project), full);
    let kept = cache(&project, &["gc", "--max-size", "1TB", "--max-age", "30d"]).expect_code(0);
    assert_eq!(message(&kept, "cache-gc")["removed_files"], 0);
    assert_eq!(compiled(&build(&project, &[]).expect_code(0)), 0);

    let sound = cache(&project, &["verify"]).expect_code(0);
    assert_eq!(message(&sound, "cache-verified")["objects"], 5);
    let (name, mut object) = project.tree("cache/v1/objects").remove(2);
    let middle = object.len() / 2;
    object[middle] ^= 0x10;
    fs::write(project.path().join("cache/v1/objects").join(name), object).unwrap();
    let damaged = cache(&project, &["verify"]).expect_code(101);
    let named = message(&damaged, "damaged");
    assert!(named["key"]["kernel_name"].as_str().is_some_and(|name| name.ends_with(".o")));
    cache(&project, &["verify"]).expect_code(0);
    assert_eq!(compiled(&build(&project, &[]).expect_code(0)), 1);

    // The limit holds when the build is done, and harms no build.
    let mut none = project.command(&BUILD);
    none.env("GFXPACK_CACHE_SIZE", "0");
    finish(none).expect_code(0);
    assert_eq!(stats(&project)["bytes"], 0);
    let mut limited = project.command(&BUILD);
    limited.env("GFXPACK_CACHE_SIZE", "20kB");
    assert_eq!(compiled(&finish(limited).expect_code(0)), 5);
    assert!(stats(&project)["bytes"].as_u64().unwrap() <= 20_000);
    assert!(project.tree("o/kdb") == undisturbed());
    for size in ["much", "20"] {
        let mut wrong = project.command(&BUILD);
        wrong.env("GFXPACK_CACHE_SIZE", size);
        let wrong = finish(wrong).expect_code(2);
        assert!(wrong.stdout.contains("GFXPACK_CACHE_SIZE"), "{}", wrong.stdout);
    }
}

#[test]
fn concurrent_builds_share_a_store() {
    let project = Project::small();
    let expected = undisturbed();
    // The second round finds everything, and evicts it under the others.
    for size in ["1GB", "0"] {
        let start = |out: &str| {
            let mut command = project.command(&BUILD[..7]);
            command.args(["--out", out, "--jobs", "2"]).env("GFXPACK_CACHE_SIZE", size);
            std::thread::spawn(move || finish(command))
        };
        let builds: Vec<_> = ["a", "b", "c"].map(|out| (out, start(out))).into();
        for (out, build) in builds {
            build.join().unwrap().expect_code(0);
            assert!(project.tree(&format!("{out}/kdb")) == expected, "{out}");
        }
        cache(&project, &["verify"]).expect_code(0);
    }
    assert_eq!(stats(&project)["bytes"], 0, "whoever came last evicted");
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that was not run says so")]
fn a_read_only_store_is_read_and_none_is_needed() {
    let project = Project::small();
    build(&project, &[]).expect_code(0);
    let expected = project.tree("o/kdb");
    // One object less, so that there is something to compile.
    let (name, _) = project.tree("cache/v1/objects").remove(0);
    fs::remove_file(project.path().join("cache/v1/objects").join(name)).unwrap();
    let before = project.tree("cache/v1");
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"";
    // The whole, or what another user of a group made.
    let one = fs::read_dir(project.path().join("cache/v1/objects")).unwrap().next().unwrap();
    let cache = project.path().join("cache");
    let empty = project.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for (dir, cache, cached, what) in [
        (&cache, &cache, 4, "written"),
        (&one.unwrap().path(), &cache, 4, "written"),
        (&empty, &empty.join("cache"), 0, "created"),
    ] {
        let namespace = |script: &str| {
            let mut shell = command("unshare");
            shell.args(["--map-root-user", "--mount", "sh", "-c", script]);
            shell.arg(dir);
            shell
        };
        if finish(namespace(mount)).code != Some(0) {
            eprintln!("skipped: mounts are not permitted here, and root may write anywhere");
            return;
        }
        fs::remove_dir_all(project.path().join("o")).unwrap();
        let run = |arguments: &[&str]| {
            let mut shell = namespace(&format!("{mount} && exec \"$@\""));
            shell.arg(binary()).args(arguments).env("GFXPACK_CACHE_DIR", cache);
            shell.current_dir(project.path());
            finish(shell)
        };
        let built = run(&BUILD).expect_code(0);
        let staged = run(&[&["plan"], &BUILD[1..7], &["--stage", "staged"]].concat());
        assert!(
            staged.expect_code(2).stdout.contains("--cache-dir"),
            "what commands name must stay"
        );
        let warning = message(&built, "warning")["message"].as_str().unwrap().to_owned();
        assert!(warning.contains(&format!("can't be {what}")), "{warning}");
        let finished = message(&built, "build-finished");
        assert_eq!(finished["cached"], cached);
        assert_eq!(finished["compiled"], 5 - cached);
        assert!(project.tree("o/kdb") == expected);
        assert!(project.tree("cache/v1") == before);
    }
}

#[test]
fn a_flipped_bit_never_gets_into_a_kdb() {
    let project = Project::small();
    build(&project, &[]).expect_code(0);
    let expected = project.tree("o/kdb");
    let root = project.path().join("cache/v1");
    let flip = |path: &Path, part: usize| {
        let mut bytes = fs::read(path).unwrap();
        let at = (bytes.len() - 1) * part / 16;
        bytes[at] ^= 1 << (part % 8);
        fs::write(path, bytes).unwrap();
    };
    // In every file: objects, what they are for, what they were made from.
    for part in [0, 6, 11, 16] {
        for (name, bytes) in project.tree("cache/v1") {
            if !bytes.is_empty() {
                flip(&root.join(name), part);
            }
        }
        fs::remove_dir_all(project.path().join("o")).unwrap();
        build(&project, &[]).expect_code(0);
        assert!(project.tree("o/kdb") == expected, "flipped at {part} of 16");
    }
    let keys = python_reads(&project.path().join("o/kdb/gfx906.kdb"), GFX906);
    assert_eq!(keys.len(), 5);
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that was not run says so")]
fn objects_are_cached_with_a_file_size_limit_and_in_a_pid_namespace() {
    let short_files = "ulimit -f 10000; exec \"$@\"";
    let other_numbers = "exec unshare --map-root-user --pid --fork \"$@\"";
    for script in [short_files, other_numbers] {
        let project = Project::new();
        let run_under = |args: &[&str]| finish(project.script(script, args));
        if run_under(&["--version"]).code != Some(0) {
            eprintln!("skipped: `{script}` is not permitted here");
            continue;
        }
        project.write("k.cl", "__kernel void k(__global int *x) { *x = 1; }\n");
        project.write_manifest("k.cl", std::iter::empty());
        for compiled in [1, 0] {
            let run = run_under(&BUILD).expect_code(0);
            assert_eq!(run.of_type("build-finished")[0]["compiled"], compiled, "{script}");
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that was not run says so")]
fn a_digest_of_an_unreadable_file_is_not_reused_from_another_user() {
    let (project, outside) = (Project::new(), Project::new());
    let header = outside.write("x.h", "#define X 1\n");
    let include = format!("#include \"{}\"\n", header.display());
    project.write("k.cl", &(include + "__kernel void k(__global int *x) { *x = X; }\n"));
    project.write_manifest("k.cl", std::iter::empty());
    fs::set_permissions(&header, fs::Permissions::from_mode(0o0)).unwrap();
    if fs::read(&header).is_err() {
        eprintln!("skipped: this user may not read everything");
        return;
    }
    let build = |capabilities: &str| {
        let mut build = command("setpriv");
        build.args(["--bounding-set", capabilities]).arg(binary()).args(BUILD);
        build.args(["--cache-dir", "cache", "--allow-read"]).arg(outside.path());
        build.current_dir(project.path());
        finish(build)
    };
    let compiled = || build("+all").expect_code(0).of_type("build-finished")[0]["compiled"].clone();
    assert_eq!(compiled(), 1);
    assert_eq!(compiled(), 0);
    build("-dac_override,-dac_read_search").expect_code(100);
    assert_eq!(compiled(), 0);
}

#[test]
fn objects_of_a_driver_in_python_are_cached() {
    let project = Project::new();
    project.write("k.cpp", "extern \"C\" __attribute__((global)) void k(int *x) { *x = 1; }\n");
    project.write_manifest("k.cpp", std::iter::empty());
    project.write("bin/conf.py", "FLAGS = []\n");
    // It loads a module of its own, starts another Python, and looks at what it is given.
    let script = "#!/usr/bin/env python3\nimport os, subprocess, sys\n\
         import conf\nsubprocess.run([sys.executable, '-P', '-c', 'import json'], check=True)\n\
         os.execv('/usr/bin/hipcc', ['hipcc', *conf.FLAGS, *sys.argv[1:]])\n";
    project.add_compiler(script);
    let build = || project.run(&[&BUILD[..], &["--hipcc", "bin/hipcc"]].concat()).expect_code(0);
    let compiled = || build().of_type("build-finished")[0]["compiled"].clone();
    assert_eq!([compiled(), compiled()], [1, 0]);
    assert!(!project.path().join("bin/__pycache__").exists());
}

#[test]
fn objects_made_without_room_for_the_preloaded_heap_are_not_cached() {
    let project = Project::new();
    project.write("k.cl", "__kernel void k(__global int *x) { *x = 1; }\n");
    project.write_manifest("k.cl", std::iter::empty());
    // Of addresses, in KiB; the second time, there is a limit no longer.
    let build =
        |limit: &str| finish(project.script(&format!("ulimit -S -v {limit}; exec \"$@\""), &BUILD));
    for (limit, compiled) in [("30000000", 1), ("unlimited", 1), ("unlimited", 0)] {
        let run = build(limit).expect_code(0);
        assert_eq!(run.of_type("build-finished")[0]["compiled"], compiled, "{limit}");
        let warnings = run.of_type("warning");
        let warned =
            warnings.iter().any(|it| it["message"].as_str().unwrap().contains("`ulimit -v`"));
        assert_eq!(warned, limit != "unlimited", "{warnings:?}");
    }
    // What it reads counts all the same.
    project.write("k.cl", "#include \"/etc/hostname\"\n");
    assert_eq!(
        build("30000000").expect_code(100).of_type("job-failed")[0]["reason"],
        "reads-outside"
    );
}

/// HIP's alone: as many as have their headers precompiled. What ends in a backslash, as one does
/// before C++17, takes the next macro's line along.
const CLOCK_OPTIONS_OF_HIP: [&str; 4] = ["-DOWN=1", "-DOWN=2", "-DOWN=3", "-DOWN=??/ -std=c++14"];
/// Options that make no difference to what kernels are told of the time.
const CLOCK_OPTIONS: [&str; 3] = [
    "-w",
    "-Wdate-time -Wbuiltin-macro-redefined -Wmacro-redefined -Werror",
    "-D__DATE__=3 -U__TIME__ -D__TIMESTAMP__(x)=x",
];

#[test]
fn kernels_that_use_the_time_get_source_date_epoch() {
    let project = Project::new();
    let header = project.write("elsewhere/when.h", "#define WHEN __TIME__\n");
    let first = format!(
        "#pragma clang diagnostic error \"-Wdate-time\"\n#include \"{}\"\n\
         #define PASTE(a, b) a##b\n",
        header.display()
    );
    let timestamps = "const char said[] = PASTE(__DA, TE__) \", \" WHEN \", \" __TIMESTAMP__;";
    let hip = "extern \"C\" __global__ void k(char* x) { x[0] = said[x[1]]; }\n";
    let opencl = "__kernel void k(__global char* x) { x[0] = said[x[1]]; }\n";
    project.write(
        "k.cpp",
        &format!("#include <hip/hip_runtime.h>\n{first}__constant__ {timestamps}\n{hip}"),
    );
    project.write("k.cl", &format!("{first}constant {timestamps}\n{opencl}"));
    let variant = |options: &[&str]| format!("[[kernel.variant]]\noptions = {options:?}\n");
    let (all, hips) = (variant(&CLOCK_OPTIONS), variant(&CLOCK_OPTIONS_OF_HIP));
    project.write(
        "kernels.toml",
        &format!(
            "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
             [[kernel]]\nsource = \"k.cpp\"\n{all}{hips}[[kernel]]\nsource = \"k.cl\"\n{all}"
        ),
    );
    let build = |epoch: Option<&str>, cache: &str, via: &[&str]| {
        let mut command = project.command(&["build", "--json", "-", "--out", "o"]);
        command
            .args(["--manifest", "kernels.toml", "--target", "gfx906"])
            .args(["--blob", "raw", "--cache-dir", cache])
            .args(via);
        command.args(["--allow-read", "elsewhere"]);
        epoch.map(|epoch| command.env("SOURCE_DATE_EPOCH", epoch));
        let run = finish(command).expect_code(0);
        let compiled = run.of_type("build-finished")[0]["compiled"].as_u64().unwrap();
        (compiled, project.tree("o/kdb/").remove(0).1)
    };
    let count = 2 * CLOCK_OPTIONS.len() + CLOCK_OPTIONS_OF_HIP.len();
    let occurrences = |kdb: &[u8], text: &str| {
        let text = text.as_bytes();
        kdb.windows(text.len()).filter(|window| *window == text).count()
    };
    let (compiled, kdb) = build(None, "cache", &[]);
    assert_eq!(compiled, count as u64);
    assert_eq!(occurrences(&kdb, "Jan  1 2025, 00:00:00, Wed Jan  1 00:00:00 2025\0"), count);
    let headers = project.tree("cache/v1/headers");
    assert!(headers.iter().any(|(name, _)| name.ends_with(".pch")), "one was precompiled");
    assert!(build(None, "hipcc", &["--via", "hipcc"]).1 == kdb);
    let (compiled, other) = build(Some("1709210096"), "cache", &[]);
    assert_eq!(compiled, count as u64);
    assert_eq!(occurrences(&other, "Feb 29 2024, 12:34:56, Thu Feb 29 12:34:56 2024\0"), count);
    assert!(build(None, "cache", &[]) == (0, kdb));
}

#[test]
fn objects_of_sources_that_look_above_an_include_directory_are_cached() {
    let project = Project::new();
    project.write("x/a.h", "#if __has_include(\"../y.h\")\n#error y.h\n#endif\n");
    project.write("m/k.cl", "#include <a.h>\n__kernel void k(__global int *x) { *x = 1; }\n");
    project.write(
        "m/kernels.toml",
        "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
         include-dirs = [\"../x\"]\n[[kernel]]\nsource = \"k.cl\"\n",
    );
    let build = || {
        let build = ["build", "--manifest", "m/kernels.toml", "--target", "gfx906", "--out", "o"];
        project.run(&[&build[..], &["--json", "-"]].concat())
    };
    let compiled = || build().expect_code(0).of_type("build-finished")[0]["compiled"].clone();
    assert_eq!([compiled(), compiled()], [1, 0]);
    // What lies outside of the sources is not there.
    project.write("y.h", "");
    assert_eq!(compiled(), 0);
}
