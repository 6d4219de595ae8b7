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
