//! Refused kernels are reported again without starting a compiler, as long as a cached object of
//! theirs would be valid.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::project::{Project, Run, tool};
use serde_json::Value;

const HIP: &str = "#if defined(BROKEN) && BROKEN == 1\n#error this kernel is broken\n#endif\n\
    extern \"C\" __global__ void k(float* x) {\n\
    #if defined(BROKEN) && BROKEN == 2\n    asm volatile(\"v_no_such_instruction v0\");\n#endif\n\
        *x *= N; }\n";
const OPENCL: &str = "kernel void k(global float* x) {\n\
    #ifdef BROKEN\n    local char much[BROKEN];\n    ((local volatile char*)much)[1] = undeclared;\n\
    #endif\n    x[get_global_id(0)] *= N; }\n";
const ASSEMBLY: &str = ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n s_endpgm\n\
    .ifdef BROKEN\n.error \"this one is broken too\"\n.endif\n\
    .rodata\n.p2align 6\n.amdhsa_kernel k\n .amdhsa_next_free_vgpr N\n\
    .amdhsa_next_free_sgpr 8\n.end_amdhsa_kernel\n";

/// Every language, with kernels that are right and others that are not.
fn project() -> Project {
    let project = Project::new();
    project.write("h.cpp", HIP);
    project.write("o.cl", OPENCL);
    project.write("a.s", ASSEMBLY);
    project.write(
        "kernels.toml",
        "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
         [[kernel]]\nsource = \"h.cpp\"\n[[kernel.variant]]\n\
         options = [\"-DN=1\", \"-DN=1 -DBROKEN=1\", \"-DN=1 -DBROKEN=2\"]\n\
         [[kernel]]\nsource = \"o.cl\"\n[[kernel.variant]]\n\
         options = [\"-DN=1\", \"-DN=1 -DBROKEN=100000\"]\n\
         [[kernel]]\nsource = \"a.s\"\n[[kernel.variant]]\n\
         options = [\"-Wa,-defsym,N=4\", \"-Wa,-defsym,N=4 -Wa,-defsym,BROKEN=1\"]\n",
    );
    project
}

const REFUSED: usize = 4;

const BUILD: &[&str] = &["build", "--manifest", "kernels.toml", "--target", "gfx906_60"];

fn build(project: &Project, more: &[&str]) -> Run {
    project.run(&[BUILD, &["--json", "-"], more].concat())
}

/// What is said of each kernel that failed: its arguments, the reason, the
/// compiler's output; and whether an earlier run saw it.
fn failures(run: &Run) -> Vec<([String; 3], bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Vec<_> = run
        .of_type("job-failed")
        .iter()
        .map(|failed| {
            let texts = ["kernel_args", "reason", "output"].map(|field| text(&failed[field]));
            (texts, failed["before"].as_bool().unwrap())
        })
        .collect();
    found.sort();
    found
}

/// How many compilers were started.
fn started(run: &Run) -> usize {
    run.of_type("job-started").len()
}

fn sums(run: &Run) -> [u64; 5] {
    let finished = &run.of_type("build-finished")[0];
    ["jobs", "cached", "compiled", "failed", "refused_before"]
        .map(|field| finished[field].as_u64().unwrap())
}

#[test]
fn a_second_run_reports_refusals_again_without_starting_a_compiler() {
    for via in ["auto", "hipcc"] {
        let project = project();
        let via = ["--via", via];
        let first = build(&project, &[&via[..], &["--out", "a"]].concat()).expect_code(100);
        assert_eq!(sums(&first), [7, 0, 3, 4, 0]);
        let failed = failures(&first);
        assert!(failed.len() == REFUSED && failed.iter().all(|(_, before)| !before), "{failed:?}");
        // Nobody is there: a shared cache is not asked for what was refused.
        let more = ["--out", "b", "--cache-remote", "webdav://127.0.0.1:1/"];
        let second = build(&project, &[&via[..], &more].concat()).expect_code(100);
        assert_eq!(second.of_type("warning"), Vec::<Value>::new());
        assert_eq!(started(&second), 0);
        assert_eq!(sums(&second), [7, 3, 0, 4, 4]);
        assert_eq!(second.of_type("build-started")[0]["refused"], REFUSED);
        let again = failures(&second);
        assert!(again.iter().all(|(_, before)| *before), "{again:?}");
        let texts = |failures: &[([String; 3], bool)]| -> Vec<[String; 3]> {
            failures.iter().map(|(texts, _)| texts.clone()).collect()
        };
        assert_eq!(texts(&again), texts(&failed));
        assert!(project.tree("a/kdb") == project.tree("b/kdb"));
        let report = &second.of_type("report")[0];
        assert_eq!((&report["failed"], &report["refused_before"]), (&4.into(), &4.into()));
        assert_eq!(report["failures"].as_array().unwrap().len(), REFUSED);
    }
}

