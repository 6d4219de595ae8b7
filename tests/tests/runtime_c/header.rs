//! C and C++ compilers accept the header, in each standard.

use crate::support::{command, crate_dir, run};

#[test]
fn c_and_cpp_compile_the_header() {
    let header = crate_dir().join("include/gfxpack_runtime.h");
    let warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"];
    for standard in ["c99", "c11", "c17", "c2x"] {
        let mut cc = command("cc");
        run(cc.arg(format!("-std={standard}")).args(warnings).args(["-x", "c"]).arg(&header));
    }
    for standard in ["c++11", "c++20"] {
        let mut cpp = command("c++");
        run(cpp.arg(format!("-std={standard}")).args(warnings).args(["-x", "c++"]).arg(&header));
    }
}
