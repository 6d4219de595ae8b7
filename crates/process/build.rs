//! Compiles the libraries that are loaded into other programs, and so can't be part of this one.

use std::env;
use std::path::Path;

/// The parts of both libraries: the heap, the recorder, and what compilers see.
const COMMON: [&str; 6] = ["heap", "record", "bounds", "visible", "accesses", "starts"];

/// The library for every compiler, and the one for fork servers. Programs that load LLVM in ways of
/// their own must not find LLVM's names in the first.
const LIBRARIES: [(&str, &[&str]); 2] =
    [("preload.so", &[]), ("fork-server.so", &["fork_server", "llvm_start"])];

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_known = target("ENV") == "gnu" && target("POINTER_WIDTH") == "64";
    assert!(is_known, "gfxpack compiles kernels on Linux with glibc and 64 bits only");
    println!("cargo::rerun-if-changed=src/preload");
    for (library, more) in LIBRARIES {
        let library = Path::new(&out).join(library);
        let mut compiler = cc::Build::new();
        let compiler = compiler.opt_level(2).warnings(true).extra_warnings(true).get_compiler();
        let mut command = compiler.to_command();
        // The compiler must not replace calls in the functions that define malloc.
        command.args(["-shared", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-s"]);
        // With these macros, headers define some functions that the library defines.
        command.args(["-U_FORTIFY_SOURCE", "-U_FILE_OFFSET_BITS", "-U_TIME_BITS"]);
        let parts = COMMON.iter().chain(more).map(|part| format!("src/preload/{part}.c"));
        command.arg("-o").arg(&library).args(parts).arg("-ldl");
        let status = command.status().expect("failed to start the C compiler");
        assert!(status.success(), "the C compiler failed: {status}");
    }
}
