//! `gfxpack run` with programs that write MIOpen's log, and others.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::kdb::{GFX906, code_object, write_kdb};
use crate::support::project::{Project, Run, finish, tool};

use gfxpack_model::KernelKey;
use serde_json::Value;

const FOUND: &str = " -DN=1 -mcpu=gfx906";
const MISSED: &str = " -DN=2 -mcpu=gfx906";

/// Writes the lines of MIOpen 3.3 about two kernels, of which it finds one and
/// compiles the other, and lines of its own. MIOpen writes that much at level 6
/// only.
const PROGRAM: &str = r#"
echo result
echo "level $MIOPEN_LOG_LEVEL, first $1" >&2
if [ "$MIOPEN_LOG_LEVEL" -ge 6 ]; then
    printf 'MIOpen(HIP): Info2 [SQLiteBase] Initializing system database file "%s"\n' "$PWD/db/gfx906_60.kdb" >&2
    printf '\r 10%%|' >&2
    echo 'MIOpen(HIP): Info2 [LoadBinary] Loading binary for: "conv.cl.o"; args:  -DN=1 -mcpu=gfx906' >&2
    echo 'MIOpen(HIP): Info2 [LoadBinary] Successfully loaded binary for: "conv.cl.o"; args:  -DN=1 -mcpu=gfx906' >&2
    echo 'MIOpen(HIP): Info [FindSolutionImpl] Starting search: ConvAsm1x1U, enforce: SEARCH(3)' >&2
    echo 'MIOpen(HIP): Info2 [LoadBinary] Loading binary for: "conv.cl.o"; args:  -DN=2 -mcpu=gfx906' >&2
    echo 'MIOpen(HIP): Info2 [LoadBinary] Unable to load binary for: "conv.cl.o"; args:  -DN=2 -mcpu=gfx906' >&2
    sleep 0.3
    echo 'MIOpen(HIP): Info2 [SaveBinary] Saving binary for: "conv.cl.o"; args:  -DN=2 -mcpu=gfx906' >&2
    sleep 0.2
    echo 'MIOpen(HIP): Warning [GenericSearch] Done: 9/0/9, best #3 0.1 1,2,3' >&2
fi
echo 'MIOpen(HIP): Warning [Check] a warning' >&2
printf 'no end' >&2
"#;

/// A machine with a kdb for gfx906@60 that has the first kernel.
fn machine() -> Project {
    let project = Project::new();
    project.write("app", PROGRAM);
    fs::create_dir(project.path().join("home")).unwrap();
    let key = KernelKey { kernel_name: "conv.cl.o".to_owned(), kernel_args: FOUND.to_owned() };
    write_kdb(&project.path().join("db/gfx906_60.kdb"), vec![key], &code_object(GFX906, 1));
    project
}

fn run_with(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = project.command(&["run"]);
    command.args(arguments).env("HOME", project.path().join("home"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MIOPEN_") {
            command.env_remove(name);
        }
    }
    command.envs(variables.iter().copied());
    finish(command)
}

fn run(project: &Project, arguments: &[&str]) -> Run {
    run_with(project, arguments, &[])
}

#[test]
fn kernels_are_reported_and_the_log_is_hidden() {
    let project = machine();
    let arguments = ["--json", "messages", "--", "sh", "app", "-x"];
    let run = run(&project, &arguments).expect_code(0);
    assert_eq!(run.stdout, "result\n", "the program's own, and nothing else");
    for expected in [
        "level 6, first -x\n",
        "MIOpen(HIP): Warning [GenericSearch] Done",
        "MIOpen(HIP): Warning [Check] a warning\nno end",
        "\r 10%|",
        "MIOpen wanted 2 kernels: found 1 (1 in ",
        "db/gfx906_60.kdb), compiled 1 in 0 s\n",
        "  gfxpack build --keys missed.jsonl --source-dir kernels --target gfx906@60 --out new",
    ] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("Info"), "{}", run.stderr);

    let messages = fs::read_to_string(project.path().join("messages")).unwrap();
    let messages: Vec<Value> =
        messages.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let message = messages.iter().find(|message| message["type"] == "run").unwrap();
    let counts = ["kernels", "found", "compiled", "exit_code"];
    assert_eq!(counts.map(|name| message[name].as_u64()), [Some(2), Some(1), Some(1), Some(0)]);
    assert_eq!((&message["searches"], &message["target"]), (&1.into(), &"gfx906@60".into()));
    assert_eq!(message["files"][0]["kernels"], 1);
    let of = |name: &str| message[name].as_u64().unwrap();
    assert!((300..600_000).contains(&of("compile_milliseconds")), "{message}");
    assert!((500..600_000).contains(&of("search_milliseconds")), "{message}");

    let keys = fs::read_to_string(project.path().join("missed.jsonl")).unwrap();
    let key: Value = serde_json::from_str(keys.trim_end()).unwrap();
    assert_eq!(key["kernel_args"], MISSED);
}

