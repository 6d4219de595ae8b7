//! Compiles what is loaded into compilers, and so can't be part of this
//! program.

use std::env;
use std::path::Path;

/// What every compiler is started with, and what fork servers are: programs
/// that load LLVM in their own ways must find nothing of its name in the first.
const LIBRARIES: [(&str, &[&str]); 2] =
    [("preload.so", &["heap"]), ("fork-server.so", &["fork_server", "heap", "llvm_start"])];

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    for (library, parts) in LIBRARIES {
        let library = Path::new(&out).join(library);
        if !linux {
            // An empty one is never started.
            std::fs::write(&library, []).expect("failed to write the output");
            continue;
        }
        let sources: Vec<String> =
            parts.iter().map(|part| format!("src/engine/{part}.c")).collect();
        sources.iter().for_each(|source| println!("cargo::rerun-if-changed={source}"));
        let mut compiler = cc::Build::new();
        let compiler = compiler.opt_level(2).warnings(true).extra_warnings(true).get_compiler();
        let mut command = compiler.to_command();
        // What defines malloc must not have its own calls of it replaced.
        command.args(["-shared", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-s", "-o"]);
        command.arg(&library).args(sources).arg("-ldl");
        let status = command.status().expect("failed to start the C compiler");
        assert!(status.success(), "the C compiler failed: {status}");
    }
}
