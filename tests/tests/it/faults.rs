//! Faults while compiling, with a stand-in for hipcc that misbehaves on request and otherwise runs the
//! real one.

use std::fs;
use std::path::PathBuf;

use crate::support::gate::Gate;
use crate::support::project::{Project, Run, command, finish, started_by, tool};
use crate::support::terminal::on_a_terminal;

/// Faults are asked for by a define, so that they are part of the key.
const STAND_IN: &str = r#"#!/bin/sh
case " $* " in *" -DFAULT=wrong "*) ;; *" -### "*) exec hipcc "$@" ;; esac
for word in "$@"; do
    case $word in
        -DFAULT=hang) sleep 100000 ;;
        -DFAULT=silent) exit 0 ;;
        -DFAULT=empty) for last in "$@"; do :; done; : > "$last"; exit 0 ;;
        -DFAULT=text) for last in "$@"; do :; done; echo nonsense > "$last"; exit 0 ;;
        -DFAULT=crash) kill -SEGV $$ ;;
        -DFAULT=verbose) yes 'error: much to say' | head -c 20000000 >&2; exit 1 ;;
        -DFAULT=wrong)
            for one in "$@"; do
                shift
                set -- "$@" "$(printf %s "$one" | sed 's/gfx906/gfx908/g')"
            done ;;
        -DFAULT=wait)
            here=$(dirname "$0")
            if [ -p "$here/wait" ]; then read -r word < "$here/wait"; exit 1; fi ;;
    esac
done
exec hipcc "$@"
"#;

fn project(defines: &[&str]) -> Project {
    Project::with_compiler(STAND_IN, defines)
}

/// By the wrapper, which the stand-in takes the place of: its faults are what
/// is looked at here, whatever shortcuts there are for what works.
const DIST: &[&str] = &[
    "dist",
    "--via",
    "hipcc",
    "--manifest",
    "kernels.toml",
    "--hipcc",
    "bin/hipcc",
    "--target",
    "gfx906_60",
    "--out",
    "o",
];

fn dist(project: &Project, more: &[&str]) -> Run {
    let mut arguments = DIST.to_vec();
    arguments.extend(more);
    project.run(&arguments)
}

fn packages(project: &Project) -> usize {
    let is_package = |name: &str| [".deb", ".rpm", ".gz"].iter().any(|end| name.ends_with(end));
    project.tree("o").iter().filter(|(name, _)| is_package(name)).count()
}

#[test]
fn a_failing_kernel_is_reported_with_the_compilers_output_and_others_are_built() {
    let faults = [
        "",
        "-DBROKEN",
        "-DFAULT=silent",
        "-DFAULT=empty",
        "-DFAULT=text",
        "-DFAULT=crash",
        "-DFAULT=wrong",
        "-DFAULT=verbose",
        "",
    ];
    let project = project(&faults);
    let run = dist(&project, &["--jobs", "4"]).expect_code(100);
    let assert_reported = |define: &str, expected: &str| {
        let text = &run.stderr;
        let start = text
            .match_indices("failed to compile `k.cpp.o")
            .map(|(at, _)| &text[at..])
            .find(|rest| rest.lines().next().unwrap().contains(define))
            .unwrap_or_else(|| panic!("{define} is not named:\n{text:.5000}"));
        let block: String = start.lines().take(12).collect::<Vec<_>>().join("\n");
        assert!(block.contains(expected), "{define}: {block}");
    };
    assert_reported("-DBROKEN", "error: this kernel is broken");
    assert_reported("-DFAULT=silent", "reported success and wrote no object");
    assert_reported("-DFAULT=empty", "reported success and wrote no object");
    assert_reported("-DFAULT=text", "no code object");
    assert_reported("-DFAULT=crash", "crashed (signal 11)");
    assert_reported("-DFAULT=wrong", "is for gfx908, not for gfx906");
    assert_reported("-DFAULT=verbose", "error: much to say");
    assert!(run.stderr.len() < 20_000, "{} bytes", run.stderr.len());
    assert!(project.text("o/refused.log").contains("more output was dropped"));
    assert!(run.stderr.contains("error: failed to build 7 of 9 kernels"), "{:.3000}", run.stderr);
    assert!(run.stderr.contains("--allow-partial makes packages"), "{:.3000}", run.stderr);
    assert_eq!(packages(&project), 0, "no package without all kernels");
    let info = project.run(&["kdb", "info", "o/kdb/gfx906_60.kdb", "--json", "-"]);
    assert_eq!(info.expect_code(0).of_type("kdb-info")[0]["rows"], 2);
    let scratch = project.tree("cache/work");
    assert!(scratch.is_empty(), "nothing is left behind: {scratch:?}");
}