#[test]
fn refusals_are_printed_the_same_and_retried_if_there_is_a_reason() {
    let project = project();
    let run = |more: &[&str]| project.run(&[BUILD, &["--out", "o"], more].concat());
    let report_lines = |run: &Run| -> Vec<String> {
        let mut lines: Vec<String> = run
            .stderr
            .lines()
            .filter(|line| {
                line.contains("failed to compile")
                    || line.contains("failed to build")
                    || line.starts_with("hint:")
            })
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    let first = run(&[]).expect_code(100);
    assert!(report_lines(&first).len() == REFUSED + 2, "{}", first.stderr);
    let second = run(&[]).expect_code(100);
    assert_eq!(report_lines(&second), report_lines(&first));
    let assert_reported =
        |run: &Run, expected: &str| assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert_reported(&second, "0 kernels to compile, 3 in the cache, 4 refused before");
    assert_reported(&second, "error: this kernel is broken");
    assert_reported(&second, "use of undeclared identifier 'undeclared'");

    let plan = ["plan", "--manifest", "kernels.toml", "--target", "gfx906_60"];
    let planned = project.run(&plan).expect_code(0);
    assert!(
        planned.stdout.contains("7 compile jobs: 3 in the cache, 4 refused before, 0 to run"),
        "{}",
        planned.stdout
    );
    let why = project.run(&[&plan[..], &["--explain", "BROKEN=100000"]].concat()).expect_code(0);
    assert!(why.stdout.contains("refused by an earlier run"), "{}", why.stdout);
    let stats = project.run(&["cache", "stats", "--json", "-"]).expect_code(0);
    assert_eq!(stats.of_type("cache-stats")[0]["refused"], REFUSED);
    project.run(&["cache", "verify"]).expect_code(0);

    let again = build(&project, &["--out", "o", "--retry-refused"]).expect_code(100);
    assert_eq!((started(&again), sums(&again)), (REFUSED, [7, 3, 0, 4, 0]));
    let partial = build(&project, &["--out", "o", "--allow-partial"]).expect_code(0);
    assert_eq!(started(&partial), 0);

    let store = fs::read_dir(project.path().join("cache")).unwrap().flatten();
    let store = store.map(|entry| entry.path()).find(|path| path.join("refusals").is_dir());
    let dir = store.expect("the store").join("refusals");
    let name = dir.strip_prefix(project.path()).unwrap().display().to_string();
    let kept = project.tree(&name);
    assert_eq!(kept.len(), REFUSED);
    for (file, bytes) in &kept {
        fs::write(dir.join(file), &bytes[..bytes.len() / 2]).unwrap();
    }
    let damaged = build(&project, &["--out", "o"]).expect_code(100);
    assert_eq!((started(&damaged), sums(&damaged)), (REFUSED, [7, 3, 0, 4, 0]));
    assert_eq!(project.tree(&name).len(), REFUSED);
    let damaged = dir.join(&kept[0].0);
    fs::write(&damaged, "nonsense").unwrap();
    project.run(&["cache", "verify"]).expect_code(101);
    assert!(!damaged.exists());
    // What goes with age or size goes here too.
    project.run(&["cache", "gc", "--max-size", "0B"]).expect_code(0);
    assert_eq!(started(&build(&project, &["--out", "o"]).expect_code(100)), 7);

    project.write("a.s", &ASSEMBLY.replace(".error", ".print"));
    let corrected = build(&project, &["--out", "o"]).expect_code(100);
    assert_eq!((started(&corrected), sums(&corrected)), (2, [7, 2, 2, 3, 3]));
}

/// A kernel that reads a header outside of its sources, which is admitted.
fn with_header(project: &Project, text: Option<&str>) {
    let header = project.path().join("outside/own.h");
    fs::create_dir_all(header.parent().unwrap()).unwrap();
    match text {
        // Written again, it would have just changed.
        Some(text) if fs::read_to_string(&header).is_ok_and(|has| has == text) => {}
        Some(text) => drop(project.write("outside/own.h", text)),
        None => drop(fs::remove_file(&header)),
    }
    let header = header.display();
    project.write("k/k.cl", &format!("#define HEADER \"{header}\"\n#include HEADER\n{OPENCL}"));
    project.write(
        "k/kernels.toml",
        "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
         [[kernel]]\nsource = \"k.cl\"\noptions = \"-DN=OWN\"\n",
    );
}

const ADMISSION: [&str; 2] = ["--allow-read", "outside"];

#[test]
fn a_refusal_is_out_of_date_when_a_header_that_it_depends_on_is() {
    let project = Project::new();
    let arguments = "build --manifest k/kernels.toml --target gfx906 --out o --allow-read outside \
                     --json -";
    let arguments: Vec<&str> = arguments.split_ascii_whitespace().collect();
    let run = |text: Option<&str>| {
        with_header(&project, text);
        project.run(&arguments)
    };
    let broken = Some("#error not yet\n");
    assert_eq!(started(&run(broken).expect_code(100)), 1);
    // As long as the header has only just changed, nothing is kept.
    let is_kept = || started(&run(broken).expect_code(100)) == 0;
    assert!((0..100).any(|_| is_kept()), "it is kept in the end");
    with_header(&project, Some("#define OWN 2\n"));
    let explain = "plan --manifest k/kernels.toml --target gfx906 --explain OWN --json -";
    let explain: Vec<&str> = explain.split_ascii_whitespace().collect();
    let explained = |more: &[&str]| {
        let run = project.run(&[&explain[..], more].concat()).expect_code(0);
        let message = run.of_type("explained").remove(0);
        (message["state"].clone(), message["changes"].clone())
    };
    // Nothing was ever built with this key.
    assert_eq!(explained(&ADMISSION).0, "new");
    assert_eq!(started(&run(Some("#define OWN 2\n")).expect_code(0)), 1);
    assert_eq!(started(&run(Some("#define OWN 2\n")).expect_code(0)), 0);
    // Both are known by now, each with its header.
    let again = run(broken).expect_code(100);
    assert_eq!((started(&again), failures(&again).len()), (0, 1));
    assert_eq!(started(&run(Some("#error another\n")).expect_code(100)), 1);
    // A file that is not found may be the machine's fault.
    for _ in 0..2 {
        assert_eq!(started(&run(None).expect_code(100)), 1);
    }
    assert_eq!(started(&run(Some("#define OWN 3\n")).expect_code(0)), 1);

    // The object is there, but nobody admits any more what it depends on.
    let without: Vec<&str> =
        arguments.iter().filter(|arg| !ADMISSION.contains(arg)).copied().collect();
    let is_cached = |arguments: &[&str]| {
        let run = project.run(&[arguments, &["--dry-run"]].concat()).expect_code(0);
        run.of_type("plan")[0]["cached"][0] == true
    };
    assert!(is_cached(&arguments) && !is_cached(&without));
    assert_eq!(explained(&ADMISSION).0, "stored");
    let (state, changes) = explained(&[]);
    let outside = fs::canonicalize(project.path().join("outside")).unwrap();
    let withdrawn = serde_json::json!([{
        "what": "allow-read", "name": outside, "how": "removed", "from": null, "to": null,
    }]);
    assert_eq!((state, changes), ("changed".into(), withdrawn));
    let refused = project.run(&without).expect_code(100);
    assert_eq!(refused.of_type("job-failed")[0]["reason"], "reads-outside");
    assert_eq!(started(&project.run(&arguments).expect_code(0)), 0);
}

#[test]
fn a_source_of_a_stored_plan_that_equals_a_file_elsewhere_is_refused() {
    let project = Project::new();
    let header = project.write("outside/a.h", "#pragma once\n#define A 1\n");
    let include = format!("#include \"a.h\"\n#include \"{}\"\n", header.display());
    project.write("k/k.cl", &(include + "__kernel void k(__global int *x) { *x = A; }\n"));
    project.write(
        "k/kernels.toml",
        "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
         [[kernel]]\nsource = \"k.cl\"\n",
    );
    let run = |line: &str| project.run(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let common = "--out o --allow-read outside --json -";
    let direct = format!("build --manifest k/kernels.toml --target gfx906 {common}");
    // A copy is another file.
    project.write("k/a.h", "#pragma once\n#define A 1\n");
    assert_eq!([started(&run(&direct)), started(&run(&direct))], [1, 0]);
    fs::remove_file(project.path().join("k/a.h")).unwrap();
    symlink("../outside/a.h", project.path().join("k/a.h")).unwrap();
    run("plan --manifest k/kernels.toml --target gfx906 --out plan").expect_code(0);
    let stored = format!("build --plan plan {common}");
    for line in [&direct, &stored] {
        let refused = run(line).expect_code(100);
        let failed = &refused.of_type("job-failed")[0];
        assert_eq!(failed["reason"], "reads-outside");
        let message = failed["message"].as_str().unwrap();
        assert!(message.contains("outside/a.h`, which is also its source `a.h`"), "{message}");
    }
}

#[test]
fn an_include_directory_that_the_compiler_searches_by_default_is_refused_by_name() {
    let project = Project::new();
    let manifest = "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
                    include-dirs = [\"/usr/include\"]\n[[kernel]]\nsource = \"k.cl\"\n";
    project.write("kernels.toml", manifest);
    project.write("k.cl", "__kernel void k(__global int *x) { *x = 1; }\n");
    let build = ["build", "--manifest", "kernels.toml", "--target", "gfx906", "--out", "o"];
    let run = project.run(&[&build[..], &["--json", "-"]].concat()).expect_code(100);
    assert_eq!(run.of_type("job-failed")[0]["reason"], "include-dir-of-compiler");
}

#[test]
fn devices_and_named_pipes_are_not_read() {
    let project = Project::new();
    tool("mkfifo", &["pipe.h"], project.path());
    let endless = ["/dev/zero", "/dev/urandom", "pipe.h"];
    let include = |(number, file)| format!("#if FILE == {number}\n#include \"{file}\"\n#endif\n");
    let includes: String = endless.iter().enumerate().map(include).collect();
    project.write("k.cl", &format!("{includes}kernel void k(global int *x) {{ *x = 1; }}\n"));
    project.write_manifest("k.cl", (0..endless.len()).map(|number| format!("-DFILE={number}")));
    let run = build(&project, &["--out", "o", "--allow-read", "/dev"]).expect_code(100);
    assert_eq!(failures(&run).len(), endless.len(), "{}", run.stderr);
}

#[test]
fn a_driver_that_writes_elsewhere_before_it_starts_a_compiler_is_refused_by_the_path() {
    let project = project();
    let outside = project.path().join("elsewhere");
    let driver = format!(
        "#!/bin/sh\ncase \" $* \" in\n*' -DBROKEN=1 '*) mkdir {outside:?} || exit 13 ;;\nesac\n\
         exec hipcc \"$@\"\n"
    );
    project.add_compiler(&driver);
    let more = ["--out", "o", "--via", "hipcc", "--hipcc", "bin/hipcc"];
    let run = build(&project, &more).expect_code(100);
    let failed = run.of_type("job-failed");
    let writes = failed.iter().find(|failed| failed["reason"] == "writes-outside");
    let message = writes.expect("its reason")["message"].as_str().unwrap();
    assert!(message.contains(&format!("tried to write `{}`", outside.display())), "{message}");
    assert!(!outside.exists());
}

/// Does with each kernel what a define asks for.
const STAND_IN: &str = r#"#!/bin/sh
asked=
case " $* " in *" -### "*) asked=1 ;; esac
located='k.cpp:1:1: error: no'
for word in "$@"; do
    case $asked$word in
        -DFAULT=crash) kill -SEGV $$ ;;
        -DFAULT=killed) kill -KILL $$ ;;
        -DFAULT=hang) sleep 100000 ;;
        -DFAULT=silent) exit 0 ;;
        -DFAULT=crash-behind) echo "$located" >&2
            echo 'clang: error: unable to execute command: Segmentation fault' >&2; exit 1 ;;
        -DFAULT=memory) echo "$located" >&2; echo 'LLVM ERROR: out of memory' >&2; exit 1 ;;
        -DFAULT=disk) echo 'k.cpp:1:1: fatal error: error reading x: Input/output error' >&2; exit 1 ;;
        -DFAULT=driver) echo 'clang: error: no such file or directory: x' >&2; exit 1 ;;
        -DFAULT=unlisted) echo "$located" >&2; exit 1 ;;
        -DFAULT=other | *-DFAULT=wrong)
            for word in "$@"; do
                shift
                set -- "$@" "$(echo "$word" | sed 's/gfx906/gfx908/g')"
            done ;;
    esac
