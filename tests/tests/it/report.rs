//! A build's reports: messages, the facts of the report, grouped failures; and the costs that it
//! records for the next build.

use std::fs;
use std::process::Stdio;

use crate::support::gate::Gate;
use crate::support::project::{Project, Run, finish, tool};
use serde_json::Value;

fn dist(project: &Project, more: &[&str]) -> Run {
    let arguments = ["build", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out", "o"];
    project.run(&[&arguments, more].concat())
}

fn sum(messages: &[Value], field: &str) -> u64 {
    messages.iter().map(|message| message[field].as_u64().unwrap()).sum()
}

#[test]
fn messages_and_report_agree_on_every_job() {
    let project = Project::small();
    let json = ["--jobs", "2", "--report", "pages/r.html", "--json", "-"];
    let cold = dist(&project, &json).expect_code(0);
    let (started, finished) = (cold.of_type("job-started"), cold.of_type("job-finished"));
    assert_eq!((started.len(), finished.len()), (5, 5));
    for job in &finished {
        assert!(job["worker"].as_u64() < Some(2), "{job}");
        assert!(job["size"].as_u64() > Some(500), "{job}");
        // Any compiler has more than that, and none of these needs a gigabyte.
        let memory = job["peak_memory"].as_u64().unwrap();
        assert!((10 << 20..1 << 30).contains(&memory), "{job}");
        assert!(
            job["milliseconds"].as_u64() > Some(0) && job["cpu_milliseconds"].is_u64(),
            "{job}"
        );
        let start = started.iter().find(|start| start["job"] == job["job"]).unwrap();
        assert_eq!(start["start_milliseconds"], job["start_milliseconds"]);
        assert_eq!(start["worker"], job["worker"]);
    }
    let queued = &cold.of_type("build-queued")[0];
    assert_eq!((&queued["workers"], &queued["jobs"]), (&2.into(), &5.into()));
    let report = &cold.of_type("report")[0];
    assert_eq!((&report["compiled"], &report["cached"]), (&5.into(), &0.into()));
    assert_eq!(report["error"], Value::Null);
    for (total, each) in [
        ("size", "size"),
        ("compile_milliseconds", "milliseconds"),
        ("cpu_milliseconds", "cpu_milliseconds"),
    ] {
        let (total, each) = (report[total].as_u64().unwrap(), sum(&finished, each));
        assert!(total >= each && total <= each + 5, "rounded each or as a whole: {total} {each}");
    }
    let groups = report["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3, "a language each: {groups:?}");
    assert_eq!(sum(groups, "compiled"), 5);

    let page = project.text("pages/r.html");
    assert_eq!(page.matches("<td>compiled</td>").count(), 1 + 5, "all, and each");

    let warm = dist(&project, &json).expect_code(0);
    assert_eq!(warm.of_type("job-started").len(), 0);
    let cached = warm.of_type("job-cached");
    assert_eq!((cached.len(), sum(&cached, "size")), (5, sum(&finished, "size")));
    assert_eq!(warm.of_type("report")[0]["cached"], 5);
    let page = project.text("pages/r.html");
    assert_eq!(page.matches("<td>from the cache</td>").count(), 1 + 5, "all, and each");
    let left: Vec<String> = project.tree("pages").into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["r.html"], "written whole, nothing beside it");
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let project = Project::small();
    fs::create_dir(project.path().join("dir")).unwrap();
    let run = dist(&project, &["--report", "dir"]).expect_code(2);
    assert!(run.stderr.contains("it is a directory"), "{}", run.stderr);
    let run = dist(&project, &["--report", "kernels.toml/r.html"]).expect_code(2);
    assert!(run.stderr.contains("failed to write `kernels.toml/r.html`"), "{}", run.stderr);
}

/// Kernels of which `broken` stumble over one line each, and one over another.
fn failing(broken: usize) -> Project {
    let project = Project::new();
    project.write(
        "k.s",
        ".if N == 1000\n.error \"a reason of its own\"\n.endif\n\
         .macro fail n\n.if \\n\n.error \"register v256 is out of range\"\n.endif\n.endm\n\
         .if N > 0\nfail N\n.endif\n.text\ns_endpgm\n",
    );
    let numbers = (0..=broken).chain([1000]);
    project.write_manifest("k.s", numbers.map(|number| format!("-Wa,-defsym,N={number}")));
    project
}

#[test]
fn kernels_that_read_different_files_are_reported_with_their_own() {
    let project = Project::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let paths = ["one", "other"].map(|name| elsewhere.path().join(name));
    paths.iter().for_each(|path| fs::write(path, "1234").unwrap());
    let [one, other] = paths.map(|path| path.display().to_string());
    project.write(
        "k.s",
        &format!(
            ".if N == 1\n.incbin \"{one}\"\n.else\n.incbin \"{other}\"\n.endif\n.text\ns_endpgm\n"
        ),
    );
    let numbers = (1..=2).map(|number| format!("-Wa,-defsym,N={number}"));
    project.write_manifest("k.s", numbers);
    let run = dist(&project, &["--report", "r.xml"]).expect_code(100);
    for text in [&run.stderr, &project.text("r.xml"), &project.text("o/refused.log")] {
        for path in [&one, &other] {
            assert!(text.contains(&format!("it reads `{path}`, which is not among")), "{text}");
        }
        for joined in ["as above", "for one reason", "the same of"] {
            assert!(!text.contains(joined), "{text}");
        }
    }
}

#[test]
fn kernels_that_fail_for_one_reason_are_reported_together() {
    let project = failing(20);
    let run = dist(&project, &["--jobs", "2"]).expect_code(100);
    let named = run.stderr.matches("failed to compile `k.s.o").count();
    assert!(named <= 7, "one in full, five by name, and the one of its own: {}", run.stderr);
    assert!(run.stderr.contains("(exit code 1), as above: <instantiation>"), "{}", run.stderr);
    let group = run.stderr.lines().find(|line| line.contains("kernels failed for one reason"));
    let group = group.unwrap_or_else(|| panic!("{}", run.stderr));
    // Each has a number of its own, which makes no other reason.
    assert!(
        group.starts_with("20 kernels failed for one reason (14 of them not named above)"),
        "{group}"
    );
    assert!(group.contains("register v256 is out of range"), "{group}");
    assert!(run.stderr.contains("error: a reason of its own"), "{}", run.stderr);
    assert!(run.stderr.contains("--report FILE.html and --json FILE name every one"));

    // A refusal that is known by then has no time and no worker.
    let run = dist(&project, &["--retry-refused", "--report", "r.html"]).expect_code(100);
    assert!(run.stderr.contains("every failed kernel is in r.html"), "{}", run.stderr);
    let page = project.text("r.html");
    assert!(page.contains("<summary>20 × ") && page.contains("<summary>1 × "), "{page}");
    assert_eq!(page.matches("failed: refused").count(), 21);
    let json = dist(&project, &["--retry-refused", "--json", "-"]).expect_code(100);
    assert_eq!(json.of_type("job-failed").len(), 21, "machines are told of each");
    assert_eq!(json.of_type("report")[0]["failed"], 21);
}

/// The kernels in the order in which their compilers were started.
fn order(run: &Run) -> Vec<String> {
    let name = |message: &Value| message["kernel_name"].as_str().unwrap().to_owned();
    run.of_type("job-started").iter().map(name).collect()
}

#[test]
fn jobs_that_took_longest_last_time_start_first() {
    let project = Project::light();
    let json = ["--jobs", "1", "--json", "-"];
    let first = dist(&project, &json).expect_code(0);
    assert_eq!(order(&first), ["scale.cl.o", "scale.cl.o", "fill.s.o"], "by language at first");
    let costs = project.path().join("cache/v1/costs.jsonl");
    let text = fs::read_to_string(&costs).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    // As if the assembly had taken an hour and OpenCL C no time.
    let changed: String = text
        .lines()
        .map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record[2] = if record[1] == "fill.s" { 3_600_000.into() } else { 1.into() };
            format!("{record}\n")
        })
        .collect();
    let again = |costs_file: &[u8]| {
        fs::remove_dir_all(project.path().join("cache/v1/objects")).unwrap();
        fs::write(&costs, costs_file).unwrap();
        dist(&project, &json).expect_code(0)
    };
    let second = again(changed.as_bytes());
    assert_eq!(order(&second)[0], "fill.s.o");
    let expected = second.of_type("build-queued")[0]["expected_milliseconds"].clone();
    assert!(expected.as_u64() > Some(3_600_000), "{expected}");
    // A changed source is another job, of about the same cost.
    project.write(
        "src/fill.s",
        &(fs::read_to_string(project.path().join("src/fill.s")).unwrap() + "\n.long 1\n"),
    );
    assert_eq!(order(&again(changed.as_bytes()))[0], "fill.s.o");
    // Damage is as if nothing was known.
    for damaged in [&b"\xff\0\xff\n{}\n[1,2]\n"[..], &changed.as_bytes()[..9], b""] {
        assert_eq!(order(&again(damaged)), order(&first));
    }
    assert_eq!(fs::read_to_string(&costs).unwrap().lines().count(), 3);
}

