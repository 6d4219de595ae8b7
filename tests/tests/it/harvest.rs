//! `gfxpack harvest` and `tune`: keys and commands from logs, from millions of lines to a package.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use crate::support::project::{Project, Run, command, finish, python_reads, workspace};
use gfxpack_kdb::{Blob, Row, WriteOptions};
use gfxpack_model::KernelKey;
use serde_json::{Value, json};

const GFX906: u32 = 0x2f;

fn key_of(line: &Value) -> KernelKey {
    let text = |name: &str| line[name].as_str().expect("a key").to_owned();
    KernelKey { kernel_name: text("kernel_name"), kernel_args: text("kernel_args") }
}

fn keys_in(project: &Project, path: &str) -> Vec<KernelKey> {
    let file = BufReader::new(fs::File::open(project.path().join(path)).unwrap());
    let line = |line: std::io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
    file.lines().map(line).map(|line: Value| key_of(&line)).collect()
}

/// What MIOpen writes about a kernel that it has to compile.
fn log_requests(out: &mut impl Write, key: &KernelKey) {
    let KernelKey { kernel_name, kernel_args } = key;
    for (function, verb) in [("Load", "Loading"), ("Load", "Unable to load"), ("Save", "Saving")] {
        writeln!(
            out,
            "MIOpen(HIP): Info2 [{function}Binary] {verb} binary for: \"{kernel_name}\"; \
             args: {kernel_args}"
        )
        .unwrap();
    }
}

const KEYS: u64 = 50_000;
const LINES: u64 = 800_000;
/// Lines that follow each kernel's three.
const BETWEEN: u64 = 13;
const MEMORY_KIB: u64 = 100 << 10;

/// Runs a program, its input being this one's, and says how much memory it
/// took.
const WATCH: &str = "\
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)";

/// A key of the length that MIOpen's have. All of them together take more than
/// a harvest keeps in memory.
fn long_key(number: u64) -> KernelKey {
    let options: String =
        (0..40).map(|n| format!(" -DMLO_OPTION_{n}={}", number % (n + 2))).collect();
    KernelKey {
        kernel_name: format!("kernel{}.cl.o", number % 50),
        kernel_args: format!("{options} -DN={number} -mcpu=gfx906"),
    }
}

/// MIOpen 3.5.1 and later write it by themselves when something fails.
#[test]
fn miopens_error_log_is_read() {
    let project = Project::new();
    let key = KernelKey::for_source("a.cpp", " -DN=1", "gfx1100");
    let mut log = Vec::new();
    log_requests(&mut log, &key);
    log.extend(b"MIOpen(HIP): Error [Compile] a.cpp: HIPRTC_ERROR_COMPILATION (6)\n\n");
    project.write("tmp/miopen_error_4242.log", &String::from_utf8(log).unwrap());
    for path in ["tmp", "tmp/miopen_error_4242.log"] {
        project.run(&["harvest", path, "--missed", "-o", "keys.jsonl"]).expect_code(0);
        assert_eq!(keys_in(&project, "keys.jsonl"), std::slice::from_ref(&key));
    }
    project.write("run.log", "Buffered 3 messages to file: host:/tmp/miopen_error_4242.log\n");
    let none = project.run(&["harvest", "run.log"]).expect_code(2);
    assert!(none.stderr.contains("miopen_error_PID.log"), "{}", none.stderr);
}

