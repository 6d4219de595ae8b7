//! Tests of the program. Those with compilers are in the `tests` crate, which
//! uses the binary that is built for these.
#![expect(clippy::disallowed_methods, reason = "starts gfxpack as a user would")]

use std::process::{Command, Output};

fn gfxpack(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gfxpack")).args(arguments).output().expect("gfxpack starts")
}

#[test]
fn it_prints_its_version() {
    let run = gfxpack(&["--version"]);
    assert!(run.status.success());
    assert_eq!(run.stdout, concat!("gfxpack ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
}

#[test]
fn an_unknown_command_is_wrong_usage() {
    let run = gfxpack(&["dits"]);
    assert_eq!(run.status.code(), Some(2));
    let stderr = String::from_utf8(run.stderr).expect("messages are text");
    assert!(stderr.contains("'dits'") && stderr.contains("'dist'"), "{stderr}");
}

#[test]
fn bash_completes_commands_targets_and_files() {
    let script = gfxpack(&["completions", "bash"]).stdout;
    let dir = env!("CARGO_TARGET_TMPDIR");
    let file = format!("{dir}/gfxpack.bash");
    std::fs::write(&file, script).expect("written");
    std::fs::write(format!("{dir}/my-keys.jsonl"), "").expect("written");
    let complete = |words: &[&str]| {
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let list = words.join(" ");
        let script_text = format!(
            "source {file}; cd {dir}; COMP_WORDS=({list}); COMP_CWORD={}; \
             _gfxpack gfxpack '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.len() - 1
        );
        let run = Command::new("bash").args(["-c", &script_text]).output().expect("bash starts");
        String::from_utf8(run.stdout).expect("words are text")
    };
    assert!(complete(&["gfxpack", "targ"]).contains("targets"));
    let targets = complete(&["gfxpack", "build", "--target", "gfx90"]);
    assert!(targets.lines().any(|word| word == "gfx90a"), "{targets}");
    assert!(!targets.contains("gfx1030"), "{targets}");
    assert!(complete(&["gfxpack", "build", "--keys", "my-k"]).contains("my-keys.jsonl"));
}
