//! Compiles the recorder, which is loaded into other programs and so can't be
//! part of this one.

use std::env;
use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let library = Path::new(&out).join("watch.so");
    println!("cargo::rerun-if-changed=src/watch");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os != "linux") {
        // An empty one is never loaded.
        std::fs::write(&library, []).expect("failed to write the output");
        return;
    }
    let mut compiler = cc::Build::new();
    let compiler = compiler.opt_level(2).warnings(true).extra_warnings(true).get_compiler();
    let mut command = compiler.to_command();
    command.args(["-shared", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-s"]);
    // With these set, headers define some of the functions that it defines.
    command.args(["-U_FORTIFY_SOURCE", "-U_FILE_OFFSET_BITS", "-U_TIME_BITS"]);
    command
        .arg("-o")
        .arg(&library)
        .args(["record.c", "asks.c", "starts.c"].map(|file| format!("src/watch/{file}")));
    let status = command.arg("-ldl").status().expect("failed to start the C compiler");
    assert!(status.success(), "the C compiler failed: {status}");
}
