//! C and C++ compilers accept the header, in each standard.

use std::fs;

use crate::support::project::workspace;

use super::support::{command, crate_dir, run};

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

/// The page names functions of the header, with their arguments.
#[test]
fn the_example_of_the_documentation_compiles() {
    let page = fs::read_to_string(workspace().join("docs/runtime.md")).unwrap();
    let (_, example) = page.split_once("```c\n").unwrap();
    let (example, _) = example.split_once("```\n").unwrap();
    let (callback, calls) = example.split_once("\n}\n").unwrap();
    let text = format!(
        "#include <gfxpack_runtime.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         void *my_compiler(const char *name, const char *args, size_t *size);\n\
         int hipModuleLoadData(void **module, const void *image);\n\
         {callback}\n}}\nint main(void) {{\nvoid *module;\n{calls}\nreturn 0;\n}}\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("example.c");
    fs::write(&source, text).unwrap();
    let mut cc = command("cc");
    cc.args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I"])
        .arg(crate_dir().join("include"));
    run(cc.arg(&source));
}
