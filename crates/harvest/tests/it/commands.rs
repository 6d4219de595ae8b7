//! Commands from logs, and the scripts that run them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use gfxpack_harvest::log::DriverCommand;
use gfxpack_harvest::script::{self, Tuning};
use gfxpack_harvest::{Options, SeenCommand, commands, list};

use crate::support::packed;

const LOG: &str = "\
MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 128 -c 3 -F 1 -t 1 -S 0
MIOpen(HIP): Info [x] y
MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver convfp16 -n 1 -c 3 -F 1 -t 1
4242 MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 128 -c 3 -F 1 -t 1 -S 0
MIOpen(HIP): Command [LogCmdPooling] ./bin/MIOpenDriver pool -n 1 -M 0,1
MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n $(reboot)
";

fn found(paths: &[PathBuf]) -> Vec<SeenCommand> {
    let (found, reports) = commands(&list(paths).unwrap(), &Options::default()).unwrap();
    assert!(reports.iter().all(|report| report.error.is_none()));
    found
}

fn only(found: &[SeenCommand]) -> Vec<DriverCommand> {
    found.iter().map(|(command, _)| command.clone()).collect()
}

#[test]
fn commands_are_collected_in_order_without_duplicates() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("a.log.gz"), packed(LOG, "gzip")).unwrap();
    std::fs::write(at("b.log"), "./bin/MIOpenDriver lrn -n 1\n".to_owned() + LOG).unwrap();
    let both = found(&[at("a.log.gz"), at("b.log")]);
    let counts: Vec<_> = both.iter().map(|(command, seen)| (command.as_str(), *seen)).collect();
    let expected = [
        ("conv -n 128 -c 3 -F 1 -t 1 -S 0", 4),
        ("convfp16 -n 1 -c 3 -F 1 -t 1", 2),
        ("pool -n 1 -M 0,1", 2),
        ("lrn -n 1", 1),
    ];
    assert_eq!(counts, expected);
    let (_, reports) = commands(&list(&[at("b.log")]).unwrap(), &Options::default()).unwrap();
    assert_eq!(
        (reports[0].lines, reports[0].used, reports[0].skipped.iter().next().unwrap().first),
        (7, 5, 7)
    );
}

/// Replaces MIOpenDriver, which needs a GPU: records its arguments and
/// environment, and fails for the commands that match `$FAILS`.
const DRIVER: &str = r#"#!/bin/sh
echo "$* ENFORCE=${MIOPEN_FIND_ENFORCE-} MODE=${MIOPEN_FIND_MODE-} DB=${MIOPEN_USER_DB_PATH-} OFF=${MIOPEN_DEBUG_DISABLE_FIND_DB-} SYSTEM=${MIOPEN_SYSTEM_DB_PATH-}" >>"$ASKED"
case " $* " in *" $FAILS "*) exit "$CODE" ;; esac
"#;

struct Run {
    code: Option<i32>,
    asked: Vec<String>,
    stderr: String,
}

#[expect(clippy::disallowed_methods, reason = "a script is run as a user would")]
fn run(script: &Path, fails: &str, code: i32) -> Run {
    let directory = script.parent().unwrap();
    let executable = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let (driver, asked) = (directory.join("driver"), directory.join("asked"));
    std::fs::write(&driver, DRIVER).unwrap();
    std::fs::write(&asked, "").unwrap();
    executable(&driver);
    // Run through `sh`, so the script needs no executable mode.
    let output = Command::new("sh")
        .arg(script)
        .env("MIOPEN_DRIVER", &driver)
        .env("ASKED", &asked)
        .env("FAILS", fails)
        .env("CODE", code.to_string())
        .env("MIOPEN_FIND_MODE", "2")
        .env("MIOPEN_DEBUG_DISABLE_FIND_DB", "1")
        .env("MIOPEN_SYSTEM_DB_PATH", "/system")
        .output()
        .unwrap();
    let asked = std::fs::read_to_string(asked).unwrap();
    Run {
        code: output.status.code(),
        asked: asked.lines().map(str::to_owned).collect(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_script_resumes_where_it_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("app.log"), LOG).unwrap();
    let commands = only(&found(&[at("app.log")]));
    std::fs::write(at("run.sh"), script::tuning(&commands, Tuning::Incremental)).unwrap();
    let first = run(&at("run.sh"), "convfp16", 139);
    assert_eq!((first.code, first.asked.len()), (Some(1), 3), "{}", first.stderr);
    assert!(first.stderr.contains("1 of 3 commands failed"), "{}", first.stderr);
    let failed = std::fs::read_to_string(at("incremental.failed")).unwrap();
    assert_eq!(failed, "139 MIOpenDriver convfp16 -n 1 -c 3 -F 1 -t 1 -V 0\n");
    // Finished commands are not run again, failed ones are.
    let second = run(&at("run.sh"), "none", 0);
    assert_eq!((second.code, second.asked.len()), (Some(0), 1), "{}", second.stderr);
    assert!(second.asked[0].starts_with("convfp16 "));
    assert_eq!(std::fs::read_to_string(at("incremental.failed")).unwrap(), "");
    assert_eq!(run(&at("run.sh"), "none", 0).asked.len(), 0);
    // An interrupted driver ends the script.
    std::fs::remove_file(at("incremental.done")).unwrap();
    let stopped = run(&at("run.sh"), "convfp16", 130);
    assert_eq!((stopped.code, stopped.asked.len()), (Some(130), 2), "{}", stopped.stderr);
    assert_eq!(run(&at("run.sh"), "none", 0).asked.len(), 2);
}

#[test]
fn tuning_scripts_set_miopens_variables() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("app.log"), LOG).unwrap();
    let commands: Vec<DriverCommand> =
        only(&found(&[at("app.log")])).into_iter().filter(DriverCommand::is_tunable).collect();
    assert_eq!(commands.len(), 2);
    let expected = |enforce: &str, mode: &str, database: &str| {
        let database = at(database).display().to_string();
        ["conv -n 128 -c 3 -F 1 -t 1 -V 0", "convfp16 -n 1 -c 3 -F 1 -t 1 -V 0"].map(|command| {
            format!("{command} ENFORCE={enforce} MODE={mode} DB={database} OFF= SYSTEM=/system")
        })
    };
    std::fs::write(at("tune.sh"), script::tuning(&commands, Tuning::Incremental)).unwrap();
    let first = run(&at("tune.sh"), "none", 0);
    assert_eq!(
        (first.code, &first.asked[..]),
        (Some(0), &expected("3", "", "incremental-db")[..]),
        "{}",
        first.stderr
    );
    assert!(at("incremental-db").is_dir());
    // The exhaustive commands are run even though the incremental ones are
    // done.
    std::fs::write(at("tune.sh"), script::tuning(&commands, Tuning::Exhaustive)).unwrap();
    let second = run(&at("tune.sh"), "none", 0);
    assert_eq!(second.asked[..], expected("4", "1", "exhaustive-db"), "{}", second.stderr);
    assert_eq!(run(&at("tune.sh"), "none", 0).asked.len(), 0);
}
