//! A build's output on a terminal, and where it says that the rest is.

use std::fs;

use crate::support::project::{Project, Run, finish, tool, words};
use crate::support::terminal::on_a_terminal;
use serde_json::Value;

/// A compiler that refuses kernels at length, and is the real one otherwise.
const STAND_IN: &str = r#"#!/bin/sh
case " $* " in
    *" -### "*) ;;
    *" -DTALK=much "*)
        seq -f 'k.cpp:%.0f:1: warning: much to say' 3000 >&2
        echo "k.cpp:9:9: error: too much" >&2
        seq -f '  note %.0f' 3932 >&2
        exit 1 ;;
    *" -DTALK=little "*) echo 'k.cpp:1:1: error: too little' >&2; exit 1 ;;
esac
exec hipcc "$@"
"#;

const BUILD: &[&str] =
    &["build", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out", "o"];

fn project(defines: &[&str]) -> Project {
    Project::with_compiler(STAND_IN, defines)
}

fn build(project: &Project, more: &[&str]) -> Run {
    let compiler = ["--via", "hipcc", "--hipcc", "bin/hipcc"];
    project.run(&[BUILD, &compiler, more].concat())
}

#[test]
fn ten_lines_of_a_refusal_are_shown_and_a_log_has_the_rest() {
    let project = project(&["-DTALK=much", "-DTALK=much", "-DTALK=little"]);
    let run = build(&project, &["--jobs", "1"]).expect_code(100);
    assert!(run.stderr.lines().count() < 40, "{:.3000}", run.stderr);
    assert!(
        run.stderr.contains("\n    k.cpp:9:9: error: too much\n      note 1\n"),
        "{}",
        run.stderr
    );
    let rest = "\n      note 9\n    … 6,923 more lines in o/refused.log\n";
    assert!(run.stderr.contains(rest), "{}", run.stderr);

    let log = project.text("o/refused.log");
    assert!(log.contains("warning: much to say") && log.contains("note 3932\n"), "{log:.3000}");
    assert!(log.contains("## k.cpp.o ") && log.contains("target: gfx906"), "{log:.3000}");
    assert_eq!(log.matches("note 3932").count(), 1, "once for each reason");
    assert!(log.contains("error: too little"), "{log:.3000}");

    // Machines get everything, whether the compiler runs or not.
    let json = build(&project, &["--json", "-"]).expect_code(100);
    let outputs = json.of_type("job-failed");
    let whole = |output: &str| output.lines().count() == 6933;
    let whole = outputs.iter().filter(|job| whole(job["output"].as_str().unwrap()));
    assert_eq!(whole.count(), 2);

    // The page leaves out the end of so much.
    let run = build(&project, &["--report", "r.html"]).expect_code(100);
    assert!(run.stderr.contains("more lines in o/refused.log"), "{}", run.stderr);
    project.write_manifest("k.cpp", ["-DN=9".to_owned()].into_iter());
    build(&project, &[]).expect_code(0);
    assert!(!project.path().join("o/refused.log").exists(), "nothing failed");
    fs::write(project.path().join("o/refused.log"), "notes").unwrap();
    build(&project, &[]).expect_code(0);
    assert_eq!(project.text("o/refused.log"), "notes", "of somebody else");
}

/// Whether a line ends with a time.
fn ends_with_a_time(line: &str) -> bool {
    let Some((_, time)) = line.rsplit_once(" in ") else { return false };
    let words: Vec<&str> = time.split(' ').collect();
    matches!(words[..], [number, "s" | "min"] if number.parse::<u64>().is_ok())
}

#[test]
fn the_last_line_has_the_time_that_it_took() {
    let project = project(&["-DTALK=none"]);
    let last = |run: Run, begins: &str| {
        let run = run.expect_code(0);
        let line = run.stderr.lines().find(|line| line.contains(begins)).map(str::to_owned);
        assert!(line.as_deref().is_some_and(ends_with_a_time), "{begins}: {}", run.stderr);
    };
    last(build(&project, &[]), "1 compiled, 0 from the cache: o in ");
    let plan = ["plan", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out", "plan"];
    let compiler = ["--hipcc", "bin/hipcc"];
    project.run(&[&plan[..], &compiler].concat()).expect_code(0);
    let shard = ["build", "--plan", "plan", "--shard", "1/1", "--out", "s", "--via", "hipcc"];
    last(project.run(&[&shard[..], &compiler].concat()), "shard 1/1 is done: ");
    last(project.run(&["merge", "--plan", "plan", "--out", "m", "s"]), "1 job merged: m in ");
}

/// What a terminal shows of a text, line by line: without control sequences.
fn lines(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            letters.find(|end| end.is_ascii_alphabetic());
        } else {
            plain.push(letter);
        }
    }
    plain.split(['\r', '\n']).map(str::to_owned).collect()
}

