//! Checks that the fuzz targets compile: they are a workspace of their own, which nothing else
//! builds.

use std::path::Path;
use std::process::Command;

#[test]
#[expect(clippy::disallowed_methods, reason = "cargo is asked")]
fn every_fuzz_target_compiles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let checked = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--locked", "--all-targets", "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(root.join("target"))
        .status();
    assert!(checked.unwrap().success());
}
