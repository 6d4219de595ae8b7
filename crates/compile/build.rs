//! Compiles what is loaded into compilers, and so can't be part of this
//! program.

use std::env;
use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    let names = ["fork_server", "heap", "huge_code", "llvm_start"];
    let sources = names.map(|name| format!("src/engine/{name}.c"));
    sources.iter().for_each(|source| println!("cargo::rerun-if-changed={source}"));
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let library = Path::new(&out).join("preload.so");
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if !linux {
        // An empty one is never started.
        std::fs::write(&library, []).expect("failed to write the output");
        return;
    }
    let compiler = cc::Build::new().opt_level(2).warnings(true).extra_warnings(true).get_compiler();
    let mut command = compiler.to_command();
    // What defines malloc must not have its own calls of it replaced.
    command.args(["-shared", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-s", "-o"]);
    command.arg(&library).args(sources).arg("-ldl");
    let status = command.status().expect("failed to start the C compiler");
    assert!(status.success(), "the C compiler failed: {status}");
}