#[test]
fn a_kernel_that_miopen_does_not_store_is_not_called_compiled() {
    let project = machine();
    // Compiling it fails.
    project.write("app", &PROGRAM.replace("SaveBinary", "Elsewhere"));
    let run = run(&project, &["--json", "messages", "--", "sh", "app"]).expect_code(0);
    assert!(run.stderr.contains("compiled 0 in 0 s\n"), "{}", run.stderr);
    assert!(run.stderr.contains("1 kernel not found and not stored either"), "{}", run.stderr);
    let message: Value = serde_json::from_str(project.text("messages").trim_end()).unwrap();
    let counts = ["found", "compiled", "not_stored", "compile_milliseconds"];
    assert_eq!(counts.map(|name| message[name].as_u64()), [Some(1), Some(0), Some(1), Some(0)]);
    assert!(project.text("missed.jsonl").contains(MISSED));
}

#[test]
fn the_suggested_commands_work() {
    let project = machine();
    project.write("kernels/conv.cl", "kernel void conv(global float* x) { *x = N; }\n");
    let run = run(&project, &["-o", "wanted.jsonl", "--", "sh", "app"]).expect_code(0);
    let suggested = run.stderr.lines().filter_map(|line| line.strip_prefix("  gfxpack "));
    let suggested: Vec<&str> = suggested.collect();
    assert_eq!(suggested.len(), 4, "{suggested:?}");
    assert_eq!(suggested[0], "miopen --sources kernels");
    // The sources are there already; this machine has no libMIOpen to take them from.
    for line in &suggested[1..3] {
        let args: Vec<&str> = line.split(' ').collect();
        project.run(&args).expect_code(0);
    }
    // MIOpen opens one installed kdb: what it has must stay.
    let listed = project.run(&["kdb", "list", "--keys", "new/gfx906_60.kdb"]).expect_code(0);
    assert!(listed.stdout.contains(MISSED) && listed.stdout.contains(FOUND), "{}", listed.stdout);
    assert!(suggested[3].starts_with("package new/gfx906_60.kdb --license MIT"), "{suggested:?}");
}

/// A program whose log has these lines.
fn verdict(lines: &[&str], variables: &[(&str, &str)]) -> (String, Vec<String>) {
    let project = machine();
    project.write("log", &lines.join("\n"));
    let arguments = ["--json", "messages", "--", "sh", "-c", "cat log >&2"];
    let ran = run_with(&project, &arguments, variables).expect_code(0);
    let message: Value = serde_json::from_str(project.text("messages").trim_end()).unwrap();
    let causes = message["causes"].as_array().unwrap();
    (ran.stderr, causes.iter().map(|one| one["cause"].as_str().unwrap().to_owned()).collect())
}

const SDK: &str = "/v/lib/python3.12/site-packages/_rocm_sdk_libraries_gfx1151";