#[test]
fn the_default_number_of_jobs_is_the_number_of_usable_processors() {
    let project = Project::light();
    let workers = |more: &[&str]| {
        fs::remove_dir_all(project.path().join("cache")).ok();
        // Whichever processor this test itself may use.
        let pin = "exec taskset -c \"$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')\" \"$@\"";
        let build = ["build", "--manifest", "kernels.toml", "--target", "gfx906", "--out", "o"];
        let pinned = project.script(pin, &[&build[..], &["--json", "-"], more].concat());
        finish(pinned).expect_code(0).of_type("build-queued")[0]["workers"].clone()
    };
    assert_eq!(workers(&[]), 1);
    assert_eq!(workers(&["--jobs", "3"]), 3, "who asks for more gets more");
}

/// The real hipcc, but for a kernel that waits at a pipe.
const WAITING_COMPILER: &str = "#!/bin/sh\ncase \" $* \" in\n *' -### '*) ;;\n\
    *-DTYPE=double*) read -r word < \"$(dirname \"$0\")/wait\" ;;\nesac\nexec hipcc \"$@\"\n";

#[test]
fn an_interrupt_leaves_no_compiler_and_a_report() {
    let project = Project::small();
    project.add_compiler(WAITING_COMPILER);
    let interrupted = |script: &str| {
        let (gate, key) = Gate::closed(&project.path().join("bin/wait"));
        let build = "build --manifest kernels.toml --target gfx906 --out o --via hipcc \
                     --hipcc bin/hipcc --jobs 2 --report r.html";
        let build: Vec<&str> = build.split_ascii_whitespace().collect();
        let mut command = project.command(&build);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        while !gate.was_reached() {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
            std::thread::yield_now();
        }
        tool("sh", &["-c", script, &child.id().to_string()], project.path());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        // The kernel may take a moment to bury it.
        while gate.is_waited_at() {
            std::thread::yield_now();
        }
        drop(key);
        gate.wait_until_gone();
        stderr
    };
    // The second signal may come before or after the first has stopped it.
    interrupted("kill -TERM $0; kill -TERM $0; true");
    let stderr = interrupted("kill -TERM $0");
    assert!(stderr.contains("are compiled and kept"), "{stderr}");
    assert!(stderr.contains("hint: run the same command again"), "{stderr}");
    let page = project.text("r.html");
    assert!(page.contains("The build ended early: failed to finish: interrupted"), "{page}");
    assert_eq!(project.tree("cache/work"), []);
}
