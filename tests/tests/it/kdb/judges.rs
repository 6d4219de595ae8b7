//! Python's SQLite, bzip2 and MD5, which are independent of ours.

use std::path::Path;

use super::support::{command, run};

/// Runs a Python script and returns what it prints.
#[track_caller]
pub(crate) fn python(script: &str, args: &[&Path]) -> String {
    let output = run(command("python3").arg("-c").arg(script).args(args));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
