//! The program itself. Its tests with compilers are in the `tests` crate,
//! which takes the binary that is built for these.
#![expect(clippy::disallowed_methods, reason = "starts gfxpack as a user would")]

use std::process::{Command, Output};

fn gfxpack(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gfxpack")).args(arguments).output().expect("gfxpack starts")
}

#[test]
fn it_tells_its_version() {
    let run = gfxpack(&["--version"]);
    assert!(run.status.success());
    assert_eq!(run.stdout, concat!("gfxpack ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
}

#[test]
fn a_command_that_is_not_known_is_wrong_usage() {
    let run = gfxpack(&["dits"]);
    assert_eq!(run.status.code(), Some(2));
    let said = String::from_utf8(run.stderr).expect("messages are text");
    assert!(said.contains("'dits'") && said.contains("'dist'"), "{said}");
}