#[test]
fn bars_fit_into_the_terminal() {
    for columns in [80, 60] {
        let project = project(&["-DTALK=none", "-DTALK=few"]);
        let compiler = ["--via", "hipcc", "--hipcc", "bin/hipcc", "--jobs", "1"];
        let run = finish(on_a_terminal(&project.command(&[BUILD, &compiler].concat()), columns));
        let shown = lines(&run.expect_code(0).stdout);
        for bar in ["all [", "gfx906@60 ["] {
            assert!(shown.iter().any(|line| line.contains(bar)), "{shown:?}");
        }
        for line in shown.iter().filter(|line| line.contains('[')) {
            // Bars follow each other without a line break, each as wide as the terminal.
            let letters: Vec<char> = line.chars().collect();
            for row in letters.chunks(columns) {
                let row: String = row.iter().collect();
                let is_whole = row.contains(" [") || row.contains("compiled, 0 from the cache");
                assert!(is_whole || row.trim().is_empty(), "wraps at {columns}: {row:?}");
            }
        }
    }
}

#[test]
fn colours_are_used_on_terminals_and_on_request() {
    let project = project(&["-DTALK=little"]);
    let colored = |color: &[&str], env: Option<&str>| {
        let compiler = ["--via", "hipcc", "--hipcc", "bin/hipcc"];
        let mut build = project.command(&[BUILD, &compiler, color].concat());
        build.env_remove("NO_COLOR");
        env.map(|name| build.env(name, "1"));
        let shown = finish(on_a_terminal(&build, 80)).expect_code(100).stdout;
        assert!(shown.contains("hint:"), "{shown}");
        shown.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m failed to build 1 of 1")
    };
    assert!(colored(&[], None));
    assert!(colored(&["--color=always"], Some("NO_COLOR")));
    assert!(!colored(&[], Some("NO_COLOR")) && !colored(&["--color", "never"], None));

    // What goes to stdout too, and diagnostics.
    for (more, is_colored) in [(&[][..], true), (&["--color=never"], false)] {
        let mut doctor = project.command(&[&["-vv", "doctor"], more].concat());
        doctor.env_remove("NO_COLOR");
        let shown = finish(on_a_terminal(&doctor, 80)).expect_code(101).stdout;
        assert_eq!(shown.contains("\u{1b}[1m\u{1b}[31mproblem \u{1b}[0m"), is_colored, "{shown}");
        assert_eq!(shown.contains('\u{1b}'), is_colored, "{shown}");
        assert!(!project.run(&["doctor"]).stdout.contains('\u{1b}'));
    }

    // Into a file, clap's messages too.
    for (more, is_colored) in [(&[][..], false), (&["--color", "always"], true)] {
        let run = build(&project, more).expect_code(100);
        assert_eq!(run.stderr.contains('\u{1b}'), is_colored, "{}", run.stderr);
        let run = project.run(&[&["build", "--no-such-option"], more].concat()).expect_code(2);
        assert_eq!(run.stderr.contains('\u{1b}'), is_colored, "{}", run.stderr);
    }
}

/// Messages without what differs from run to run.
fn comparable(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str::<Value>(line).expect("one object a line");
    let mut messages: Vec<Value> = text.lines().map(parse).collect();
    messages.iter_mut().for_each(drop_measurements);
    messages
}

fn drop_measurements(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_measured = |name: &str| name.contains("milliseconds") || name == "peak_memory";
            fields.retain(|name, _| !is_measured(name));
            fields.values_mut().for_each(drop_measurements);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_measurements),
        _ => {}
    }
}

#[test]
fn messages_go_to_a_file_while_text_is_printed() {
    let project = project(&["-DTALK=none", "-DTALK=little"]);
    build(&project, &[]).expect_code(100);
    let both = |arguments: &[&str], code: i32, expected: &str| {
        let text = project.run(&[arguments, &["--json", "m.jsonl"]].concat()).expect_code(code);
        assert!(text.stderr.contains(expected) || text.stdout.contains(expected), "{text:?}");
        assert!(!text.stdout.contains("{\"format\":1"), "{}", text.stdout);
        let json = [arguments, &["--json", "-"]].concat();
        let json = project.run(&json).expect_code(code).stdout;
        assert_eq!(comparable(&project.text("m.jsonl")), comparable(&json), "{arguments:?}");
    };
    let compiler = ["--via", "hipcc", "--hipcc", "bin/hipcc", "--jobs", "1"];
    both(&[BUILD, &compiler].concat(), 100, "error: failed to build 1 of 2 kernels");
    both(&[BUILD, &compiler, &["--dry-run"]].concat(), 0, "compile jobs: 1 in the cache");
    both(&["kdb", "info", "o/kdb/gfx906_60.kdb"], 0, "1 of 1 sources");
    both(&["kdb", "list", "o/kdb/gfx906_60.kdb"], 0, "k.cpp.o");
    both(&["targets"], 0, "PRODUCTS");
    both(&["build", "--out", "o", "--no-such-option"], 2, "error: unexpected argument");
    both(&["kdb", "info", "none.kdb"], 2, "error: ");

    let run = project.run(&["targets", "--json", "k.cpp/m"]).expect_code(2);
    assert!(run.stderr.contains("failed to write `k.cpp/m`"), "{}", run.stderr);
    let run = project.run(&["targets", "--json", "/dev/full"]).expect_code(1);
    assert!(run.stderr.contains("failed to write `/dev/full`"), "{}", run.stderr);
}