#[test]
fn there_is_a_verdict_on_why_a_program_is_slow() {
    let unreadable = format!(
        "MIOpen(HIP): Warning [ParseAndLoadDb] File is unreadable: \"{SDK}/share/miopen/db/gfx1151_20.HIP.fdb.txt\""
    );
    let no_ck = "MIOpen(HIP): Warning [OpenRuntimeLibraryForDevice] CK grouped conv library not found for device gfx1151: libMIOpenCKGroupedConv_gfx1151.so: cannot open shared object file: No such file or directory";
    let (text, causes) = verdict(&[&unreadable, no_ck], &[]);
    assert_eq!(causes, ["ck-library"]);
    let expected = "verdict: `libMIOpenCKGroupedConv_gfx1151.so` is missing";
    assert!(text.contains(expected) && text.contains(&format!("{SDK}/lib")), "{text}");
    assert!(!text.contains("looked no kernel up"), "{text}");

    let conv = |size: usize| {
        format!(
            "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1 -c 8 -H {size} -W 9 -k 8 -y 3 -x 3 -F 1"
        )
    };
    let log: Vec<String> = (0..20).map(conv).collect();
    let (text, causes) = verdict(&log.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    assert_eq!(causes, ["changing-shapes"]);
    assert!(text.contains("20 of them for one layer") && text.contains("no kdb helps"), "{text}");
    assert!(!text.contains("MIOpenDriver"), "nobody asked for commands: {text}");

    let (text, causes) = verdict(&["x"], &[("MIOPEN_DISABLE_CACHE", "1")]);
    assert_eq!(causes, ["cache-disabled"]);
    assert!(text.contains("verdict: MIOPEN_DISABLE_CACHE is set"), "{text}");

    // PyTorch's own MIOpen reads no package of the system.
    let kernels = ["Loading", "Unable to load", "Saving"].map(|verb| {
        let function = if verb == "Saving" { "SaveBinary" } else { "LoadBinary" };
        format!("MIOpen(HIP): Info2 [{function}] {verb} binary for: \"a.cpp.o\"; args:  -DN=1 -mcpu=gfx1151")
    });
    let log: Vec<&str> =
        [unreadable.as_str()].into_iter().chain(kernels.iter().map(String::as_str)).collect();
    let (text, causes) = verdict(&log, &[]);
    assert_eq!(causes, ["not-installed"]);
    for expected in [
        "verdict: PyTorch's own MIOpen, which reads no package of the system, compiled 1 kernel in 0 s",
        &format!("  gfxpack miopen --miopen {SDK} --sources kernels\n"),
        "--license MIT --format wheel --out dist\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let elsewhere = unreadable.replace(SDK, "/srv/rocm");
    let log: Vec<&str> = [elsewhere.as_str()].into_iter().chain(log.into_iter().skip(1)).collect();
    let (text, _) = verdict(&log, &[]);
    assert!(text.contains("--layout /srv/rocm --out dist"), "{text}");
}

#[test]
fn the_log_is_shown_on_request() {
    let project = machine();
    let run = run_with(&project, &["--", "sh", "app"], &[("MIOPEN_LOG_LEVEL", "7")]).expect_code(0);
    assert!(run.stderr.contains("level 7"), "{}", run.stderr);
    assert!(run.stderr.contains("Info2 [LoadBinary] Unable to load"), "{}", run.stderr);
    let run = run_with(&project, &["--", "sh", "app"], &[("MIOPEN_LOG_LEVEL", "3")]).expect_code(0);
    assert!(run.stderr.contains("level 6") && !run.stderr.contains("a warning"), "{}", run.stderr);
}

#[test]
fn only_messages_are_on_standard_output() {
    let project = machine();
    let run = run(&project, &["--json", "-", "--", "sh", "app"]).expect_code(0);
    assert_eq!(run.of_type("run")[0]["found"], 1);
    assert!(run.stderr.contains("result\n"), "{}", run.stderr);
}

#[test]
fn the_programs_exit_code_is_passed_on() {
    let project = machine();
    run(&project, &["--", "sh", "-c", "exit 7"]).expect_code(7);
    run(&project, &["--", "sh", "-c", "kill -SEGV $$"]).expect_code(139);
    let ended = run(&project, &["--", "no-such-program"]).expect_code(2);
    assert!(
        ended.stderr.contains("failed to start the program `no-such-program`")
            && ended.stderr.contains("hint: "),
        "{}",
        ended.stderr
    );
    run(&project, &["--"]).expect_code(2);
}

#[test]
fn a_program_without_miopen_leaves_no_list_of_keys() {
    let project = machine();
    let run = run(&project, &["true"]).expect_code(0);
    assert!(run.stderr.contains("MIOpen wrote no log"), "{}", run.stderr);
    assert!(!project.path().join("missed.jsonl").exists());
    project.write("missed.jsonl", "of an earlier run\n");
    self::run(&project, &["true"]).expect_code(0);
    assert_eq!(project.text("missed.jsonl"), "");
}

#[test]
fn processes_that_a_program_leaves_running_are_not_waited_for() {
    let project = machine();
    let begun = Instant::now();
    // It has the program's stderr.
    run(&project, &["sh", "-c", "sleep 600 > log & echo $! > pid"]).expect_code(0);
    assert!(begun.elapsed() < Duration::from_secs(300));
    tool("kill", &[project.text("pid").trim()], project.path());
}

#[test]
fn signals_reach_the_program_and_the_summary_is_printed() {
    let project = machine();
    let script = "trap 'echo got it >&2; exit 5' TERM; . ./app; echo ready >&2; \
                  while :; do sleep 0.1; done";
    let mut command = project.command(&["run"]);
    command.args(["--", "sh", "-c", script]).env("HOME", project.path().join("home"));
    let errors = project.path().join("errors");
    command.stdout(Stdio::null()).stderr(fs::File::create(&errors).unwrap());
    let mut child = command.spawn().unwrap();
    let printed = || fs::read_to_string(&errors).unwrap();
    let begun = Instant::now();
    while !printed().contains("ready") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", printed());
        std::thread::sleep(Duration::from_millis(50));
    }
    tool("kill", &["-TERM", &child.id().to_string()], project.path());
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(5), None), "{}", printed());
    assert!(
        printed().contains("got it\n") && printed().contains("compiled 1 in 0 s"),
        "{}",
        printed()
    );
}