done
exec hipcc "$@"
"#;

/// How often a kernel with each fault is compiled in two runs.
#[track_caller]
fn check_calls(faults: &[&str], more: &[&str], expected: usize) {
    let defines: Vec<String> = faults.iter().map(|fault| format!("-DFAULT={fault}")).collect();
    let defines: Vec<&str> = defines.iter().map(String::as_str).collect();
    let project = Project::with_compiler(STAND_IN, &defines);
    let arguments = ["--via", "hipcc", "--hipcc", "bin/hipcc", "--out", "o"];
    let run = |_| build(&project, &[&arguments[..], more].concat()).expect_code(100);
    let started: Vec<Value> = (0..2).map(run).flat_map(|run| run.of_type("job-started")).collect();
    for define in defines {
        let is_of =
            |job: &&Value| job["kernel_args"].as_str().unwrap().contains(&format!(" {define} "));
        assert_eq!(started.iter().filter(is_of).count(), expected, "{define}");
    }
}

#[test]
fn failures_caused_by_the_machine_are_retried_every_time() {
    let faults =
        ["crash", "killed", "silent", "crash-behind", "memory", "disk", "driver", "unlisted"];
    check_calls(&faults, &[], 2);
    // Nothing else is compiled, so a short limit hurts nobody.
    check_calls(&["hang"], &["--timeout", "2"], 2);
    // An object for other devices is what the compiler makes of the kernel, if it says so.
    check_calls(&["wrong"], &[], 1);
    check_calls(&["other"], &[], 2);
}