/// Prints a line for each test case, as another reader finds it.
const JUNIT_READER: &str = r#"
import sys, xml.etree.ElementTree as tree
for suite in tree.parse(sys.argv[1]).getroot().iter("testsuite"):
    print(*(suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")))
    for case in suite.iter("testcase"):
        time = "at once" if float(case.get("time")) == 0 else "took time"
        failure = case.find("failure")
        print(case.get("classname"), case.get("name"), time, "skipped" if case.find("skipped") is not None else "")
        if failure is not None:
            print(failure.get("type"), failure.get("message"), len(failure.text.splitlines()))
"#;

#[test]
fn test_results_have_every_kernel() {
    let project = project(&["-DTALK=none", "-DTALK=much", "-DTALK=<&>"]);
    let read = || tool("python3", &["-c", JUNIT_READER, "r/k.xml"], project.path());
    build(&project, &["--junit", "r/k.xml"]).expect_code(100);
    let cold = read();
    assert_eq!(cold.lines().next(), Some("gfx906@60 3 1 0 0"), "{cold}");
    assert_eq!(cold.matches("took time").count(), 3, "{cold}");
    assert!(cold.contains("gfx906@60 k.cpp.o -DN=2 -DTALK=<&> -mcpu=gfx906 "), "{cold}");
    // The message, ten lines, and how many there are more.
    assert!(cold.contains("\nrefused k.cpp:9:9: error: too much 12\n"), "{cold}");

    build(&project, &["--report", "r/k.xml"]).expect_code(100);
    let warm = read();
    assert_eq!(warm.matches("at once").count(), 2, "{warm}");
    assert!(warm.contains("\nrefused k.cpp:9:9: error: too much 12\n"), "{warm}");
    // A shard has kernels too, though no kdb.
    project
        .run(&words("plan --manifest kernels.toml --target gfx906_60 --out plan --hipcc bin/hipcc"))
        .expect_code(0);
    let shard = ["build", "--plan", "plan", "--shard", "1/1", "--out", "s", "--via", "hipcc"];
    let more = ["--hipcc", "bin/hipcc", "--report", "r/k.xml"];
    project.run(&[&shard[..], &more].concat()).expect_code(42);
    let shard = read();
    assert_eq!(shard.lines().next(), Some("gfx906 3 1 0 0"), "{shard}");
    assert!(shard.contains("\nrefused k.cpp:9:9: error: too much 12\n"), "{shard}");

    let run = build(&project, &["--report", "r"]).expect_code(2);
    assert!(run.stderr.contains("failed to write `r`: it is a directory"), "{}", run.stderr);
}

#[test]
fn github_gets_an_annotation_for_each_reason() {
    let project = project(&["-DTALK=much", "-DTALK=much", "-DTALK=little"]);
    let annotations = |service: &str, more: &[&str]| -> Vec<String> {
        let compiler = ["--via", "hipcc", "--hipcc", "bin/hipcc"];
        let mut build = project.command(&[BUILD, &compiler, more].concat());
        build.env("GITHUB_ACTIONS", service);
        let run = finish(build).expect_code(100);
        let lines = run.stderr.lines().filter(|line| line.starts_with("::"));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let [one, two] = &annotations("true", &[])[..] else { panic!("one for each reason") };
    let title = "::error title=1 kernel failed%3A the compiler refused it (exit code 1)::";
    assert!(one.starts_with(title), "{one}");
    assert!(one.ends_with("-mcpu=gfx906 for gfx906%0Ak.cpp:1:1: error: too little"), "{one}");
    assert!(two.starts_with("::error title=2 kernels failed%3A "), "{two}");
    assert!(two.ends_with("%0A  note 9%0A… 6,923 more lines"), "{two}");

    assert_eq!(annotations("true", &["--json", "-"]).len(), 2);
    assert_eq!(annotations("false", &[]), [""; 0]);
}