/// Writes logs as rocFFT 1.0.32 does, if it is asked for them.
const FFT_PROGRAM: &str = r#"
[ "$ROCFFT_LAYER" = 33 ] || exit 7
echo 'rocfft_plan_create,plan,0x5,placement,inplace,transform_type,complex_forward,precision,single,dimensions,1,lengths,[64],number_of_transforms,1,description,0' > "$ROCFFT_LOG_TRACE_PATH"
echo 'rocfft_plan_description_set_scale_factor,description,0x7,scale,0.5' >> "$ROCFFT_LOG_TRACE_PATH"
echo 'rocfft_plan_create,plan,0x5,placement,inplace,transform_type,complex_forward,precision,single,dimensions,1,lengths,[8],number_of_transforms,1,description,0x7' >> "$ROCFFT_LOG_TRACE_PATH"
echo '// ROCFFT_RTC_BEGIN fft_a' > "$ROCFFT_LOG_RTC_PATH"
echo '// cache hit for fft_b' >> "$ROCFFT_LOG_RTC_PATH"
echo '// cache hit for fft_c' >> "$ROCFFT_LOG_RTC_PATH"
"#;

#[test]
fn plans_of_rocfft_are_reported_and_written_to_a_list() {
    let project = machine();
    project.write("fft", FFT_PROGRAM);
    let arguments = ["--json", "messages", "--plans", "plans.txt", "--", "sh", "fft"];
    let ran = run(&project, &arguments).expect_code(0);
    for expected in [
        "rocFFT created 1 plan: found 2 kernels in its caches, compiled 1; the plans are in plans.txt\n",
        "  gfxpack dist --plans plans.txt --target TARGET --out dist\n",
        "1 plan left out: with a scale factor",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("MIOpen"), "{}", ran.stderr);
    assert_eq!(project.text("plans.txt"), "c2c sp ip 64 fwd\n");
    let message: Value = project
        .text("messages")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|message: &Value| message["type"] == "run")
        .unwrap();
    let counts = ["plans", "found", "compiled", "unsupported", "damaged"];
    assert_eq!(counts.map(|name| message["rocfft"][name].as_u64()), [1, 2, 1, 1, 0].map(Some));

    // Nobody asked, so rocFFT is not told to log; and a program without it is told from others.
    run(&project, &["--", "sh", "fft"]).expect_code(7);
    let ran = run(&project, &["--plans", "none.txt", "--", "true"]).expect_code(0);
    assert!(ran.stderr.contains("rocFFT wrote no log of a plan"), "{}", ran.stderr);
    assert!(!project.path().join("none.txt").exists());
}

#[test]
fn plans_are_gathered_from_logs() {
    let project = machine();
    let line = "rocfft_plan_create,plan,0x5,placement,notinplace,transform_type,real_inverse,\
                precision,double,dimensions,2,lengths,[48,64],number_of_transforms,2,description,0\n";
    project.write("one.log", line);
    project.write("two.log", &format!("{line}{}", line.replace("[48,64]", "[48,32]")));
    let harvest = ["harvest", "plans", "one.log", "two.log"];
    let ran = project.run(&harvest).expect_code(0);
    assert_eq!(ran.stdout, "c2r dp op 64x48 batch 2\nc2r dp op 32x48 batch 2\n");
    project.run(&[&harvest[..], &["-o", "plans.txt"]].concat()).expect_code(0);
    assert_eq!(project.text("plans.txt"), ran.stdout);
    project.write("empty.log", "rocfft_setup,1.0.32\n");
    let ran = project.run(&["harvest", "plans", "empty.log"]).expect_code(2);
    assert!(ran.stderr.contains("ROCFFT_LOG_TRACE_PATH"), "{}", ran.stderr);
    project.write("cut.log", &line[..60]);
    let ran = project.run(&["harvest", "plans", "cut.log"]).expect_code(2);
    assert_eq!(ran.stderr.matches("it is cut short").count(), 1, "{}", ran.stderr);
    project.run(&["harvest", "plans", "missing.log"]).expect_code(2);
}