/// What terminals, containers, Windows and MPI make of a log.
#[test]
fn a_log_is_read_as_people_have_it() {
    let project = Project::new();
    let key = KernelKey::for_source("a.cpp", " -DN=1 -DX=\"b c\"", "gfx1100");
    let mut log = Vec::new();
    log_requests(&mut log, &key);
    let log = String::from_utf8(log).unwrap();
    let each = |line: &dyn Fn(&str) -> String| -> Vec<u8> {
        log.lines().map(line).collect::<String>().into_bytes()
    };
    let utf16 = format!("\u{feff}{}", log.replace('\n', "\r\n"));
    for (name, text) in [
        ("colours", each(&|line| format!("\u{1b}[33m{line}\u{1b}[0m\r\n"))),
        (
            "docker",
            each(&|line| json!({ "log": format!("{line}\n"), "time": "2026" }).to_string() + "\n"),
        ),
        ("journald", each(&|line| json!({ "MESSAGE": line.as_bytes() }).to_string() + "\n")),
        ("mpirun", each(&|line| format!("[1,0]<stderr>:{line}\n"))),
        ("windows", utf16.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("progress", each(&|line| format!(" 10%|\r 20%|{line}\r"))),
    ] {
        fs::write(project.path().join(name), text).unwrap();
        project.run(&["harvest", name, "--strict", "-o", "keys.jsonl"]).expect_code(0);
        assert_eq!(keys_in(&project, "keys.jsonl"), std::slice::from_ref(&key), "{name}");
    }
    // What can't be read is told; nothing at all has another hint than the log's level.
    let cut = log.replace("gfx1100", "gfx1100:sramecc");
    project.write("cut.log", &format!("{log}{cut}"));
    let run = project.run(&["harvest", "cut.log", "-o", "keys.jsonl"]).expect_code(0);
    assert!(run.stderr.contains("cut.log:4: ") && run.stderr.contains("(3 such lines): MIOpen("));
    project.run(&["harvest", "cut.log", "--strict", "-o", "keys.jsonl"]).expect_code(2);
    project.write("only-cut.log", &cut);
    project.write("empty.log", "");
    project.write("pointer.log", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    project.write("other.log", "epoch 1\n");
    for (name, hint) in [
        ("only-cut.log", "hint: see what cuts the log's lines"),
        ("empty.log", "hint: nothing is in there"),
        ("pointer.log", "git lfs pull"),
        ("other.log", "hint: no line is of MIOpen"),
    ] {
        let run = project.run(&["harvest", name]).expect_code(2);
        assert!(run.stderr.contains(hint), "{name}: {}", run.stderr);
    }
    // Keys that no present MIOpen asks for.
    project.write("old.log", &log.replace("gfx1100", "gfx90a:sramecc+:xnack-"));
    let run = project.run(&["harvest", "old.log", "-o", "keys.jsonl"]).expect_code(0);
    assert!(run.stderr.contains("1 of them are of MIOpen before 3.0"), "{}", run.stderr);
    // A list of keys with the marks of a conflict.
    let list = lines(std::slice::from_ref(&key));
    project.write("conflict.jsonl", &format!("<<<<<<< HEAD\n{list}=======\n"));
    project.write("src/a.cpp", "");
    let plan = ["plan", "--keys", "conflict.jsonl", "--source-dir", "src", "--target", "gfx1100"];
    let run = project.run(&plan).expect_code(0);
    assert!(run.stderr.contains("conflict.jsonl:1: failed to parse"), "{}", run.stderr);
    assert!(run.stderr.contains("(2 such lines)"), "{}", run.stderr);
    let run = project.run(&[&plan[..], &["--strict"]].concat()).expect_code(2);
    assert!(run.stderr.contains("hint: write one key a line"), "{}", run.stderr);
}

#[test]
fn millions_of_lines_are_harvested_as_a_stream() {
    let project = Project::new();
    let binary = crate::support::project::binary().to_str().unwrap();
    let mut watched = command("python3");
    watched.args(["-c", WATCH, binary, "harvest", "-", "--out", "log.jsonl"]);
    watched.current_dir(project.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = watched.stderr(Stdio::piped()).spawn().expect("python3 starts");
    let mut keys: Vec<KernelKey> = (0..KEYS).map(long_key).collect();
    {
        let mut log = BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
        let other = "MIOpen(HIP): Info [FindSolutionImpl] ConvAsm3x3U (not searchable)\n";
        let others = other.repeat(BETWEEN as usize);
        let rounds = LINES / (3 + BETWEEN);
        for round in 0..rounds {
            log_requests(&mut log, &keys[(round % KEYS) as usize]);
            log.write_all(others.as_bytes()).unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let peak: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    assert!((1024..MEMORY_KIB).contains(&peak), "{peak} KiB in memory");
    keys.sort();
    assert!(keys_in(&project, "log.jsonl") == keys, "{stderr}");

    // The kdb that the program filled meanwhile has the same keys.
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 64 }).collect();
    let mut options = WriteOptions::default();
    options.blob = Blob::Raw;
    let object = |index: usize| std::io::Result::Ok((index as u64).to_le_bytes().repeat(8));
    gfxpack_kdb::write(&project.path().join("gfx906_60.ukdb"), &rows, &options, object).unwrap();
    project.run(&["harvest", "gfx906_60.ukdb", "-o", "ukdb.jsonl"]).expect_code(0);
    assert!(keys_in(&project, "ukdb.jsonl") == keys);
    project.run(&["harvest", "ukdb.jsonl", "log.jsonl", "-o", "both.jsonl"]).expect_code(0);
    assert!(keys_in(&project, "both.jsonl") == keys);
    let both = BufReader::new(fs::File::open(project.path().join("both.jsonl")).unwrap());
    let first: Value = serde_json::from_str(&both.lines().next().unwrap().unwrap()).unwrap();
    let times = first["seen"].as_u64().unwrap();
    assert!(times.abs_diff(LINES / (3 + BETWEEN) / KEYS) <= 1, "{first}");
    assert_eq!(first["misses"], times);
    assert_eq!((&first["ukdbs"], &first["targets"]), (&1.into(), &json!(["gfx906", "gfx906@60"])));
}

/// Keys of the example of a manifest, on gfx906.
fn example_keys(project: &Project) -> Vec<KernelKey> {
    let manifest = workspace().join("packaging/examples/kernels.toml");
    let args = ["plan", "--target", "gfx906_60", "--json", "-", "--manifest"];
    let run = project.run(&[&args[..], &[manifest.to_str().unwrap()]].concat()).expect_code(0);
    let plan = &run.of_type("plan")[0]["plan"];
    let keys = plan["kdbs"][0]["rows"].as_array().unwrap().iter().map(|row| key_of(&row["key"]));
    keys.collect()
}

fn lines(keys: &[KernelKey]) -> String {
    keys.iter().map(|key| json!(key).to_string() + "\n").collect()
}

/// Whether there is a .deb in a directory.
fn has_package(project: &Project, dir: &str) -> bool {
    let files = fs::read_dir(project.path().join(dir)).unwrap();
    files.flatten().any(|file| file.path().extension().is_some_and(|extension| extension == "deb"))
}

#[test]
fn a_harvest_becomes_a_package_of_exactly_what_was_missing() {
    let project = Project::new();
    let keys = example_keys(&project);
    let sources = workspace().join("packaging/examples");
    let run = |command: &[&str], more: &[&str]| -> Run {
        let common = ["--source-dir", sources.to_str().unwrap(), "--target", "gfx906_60"];
        project.run(&[command, &common, more].concat())
    };
    // Every third is there already.
    let there: Vec<KernelKey> = keys.iter().step_by(3).cloned().collect();
    project.write("there.jsonl", &lines(&there));
    run(&["build", "--keys", "there.jsonl", "--out", "old"], &[]).expect_code(0);
    let old = "old/kdb/gfx906_60.kdb";

    // A program that was run on another machine asks for all of them, for one
    // whose source nobody has, and for one without a source file.
    let gone = KernelKey {
        kernel_name: "gone.cl.o".to_owned(),
        kernel_args: " -DX=1 -mcpu=gfx906".to_owned(),
    };
    let text =
        KernelKey { kernel_name: "93b885adfe0da089cdf634904fd59f71.o".to_owned(), ..gone.clone() };
    let mut log = Vec::new();
    for key in keys.iter().chain([&gone, &text]) {
        log_requests(&mut log, key);
    }
    project.write("app.log", &String::from_utf8(log).unwrap());
    let harvest = ["harvest", "app.log", "--missed", "-o", "keys.jsonl"];
    let stderr = project.run(&harvest).expect_code(0).stderr;
    let expected = format!("{} keys ({0} for gfx906)", keys.len() + 2);
    assert!(
        stderr.contains(&expected) && stderr.contains("1 of them are of no source"),
        "{stderr}"
    );

    let dist = ["dist", "--keys", "keys.jsonl", "--missing-from", old, "--license", "MIT"];
    let json = ["--json", "-"];
    let refused =
        run(&dist, &[&["--out", "none", "--format", "deb"], &json[..]].concat()).expect_code(100);
    let share = &refused.of_type("missing-from")[0];
    assert_eq!(share["present"], there.len());
    assert_eq!(share["missing"], keys.len() + 2 - there.len());
    let groups = refused.of_type("unbuildable");
    let kinds: Vec<&Value> = groups.iter().map(|group| &group["kind"]).collect();
    assert_eq!(kinds, ["not-compilable", "no-source"], "{groups:?}");
    assert_eq!(key_of(&groups[1]["keys"][0]), gone);
    assert!(!has_package(&project, "none"));

    let more = ["--out", "new", "--format", "deb", "--allow-partial", "--report", "report.html"];
    let made = run(&dist, &more).expect_code(0);
    assert!(made.stderr.contains("1 whose source was not found (1 source)"), "{}", made.stderr);
    assert!(made.stderr.contains(&format!("takes the place of `{old}`")), "{}", made.stderr);
    let missing: BTreeSet<KernelKey> =
        keys.iter().filter(|key| !there.contains(key)).cloned().collect();
    let new = "new/kdb/gfx906_60.kdb";
    let read: BTreeSet<KernelKey> = python_reads(&project.path().join(new), GFX906)
        .into_iter()
        .map(|(kernel_name, kernel_args)| KernelKey { kernel_name, kernel_args })
        .collect();
    assert_eq!(read, missing);
    assert!(has_package(&project, "new"));
    assert!(project.text("report.html").contains("gone.cl.o"));

    // With both, nothing is missing but what can't be built; without that,
    // nothing at all, and nothing is written.
    let both = ["--missing-from", new];
    let args = [&both[..], &["--out", "again"]].concat();
    run(&dist, &args).expect_code(2);
    project.write("keys.jsonl", &lines(&keys));
    let run = run(&dist, &args).expect_code(0);
    assert!(run.stderr.contains("nothing is missing"), "{}", run.stderr);
    assert!(!project.path().join("again").exists());
}

#[test]
fn without_missing_kernels_there_is_nothing_to_do() {
    let project = Project::new();
    project.write("app.log", r#"{"kernel_name":"a.cl.o","kernel_args":" -mcpu=gfx906"}"#);
    let none = project.run(&["harvest", "app.log", "--missed", "-o", "keys"]).expect_code(0);
    assert!(none.stderr.contains("nothing was missing among 1 key"), "{}", none.stderr);
    assert_eq!(project.text("keys"), "");
    let none = ["harvest", "app.log", "--missed", "--json", "-"];
    let none = project.run(&none).expect_code(0);
    assert_eq!(none.of_type("harvested")[0]["keys"], 0);

    let dist = ["dist", "--keys", "keys", "--source-dir", ".", "-t", "gfx906_60", "--out", "o"];
    let done = project.run(&dist).expect_code(0);
    assert_eq!(done.stderr, "nothing to do: there is no key in the lists\n");
    let json = ["--json", "-"];
    let done = project.run(&[&dist[..], &json].concat()).expect_code(0);
    assert_eq!(done.of_type("nothing-to-do")[0]["reason"], "no-keys");
    assert!(!project.path().join("o").exists());
    let plan = ["plan", "--keys", "keys", "--source-dir", ".", "-t", "gfx906"];
    project.run(&plan).expect_code(0);
}

#[test]
fn errors_are_reported_once_and_existing_files_are_kept() {
    let project = Project::new();
    let check = |args: &[&str], expected: &[&str]| {
        project.write("out.jsonl", "as it was\n");
        let run = project.run(&[&["harvest"], args, &["-o", "out.jsonl"]].concat()).expect_code(2);
        for text in expected {
            assert!(run.stderr.contains(text), "`{text}` is not in:\n{}", run.stderr);
        }
        assert!(run.stderr.contains("hint: ") && !run.stderr.contains("panicked"));
        assert_eq!(project.text("out.jsonl"), "as it was\n");
        assert_eq!(fs::read_dir(project.path()).unwrap().count(), 3, "nothing beside it");
    };
    project.write("quiet.log", "MIOpen(HIP): Info [x] y\n");
    let key = long_key(1);
    let mut log = Vec::new();
    log_requests(&mut log, &key);
    let log = String::from_utf8(log).unwrap();
    project.write("bad.kdb", "version https://git-lfs.github.com/spec/v1\n");
    check(&["quiet.log"], &["failed to find a key in `quiet.log`", "MIOPEN_LOG_LEVEL"]);
    check(&["none.log"], &["failed to read `none.log`"]);
    project.write("quiet.log", r#"{"kernel_name":"a.cl.o","kernel_args":" -mcpu=gfx906"}"#);
    project.write("quiet.log", "MIOpen(HIP): Info [x] y\n");
    check(&["quiet.log", "bad.kdb"], &["bad.kdb", "git lfs pull"]);

    // The good ones are worth it where that is said.
    let cut = log.lines().last().unwrap().trim_end_matches("gfx906");
    project.write("quiet.log", &format!("{log}{cut}\n{cut}\n"));
    let args = ["harvest", "quiet.log", "bad.kdb", "--keep-going", "-o", "out.jsonl"];
    let run = project.run(&args).expect_code(0);
    assert!(run.stderr.contains("quiet.log:4: failed to find ` -mcpu=<device>`"), "{}", run.stderr);
    assert!(run.stderr.contains("(2 such lines)") && run.stderr.contains("bad.kdb"));
    assert_eq!(keys_in(&project, "out.jsonl"), std::slice::from_ref(&key));

    // From the standard input to the standard output, and as messages.
    let piped = |args: &[&str]| {
        let mut harvest = project.command(args);
        harvest.stdin(fs::File::open(project.path().join("quiet.log")).unwrap());
        finish(harvest).expect_code(0)
    };
    let line: Value = serde_json::from_str(piped(&["harvest"]).stdout.trim()).unwrap();
    assert_eq!((key_of(&line), &line["saved"]), (key.clone(), &1.into()));
    let run = piped(&["harvest", "-", "--json", "-"]);
    assert_eq!(key_of(&run.of_type("key")[0]), key);
    let file = &run.of_type("harvested-file")[0];
    assert_eq!(
        (&file["kind"], &file["lines"], &file["told"]),
        (&"log".into(), &5.into(), &3.into())
    );
    assert_eq!((&file["skipped"][0]["lines"], &file["file"]), (&2.into(), &"-".into()));
    assert_eq!(run.of_type("harvested")[0]["devices"]["gfx906"], 1);
}

#[test]
fn driver_commands_become_a_script() {
    let project = Project::new();
    project.write(
        "app.log",
        "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1 -c 3 -t 1 -S 0\n\
         MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1 -c 3 -t 1 -S 0\n\
         MIOpen(HIP): Command [LogCmdPooling] ./bin/MIOpenDriver pool -n 1\n",
    );
    let commands = |script: &str| -> Vec<String> {
        let commands = script.lines().filter_map(|line| line.strip_prefix("MIOpenDriver "));
        commands.map(str::to_owned).collect()
    };
    let run = project.run(&["tune", "plan", "app.log", "-o", "tune"]).expect_code(0);
    assert!(run.stderr.contains("1 others have nothing to tune"), "{}", run.stderr);
    assert_eq!(commands(&project.text("tune/tune.sh")), ["conv -n 1 -c 3 -t 1 -V 0"]);
    assert!(project.text("tune/tune.sh").contains("MIOPEN_FIND_ENFORCE=3"));
    let args = ["tune", "plan", "app.log", "-o", "tune", "--mode", "exhaustive"];
    let json = ["--json", "-"];
    let run = project.run(&[&args[..], &json].concat()).expect_code(0);
    assert_eq!(run.of_type("tune-planned")[0]["commands"], 1);
    assert_eq!(run.of_type("command")[0]["seen"], 2);
    assert!(project.text("tune/tune.sh").contains("MIOPEN_FIND_ENFORCE=4"));
    // Without a driver it says so, as the shell runs it.
    let mut tune = command(project.path().join("tune/tune.sh"));
    tune.env("MIOPEN_DRIVER", Path::new("/no/such/driver"));
    let run = finish(tune).expect_code(127);
    assert!(run.stderr.contains("hint: install it"), "{}", run.stderr);
    project.write("pool.log", "./bin/MIOpenDriver pool -n 1\n");
    let run = project.run(&["tune", "plan", "pool.log", "-o", "none"]).expect_code(2);
    assert!(run.stderr.contains("batch normalization") && !project.path().join("none").exists());
}

#[test]
fn a_shell_tunes_with_any_program_and_stops() {
    let project = Project::new();
    let shell = |modes: &[&str]| {
        let mut lines = String::from("export MIOPEN_FIND_MODE=5 MIOPEN_DISABLE_CACHE=1\n");
        for mode in modes {
            lines += &project.run(&["tune", "env", mode, "--db", "my db"]).expect_code(0).stdout;
        }
        let mut shell = command("sh");
        shell.env_clear().env("PATH", "/usr/bin:/bin");
        shell.args(["-c", &format!("set -eu\n{lines}env | grep ^MIOPEN | sort")]);
        finish(shell).expect_code(0).stdout
    };
    let db = project.path().join("my db");
    let db = db.display();
    assert_eq!(
        shell(&["incremental"]),
        format!("MIOPEN_FIND_ENFORCE=3\nMIOPEN_USER_DB_PATH={db}\n")
    );
    assert_eq!(
        shell(&["exhaustive"]),
        format!("MIOPEN_FIND_ENFORCE=3\nMIOPEN_SYSTEM_DB_PATH={db}\nMIOPEN_USER_DB_PATH={db}\n")
    );
    let after = shell(&["exhaustive", "off"]);
    assert_eq!(after, format!("MIOPEN_USER_DB_PATH={db}\n"), "the results are found");
}

#[test]
fn tuning_results_become_the_systems() {
    let project = Project::new();
    let problem =
        |channels: u32| format!("{channels}-56-56-1x1-64-56-56-16-0x0-1x1-1x1-0-NCHW-FP32-F");
    let (a, b, c) = (problem(64), problem(128), problem(256));
    let values = "1,8,4,64,2,1,1";
    project.write(
        "tune/incremental-db/gfx906_60.HIP.3_3_0_.udb.txt",
        &format!("{b}=ConvAsm1x1U:{values},2\n{a}=ConvAsm1x1U:{values},3\n"),
    );
    project.write(
        "tune/incremental-db/gfx906_60.HIP.3_3_0_.ufdb.txt",
        &format!("{a}=ConvAsm1x1U:0.1,0,miopenConvolutionFwdAlgoDirect\n"),
    );
    project.write("tune/incremental.done", "conv -n 1\n");
    project.write("other/gfx906_60.HIP.3_3_0_.udb.txt", &format!("{b}=ConvAsm1x1U:{values},4\n"));
    project.write(
        "system/gfx906_60.db.txt",
        &format!("{a}=ConvAsm1x1U:{values},1;GemmFwd1x1:0\n{c}=ConvAsm1x1U:{values},1\n"),
    );
    let args = ["tune", "collect", "tune", "other", "--system", "system", "-o", "out"];
    let run = project.run(&[&args[..], &["--json", "-"]].concat()).expect_code(0);
    let collected = run.of_type("tune-collected");
    assert_eq!(collected.len(), 2);
    assert_eq!((&collected[0]["records"], &collected[0]["system"]), (&1.into(), &Value::Null));
    assert_eq!(
        (&collected[1]["records"], &collected[1]["users"][1]),
        (&3.into(), &"other/gfx906_60.HIP.3_3_0_.udb.txt".into(),)
    );
    // Tuned anew, tuned twice, and as it was; solver by solver.
    let expected = format!(
        "{b}=ConvAsm1x1U:{values},4\n{c}=ConvAsm1x1U:{values},1\n\
         {a}=ConvAsm1x1U:{values},3;GemmFwd1x1:0\n"
    );
    assert_eq!(project.text("out/gfx906_60.db.txt"), expected);
    let lint = ["perfdb", "lint", "out/gfx906_60.db.txt", "out/gfx906_60.HIP.fdb.txt"];
    project.run(&lint).expect_code(0);
    let run = project.run(&["tune", "collect", "system", "-o", "none"]).expect_code(2);
    assert!(run.stderr.contains("tune.sh") && !project.path().join("none").exists());
}