#[test]
fn a_compiler_that_hangs_is_stopped() {
    let project = project(&["-DFAULT=hang"]);
    // Nothing else is compiled, so a short limit hurts nobody.
    let run = dist(&project, &["--timeout", "2"]).expect_code(100);
    assert!(run.stderr.contains("stopped after 2 s"), "{}", run.stderr);
    assert!(run.stderr.contains("-DFAULT=hang"), "{}", run.stderr);
    // There is nothing to put in a package.
    assert!(!run.stderr.contains("--allow-partial"), "{}", run.stderr);
    assert_eq!(packages(&project), 0);
}

#[test]
fn a_partial_package_is_marked_as_partial() {
    let project = project(&["", "-DBROKEN"]);
    let run = dist(&project, &["--allow-partial", "--json", "-"]).expect_code(0);
    assert_eq!(run.of_type("job-failed")[0]["reason"], "refused");
    assert_eq!(packages(&project), 3);
    let manifest = fs::read_to_string(project.path().join("o/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["complete"], false);
    assert_eq!(manifest["targets"][0]["absent"], serde_json::json!({ "refused": 1 }));
    let deb = project.path().join("o/miopen-hip-gfx906-60kdb_1-1_all.deb");
    let control = command("dpkg-deb").arg("-f").arg(deb).output().unwrap();
    let control = String::from_utf8(control.stdout).unwrap().replace("\n ", " ");
    assert!(control.contains("Incomplete: 1 kernel could not be compiled"), "{control}");
}

#[test]
fn a_killed_build_resumes_when_run_again() {
    let defines: Vec<&str> = ["", "", "", "-DFAULT=wait", "", ""].into();
    let whole = project(&defines);
    dist(&whole, &[]).expect_code(0);
    let project = project(&defines);
    let (gate, key) = Gate::closed(&project.path().join("bin/wait"));
    let mut child = project.start(&[DIST, &["--jobs", "2"]].concat());
    // One worker waits for ever, the other compiles all the rest.
    while project.objects() < defines.len() - 1 || !gate.was_reached() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Its compiler lives on for a moment; let it go before the next build.
    drop(key);
    gate.wait_until_gone();
    assert!(!project.path().join("o/kdb/gfx906_60.kdb").exists());
    project.run(&["cache", "verify"]).expect_code(0);
    let run = dist(&project, &["--json", "-"]).expect_code(0);
    let finished = &run.of_type("build-finished")[0];
    assert_eq!((&finished["cached"], &finished["compiled"]), (&5.into(), &1.into()));
    assert!(project.tree("o") == whole.tree("o"), "the same bytes as without the kill");
    let left = project.tree("cache/work");
    assert!(left.is_empty(), "the next build sweeps: {left:?}");
}

#[test]
fn without_progress_bars_progress_is_printed_as_lines() {
    let project = project(&[""]);
    let mut dumb = on_a_terminal(&project.command(DIST), 80);
    dumb.env("TERM", "dumb");
    let dumb = finish(dumb).expect_code(0).stdout;
    assert!(dumb.contains("1 kernel to compile, 0 in the cache"), "{dumb}");
    assert!(dumb.contains("assembled gfx906_60.kdb: 1 kernel"), "{dumb}");
    let pipe = dist(&project, &[]).expect_code(0).stderr;
    assert!(pipe.contains("0 kernels to compile, 1 in the cache"), "{pipe}");
}

#[test]
fn an_interrupt_is_acknowledged_above_the_bars() {
    let project = project(&["-DFAULT=wait", ""]);
    let (_door, _key) = Gate::closed(&project.path().join("bin/wait"));
    let mut python = on_a_terminal(&project.command(&[DIST, &["--jobs", "2"]].concat()), 80);
    python.stdout(fs::File::create(project.path().join("shown")).unwrap());
    let mut python = python.spawn().expect("python3 starts");
    // A letter may not be written whole yet.
    let shown = || {
        let bytes = fs::read(project.path().join("shown")).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    while !shown().contains("0 cached, 1 of 2 compiled") {
        assert!(python.try_wait().unwrap().is_none(), "it ended before: {}", shown());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let children = format!("/proc/{0}/task/{0}/children", python.id());
    let gfxpack = fs::read_to_string(children).unwrap();
    tool("kill", &["-INT", gfxpack.trim()], project.path());
    assert_eq!(python.wait().unwrap().code(), Some(130));
    assert!(shown().contains("stopping; once more ends at once"), "{}", shown());
}

/// A directory on a file system of its own, so small that it fills up. Where
/// containers forbid mounts, a limit on the size of files fails the same
/// system calls.
fn on_a_small_disk(project: &Project, dir: &str, kibibytes: u32, arguments: &[&str]) -> Run {
    let mount_point: PathBuf = project.path().join(dir);
    fs::create_dir_all(&mount_point).unwrap();
    let mut mounts = command("unshare");
    mounts.args(["--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs"]).arg(&mount_point);
    let mut shell = if finish(mounts).code == Some(0) {
        // A mount namespace of its own: nothing has to be unmounted.
        let mut shell = command("unshare");
        shell.args(["--map-root-user", "--mount", "sh", "-c"]).arg(
            "mount -t tmpfs -o size=\"$1\"k tmpfs \"$0\" && shift && \"$@\"; code=$?; \
             find \"$0\" -type f >&2; exit $code",
        );
        shell
    } else {
        let mut shell = command("bash");
        shell.arg("-c").arg(
            "trap '' XFSZ; ulimit -f $(($1 / 8)); shift; \"$@\"; code=$?; \
             find \"$0\" -type f >&2; exit $code",
        );
        shell
    };
    shell.arg(&mount_point).arg(kibibytes.to_string());
    finish(started_by(shell, &project.command(arguments)))
}

#[test]
fn a_full_disk_is_one_clear_error_and_leaves_nothing_half_written() {
    let project = project(&["", "-DX"]);
    dist(&project, &["--dry-run"]).expect_code(0);
    let arguments = [&DIST[..DIST.len() - 1], &["small"]].concat();
    for kibibytes in [8, 20, 28] {
        let run = on_a_small_disk(&project, "small", kibibytes, &arguments).expect_code(1);
        assert!(run.stderr.contains("error: failed to write"), "{kibibytes}k: {}", run.stderr);
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        let left: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with('/')).collect();
        let whole =
            |name: &&&str| [".kdb", ".deb", ".rpm", ".gz"].iter().any(|end| name.ends_with(end));
        assert_eq!(left.iter().filter(whole).count(), left.len(), "{left:?}");
    }
    // The compiled objects were kept, so there is room for the rest elsewhere.
    let run = dist(&project, &["--json", "-"]).expect_code(0);
    assert_eq!(run.of_type("build-finished")[0]["compiled"], 0);
}

#[test]
fn a_full_cache_is_one_clear_error() {
    let project = project(&["", "-DX", "-DY"]);
    let run = on_a_small_disk(&project, "cache", 20, DIST);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("--cache-dir"), "the hint says where to go: {}", run.stderr);
    dist(&project, &[]).expect_code(0);
}

#[test]
fn a_disk_that_is_full_for_the_compiler_is_not_the_kernels_fault() {
    let project = project(&["", "-DX"]);
    let big = "__constant__ const int big[1 << 18] = {1, 2, 3};\n";
    project.write(
        "k.cpp",
        &project
            .text("k.cpp")
            .replace("extern", &format!("{big}extern"))
            .replace("*= N", "*= N + big[(int)*x]"),
    );
    let arguments = [DIST, &["--allow-partial"]].concat();
    let run = on_a_small_disk(&project, "cache", 600, &arguments);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("--cache-dir"), "the hint says where to go: {}", run.stderr);
    dist(&project, &[]).expect_code(0);
}
