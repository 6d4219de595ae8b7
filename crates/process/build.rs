//! Compiles what is loaded into other programs, and so can't be part of this
//! one.

use std::env;
use std::path::Path;

/// What is in both: a heap, and what writes records.
const COMMON: [&str; 5] = ["heap", "record", "bounds", "asks", "starts"];

/// What every compiler is started with, and what fork servers are: programs
/// that load LLVM in their own ways must find nothing of its name in the first.
const LIBRARIES: [(&str, &[&str]); 2] =
    [("preload.so", &[]), ("fork-server.so", &["fork_server", "llvm_start"])];

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    println!("cargo::rerun-if-changed=src/preload");
    for (library, more) in LIBRARIES {
        let library = Path::new(&out).join(library);
        if !linux {
            // An empty one is never loaded.
            std::fs::write(&library, []).expect("failed to write the output");
            continue;
        }
        let mut compiler = cc::Build::new();
        let compiler = compiler.opt_level(2).warnings(true).extra_warnings(true).get_compiler();
        let mut command = compiler.to_command();
        // What defines malloc must not have its own calls of it replaced.
        command.args(["-shared", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-s"]);
        // With these set, headers define some of the functions that it defines.
        command.args(["-U_FORTIFY_SOURCE", "-U_FILE_OFFSET_BITS", "-U_TIME_BITS"]);
        let parts = COMMON.iter().chain(more).map(|part| format!("src/preload/{part}.c"));
        command.arg("-o").arg(&library).args(parts).arg("-ldl");
        let status = command.status().expect("failed to start the C compiler");
        assert!(status.success(), "the C compiler failed: {status}");
    }
}