#[test]
fn shards_pass_refusals_on_and_retry_when_a_header_changed() {
    let project = Project::new();
    with_header(&project, Some("#error not yet\n"));
    let run = |line: &str| project.run(&line.split(' ').collect::<Vec<_>>());
    run("plan --manifest k/kernels.toml --target gfx906 --out plan").expect_code(0);
    // With an empty cache each, so that only the shard's own directory knows.
    let shard = |cache: &str, more: &str| {
        run(&format!(
            "build --plan plan --shard 1/1 --out s --allow-read outside --json - \
             --cache-dir {cache}{more}"
        ))
    };
    assert_eq!(started(&shard("c1", "").expect_code(42)), 1);
    // As long as the header has only just changed, nothing is kept.
    let is_kept = || started(&shard("c1", "").expect_code(42)) == 0;
    assert!((0..100).any(|_| is_kept()), "it is kept in the end");
    assert_eq!(started(&shard("c2", "").expect_code(42)), 0);
    assert_eq!(started(&shard("c3", " --retry-refused").expect_code(42)), 1);
    project.write("outside/own.h", "#define OWN 2\n");
    assert_eq!(started(&shard("c4", "").expect_code(0)), 1);
    project.write("outside/own.h", "#error not yet\n");
    // What the first cache knows goes into another shard's directory as well.
    let other = "build --plan plan --shard 1/1 --out t --allow-read outside \
                 --json - --cache-dir c1";
    let handed = run(other).expect_code(42);
    assert_eq!((started(&handed), failures(&handed).len()), (0, 1));
    let merged = run("merge --plan plan --out m --allow-partial t").expect_code(0);
    assert!(merged.stderr.contains("1 without an object"), "{}", merged.stderr);
}

#[test]
fn a_reviewed_list_of_refused_kernels_makes_packages_complete() {
    let project = project();
    let build = |more: &[&str]| {
        let dist = ["dist", "--manifest=kernels.toml", "--target=gfx906_60", "--out=o"];
        project.run(&[&dist[..], &["--format=deb", "--json=-"], more].concat())
    };
    build(&[]).expect_code(100);
    let ledger = project.text("o/kernels.jsonl");
    let lines: Vec<Value> =
        ledger.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (refused, built): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.get("absent").is_some());
    assert_eq!((refused.len(), built.len()), (REFUSED, 3));
    for line in refused {
        assert_eq!((&line["target"], &line["absent"]), (&"gfx906@60".into(), &"refused".into()));
        assert!(line["kernel_args"].as_str().unwrap().contains("BROKEN"), "{line}");
        assert!(line["why"].as_str().unwrap().contains("error: "), "{line}");
    }
    // What is told again is listed again.
    build(&[]).expect_code(100);
    assert_eq!(project.text("o/kernels.jsonl"), ledger);

    project.write("reviewed.jsonl", &format!("# reviewed by me\n\n{ledger}"));
    let run = build(&["--skip-refused=reviewed.jsonl"]).expect_code(0);
    assert_eq!(sums(&run)[0], 3);
    assert_eq!(run.of_type("skipped-refused")[0]["kernels"], REFUSED);
    let manifest: Value = serde_json::from_str(&project.text("o/manifest.json")).unwrap();
    assert_eq!(manifest["complete"], true);
    assert_eq!(manifest["targets"][0]["absent"], serde_json::json!({ "skipped": REFUSED }));
    let deb = manifest["targets"][0]["packages"][0]["file"].as_str().unwrap();
    let control = tool("dpkg-deb", &["--field", &format!("o/{deb}")], project.path());
    assert!(control.contains("4 kernels"), "{control}");
    assert!(!control.contains("Incomplete"), "{control}");

    // What was skipped stays so; one that is not on the list fails as before.
    let skipped = project.text("o/kernels.jsonl");
    let first = skipped.lines().position(|line| line.contains("skipped")).unwrap();
    let others = skipped.lines().enumerate().filter(|(number, _)| *number != first);
    let others: String = others.map(|(_, line)| format!("{line}\n")).collect();
    project.write("reviewed.jsonl", &others);
    let run = build(&["--skip-refused=reviewed.jsonl"]).expect_code(100);
    assert_eq!(failures(&run).len(), 1);
}

#[test]
fn a_broken_compiler_makes_no_ledger() {
    let project = project();
    let broken = "#!/bin/sh\ncase \" $* \" in\n*-print-*|*' --version '*|*' -### '*) exec clang \"$@\" ;;\n\
                  esac\necho 'k.cl:1:1: error: broken' >&2\nexit 1\n";
    let clang = project.write("broken-clang", broken);
    fs::set_permissions(&clang, Permissions::from_mode(0o755)).unwrap();
    let clang = format!("--clang={}", clang.display());
    let run = build(&project, &["--out=o", &clang]).expect_code(1);
    assert!(run.stdout.contains("failed to probe"), "{}", run.stdout);
    assert!(!project.path().join("o/kernels.jsonl").exists());
    project.write("refused.jsonl", "{\"target\": \"gfx906_60\"}\n");
    let run = project.run(&[BUILD, &["--out=o", "--skip-refused=refused.jsonl"]].concat());
    let run = run.expect_code(2);
    assert!(run.stderr.contains("refused.jsonl:1: "), "{}", run.stderr);
    assert!(run.stderr.contains("hint: "), "{}", run.stderr);
}
