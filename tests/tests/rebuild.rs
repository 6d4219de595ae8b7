//! What is compiled again when one thing changes, on copies of the
//! toolchain's own files, and what `plan --explain` says of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gfxpack_tests::project::{Project, Run, command, tool};
use serde_json::Value;

/// What hipcc of this machine uses.
struct Toolchain {
    clang: PathBuf,
    lld: PathBuf,
    resource_dir: PathBuf,
    device_libs: PathBuf,
    headers: PathBuf,
}

fn installed() -> Toolchain {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.hip"), "").unwrap();
    let mut hipcc = command("hipcc");
    hipcc.current_dir(dir.path());
    let arguments = ["-###", "--offload-arch=gfx906", "--cuda-device-only", "-c", "x.hip"];
    let output = hipcc.args(arguments).output().expect("hipcc starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let words: Vec<&str> = said.split_whitespace().map(|word| word.trim_matches('"')).collect();
    let after = |option: &str| {
        let at = words.iter().position(|word| *word == option).expect(option);
        PathBuf::from(words[at + 1])
    };
    let clang = PathBuf::from(words[words.iter().position(|word| *word == "-cc1").unwrap() - 1]);
    let lld = words.iter().find(|word| word.ends_with("/lld") || word.ends_with("ld.lld"));
    Toolchain {
        clang: fs::canonicalize(clang).unwrap(),
        lld: fs::canonicalize(lld.expect("hipcc links with lld")).unwrap(),
        resource_dir: after("-resource-dir"),
        device_libs: after("-mlink-builtin-bitcode").parent().unwrap().to_owned(),
        headers: PathBuf::from("/usr/include/hip"),
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    tool("cp", &["-rL", from.to_str().unwrap(), to.to_str().unwrap()], Path::new("/"));
}

/// A library of every language, and a toolchain of its own to change: a copy
/// of each of its files, in an LLVM prefix beside a ROCm prefix.
fn project() -> Project {
    let project = Project::small();
    let installed = installed();
    let at = |path: &str| project.path().join(path);
    copy(&installed.clang, &at("llvm/bin/clang"));
    copy(&installed.lld, &at("llvm/bin/lld"));
    std::os::unix::fs::symlink("lld", at("llvm/bin/ld.lld")).unwrap();
    let version = installed.resource_dir.file_name().unwrap().to_str().unwrap().to_owned();
    copy(
        &installed.resource_dir.join("include"),
        &at(&format!("llvm/lib/clang/{version}/include")),
    );
    copy(&installed.device_libs, &at("rocm/amdgcn/bitcode"));
    copy(&installed.headers, &at("rocm/include/hip"));
    project
}

const TOOLS: [&str; 8] = [
    "--clang",
    "llvm/bin/clang",
    "--rocm-path",
    "rocm",
    "--device-libs",
    "rocm/amdgcn/bitcode",
    "--message-format",
    "json",
];
const INPUT: [&str; 4] = ["--manifest", "kernels.toml", "--target", "gfx906"];

fn build(project: &Project) -> Run {
    let arguments = [&["build", "--out", "o"], &INPUT[..], &TOOLS].concat();
    project.run(&arguments).expect_code(0)
}

/// Names of the kernels that a build compiles, each as often as it has keys.
fn compiled(project: &Project) -> Vec<String> {
    let run = build(project);
    let finished = &run.of_type("build-finished")[0];
    let mut names: Vec<String> = run
        .of_type("job-finished")
        .iter()
        .map(|job| job["kernel_name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(finished["compiled"], names.len(), "{finished}");
    names
}

fn explained(project: &Project, key: &str) -> Value {
    let arguments = [&["plan", "--explain", key], &INPUT[..], &TOOLS].concat();
    let run = project.run(&arguments).expect_code(0);
    run.of_type("explained").remove(0)
}

/// What is said of a kernel that would be compiled again.
fn changes(project: &Project, key: &str) -> Vec<String> {
    let said = explained(project, key);
    let change = |change: &Value| {
        let word = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
        [word("what"), word("name"), word("how")].join(" ")
    };
    said["changes"].as_array().unwrap().iter().map(change).collect()
}

/// Changes one byte of a file that was put there for that.
fn append(project: &Project, file: &str, byte: &str) {
    let path = project.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(byte.as_bytes());
    fs::write(&path, bytes).unwrap();
}

const HIP: &str = "add.cpp.o";
const OPENCL: &str = "scale.cl.o";
const ASSEMBLY: &str = "fill.s.o";

#[test]
fn one_byte_rebuilds_exactly_what_depends_on_it() {
    let project = project();
    let all = [HIP, HIP, ASSEMBLY, OPENCL, OPENCL];
    assert_eq!(explained(&project, "add.cpp")["state"], "new");
    assert_eq!(compiled(&project), all);
    assert!(compiled(&project).is_empty(), "nothing changed");
    assert_eq!(explained(&project, "add.cpp")["state"], "stored");

    append(&project, "rocm/include/hip/hip_runtime.h", " ");
    assert_eq!(changes(&project, "add.cpp"), ["header hip/hip_runtime.h changed"]);
    assert_eq!(explained(&project, "scale.cl")["state"], "stored");
    assert_eq!(compiled(&project), [HIP, HIP]);

    // Of another processor: nothing that is linked, but of the libraries.
    append(&project, "rocm/amdgcn/bitcode/oclc_isa_version_1030.bc", "\0");
    let changed = ["device-library bitcode/oclc_isa_version_1030.bc changed"];
    assert_eq!(changes(&project, "scale.cl"), changed);
    assert_eq!(explained(&project, "fill.s")["state"], "stored");
    assert_eq!(compiled(&project), [HIP, HIP, OPENCL, OPENCL]);

    append(&project, "llvm/bin/clang", "\0");
    assert_eq!(changes(&project, "fill.s"), ["compiler clang changed"]);
    assert_eq!(compiled(&project), all);

    append(&project, "llvm/bin/lld", "\0");
    assert_eq!(changes(&project, "fill.s"), ["compiler lld changed"]);
    assert_eq!(compiled(&project), all);

    project.write("include/step.h", "#define STEP 5.0f\n");
    assert_eq!(changes(&project, "scale.cl"), ["source i0/step.h changed"]);
    assert_eq!(compiled(&project), [HIP, HIP, OPENCL, OPENCL]);

    append(&project, "src/fill.s", "// more\n");
    assert_eq!(changes(&project, "fill.s"), ["source src/fill.s changed"]);
    assert_eq!(compiled(&project), [ASSEMBLY]);

    let manifest = fs::read_to_string(project.path().join("kernels.toml")).unwrap();
    project.write("kernels.toml", &manifest.replace("FACTOR=2", "FACTOR=9"));
    let said = explained(&project, "FACTOR=9");
    assert_eq!(said["state"], "new");
    assert_eq!(said["nearest"]["kernel_args"], " -DGROUP=64 -DFACTOR=2 -mcpu=gfx906");
    let change = &said["changes"][0];
    assert_eq!(
        (&change["name"], &change["from"], &change["to"]),
        (&"FACTOR".into(), &"2".into(), &"9".into())
    );
    assert_eq!(compiled(&project), [OPENCL]);
    assert!(compiled(&project).is_empty());

    let job = explained(&project, "fill.s")["job"].as_str().unwrap().to_owned();
    fs::remove_file(project.path().join("cache/v1/objects").join(&job[..2]).join(&job)).unwrap();
    assert_eq!(explained(&project, "fill.s")["state"], "gone");
    assert_eq!(compiled(&project), [ASSEMBLY]);
}

#[test]
fn what_an_edit_leaves_the_same_is_not_compiled_again() {
    let project = Project::small();
    let build = |out: &str| {
        let arguments =
            [&["build", "--message-format", "json", "--jobs", "1", "--out", out], &INPUT[..]];
        let run = project.run(&arguments.concat()).expect_code(0);
        let finished = run.of_type("build-finished").remove(0);
        let number = |name: &str| finished[name].as_u64().unwrap();
        (number("compiled"), number("reused"), number("cached"))
    };
    assert_eq!(build("o"), (5, 0, 0));
    let before = project.tree("o/kdb");
    // The same tokens on the same lines.
    project.write("include/step.h", "#define STEP /* metres */ 3.0f\n");
    assert_eq!(build("o"), (0, 4, 1));
    assert!(project.tree("o/kdb") == before, "the objects are those of before");
    assert_eq!(build("o"), (0, 0, 5));
    // It is what a compiler makes of the new text, too.
    fs::rename(project.path().join("cache"), project.path().join("old")).unwrap();
    assert_eq!(build("o"), (5, 0, 0));
    assert!(project.tree("o/kdb") == before);
    // A macro that nothing uses, and then one that counts.
    project.write("include/step.h", "#define STEP 3.0f\n#define UNUSED 1\n");
    let (compiled, reused, _) = build("o");
    assert_eq!(compiled + reused, 4);
    assert!(project.tree("o/kdb") == before);
    project.write("include/step.h", "#define STEP 4.0f\n");
    assert_eq!(build("o"), (4, 0, 1));
    assert!(project.tree("o/kdb") != before);
    // A line more moves what follows: nobody can tell that it does no harm.
    project.write("src/scale.cl", &format!("\n{}", project.text("src/scale.cl")));
    assert_eq!(build("o"), (2, 0, 3));
}

/// The kdbs of a build: paths and bytes.
type Kdbs = Vec<(String, Vec<u8>)>;

/// Builds a manifest of one source; gives how many kernels were compiled and
/// how many had an earlier object, and the kdb.
fn build_one(project: &Project) -> ((u64, u64), Kdbs) {
    let arguments =
        [&["build", "--message-format", "json", "--jobs", "1", "--out", "o"], &INPUT[..]].concat();
    let run = project.run(&arguments).expect_code(0);
    let finished = run.of_type("build-finished").remove(0);
    let number = |name: &str| finished[name].as_u64().unwrap();
    ((number("compiled"), number("reused")), project.tree("o/kdb"))
}

#[test]
fn an_edit_is_not_held_against_a_text_of_other_system_headers() {
    let project = Project::new();
    project.write_manifest("k.cl", ["-DX=1".to_owned()].into_iter());
    let header = project.path().join("elsewhere/zqv.h");
    let source = |value: &str, comment: &str| {
        let header = header.display();
        let text = format!(
            "#include \"{header}\"\n__kernel void k(__global int* x) {{ *x = {value}; /* {comment} */ }}\n"
        );
        project.write("k.cl", &text);
    };
    project.write("elsewhere/zqv.h", "#define ZQV 3\n");
    source("ZQV", "one");
    let (counts, with_3) = build_one(&project);
    assert_eq!(counts, (1, 0));
    // Has the digest of its text remembered.
    source("ZQV", "two");
    assert_eq!(build_one(&project), ((0, 1), with_3.clone()));
    project.write("elsewhere/zqv.h", "#define ZQV 4\n");
    let (counts, with_4) = build_one(&project);
    assert_eq!(counts, (1, 0));
    assert!(with_4 != with_3);
    source("3", "two");
    assert_eq!(build_one(&project), ((1, 0), with_3));
}

#[test]
fn what_assembly_in_a_source_reads_is_an_input_and_a_lambdas_place_is_in_its_name() {
    let project = Project::new();
    let build = |source: &str, text: &str| {
        project.write(source, text);
        project.write_manifest(source, ["-DX=1".to_owned()].into_iter());
        build_one(&project)
    };
    let asm = "__kernel void k(__global int* x)\n{\n    __asm__ volatile(\".inc\" \"lude \\\"code.inc\\\"\");\n}\n";
    project.write("code.inc", "s_nop 1\n");
    let (counts, before) = build("k.cl", asm);
    assert_eq!(counts, (1, 0));
    project.write("code.inc", "s_nop 2\n");
    let (counts, after) = build_one(&project);
    assert_eq!(counts, (1, 0));
    assert!(before != after);

    // The column is the last thing in the name but for two brackets.
    let lambda = |comment: &str| {
        format!(
            "template<class T> __device__ char name(T) {{ return __PRETTY_FUNCTION__[sizeof(__PRETTY_FUNCTION__) - 4]; }}\n\
             extern \"C\" __global__ void k(char* x)\n{{\n    auto f = {comment} [] {{}}; *x = name(f);\n}}\n"
        )
    };
    let (counts, before) = build("k.cpp", &lambda("/* */"));
    assert_eq!(counts, (1, 0));
    let (counts, after) = build("k.cpp", &lambda("/*  */"));
    assert_eq!(counts, (1, 0));
    assert!(before != after);
}

#[test]
fn assembly_that_reads_a_file_of_no_digest_is_refused() {
    let project = Project::new();
    project.write("bits", "1234");
    let bits = project.path().join("bits");
    let bits = bits.display();
    let sources = [
        ("a.cl", format!("__kernel void k() {{ __asm__(\".incbin \\\"{bits}\\\"\"); }}\n")),
        ("b.cpp", format!("asm(\".INCLUDE \\\"{bits}\\\"\");\n")),
        ("c.s", format!("label: .incbin \"{bits}\"\n")),
        ("d.s", format!(".INCBIN \"{bits}\"\n")),
    ];
    for (name, text) in sources {
        project.write(name, &text);
        project.write_manifest(name, ["-DX=1".to_owned()].into_iter());
        let arguments = [&["build", "--out", "o"], &INPUT[..]].concat();
        let run = project.run(&arguments);
        assert!(
            run.code != Some(0) && run.stderr.contains("which no digest covers"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_new_header_in_front_of_the_one_that_was_read_is_read() {
    let project = Project::new();
    let root = project.path().display().to_string();
    let first_and_second = format!("-isystem '{root}/first' -isystem '{root}/second'");
    project.add_compiler(&format!("#!/bin/sh\nexec hipcc {first_and_second} \"$@\"\n"));
    project
        .write("k.cpp", "#include <zqv.h>\nextern \"C\" __global__ void k(int* x) { *x = ZQV; }\n");
    project.write_manifest("k.cpp", ["-DX=1".to_owned()].into_iter());
    project.write("first/other.h", "");
    project.write("second/zqv.h", "#define ZQV 3\n");
    let run = |arguments: &[&str]| {
        let more = ["--hipcc", "bin/hipcc", "--message-format", "json"];
        project.run(&[arguments, &INPUT, &more].concat()).expect_code(0)
    };
    let compiled = || {
        let run = run(&["build", "--out", "o"]);
        (run.of_type("build-finished")[0]["compiled"].clone(), project.tree("o/kdb"))
    };
    let (count, before) = compiled();
    assert_eq!((count, compiled().0), (1.into(), 0.into()));
    let header = project.write("first/zqv.h", "#define ZQV 4711\n");
    let said = run(&["plan", "--explain", "k.cpp"]).of_type("explained").remove(0);
    let change = &said["changes"][0];
    assert_eq!(
        (&change["name"], &change["how"]),
        (&header.display().to_string().into(), &"added".into())
    );
    let (count, after) = compiled();
    assert_eq!((count, compiled().0), (1.into(), 0.into()));
    assert!(after != before);
    fs::remove_file(header).unwrap();
    assert_eq!(compiled(), (1.into(), before));
}

#[test]
fn a_file_that_a_header_only_asks_for_is_noticed_when_it_comes() {
    let project = Project::new();
    let root = project.path().display().to_string();
    let first_and_second = format!("-isystem '{root}/first' -isystem '{root}/second'");
    project.add_compiler(&format!("#!/bin/sh\nexec hipcc {first_and_second} \"$@\"\n"));
    let source = "#include <sub/zqv.h>\n#if __has_include(<option.h>)\n#define O 1\n#else\n\
                  #define O 2\n#endif\nextern \"C\" __global__ void k(int* x) { *x = ZQV + O; }\n";
    project.write("k.cpp", source);
    project.write_manifest("k.cpp", ["-DX=1".to_owned()].into_iter());
    project.write("first/other.h", "");
    project.write("second/beside.h", "#define ZQV 30\n");
    let header =
        "#include \"beside.h\"\n#if __has_include(\"own.h\")\n#undef ZQV\n#define ZQV 50\n#endif\n";
    project.write("second/sub/zqv.h", header);
    let mut before = Vec::new();
    let changes = ["", "first/option.h", "second/sub/beside.h", "second/sub/own.h"];
    for change in changes {
        if !change.is_empty() {
            project.write(change, "#define ZQV 40\n");
        }
        for compiled in [1, 0] {
            let more = ["--hipcc", "bin/hipcc", "--message-format", "json"];
            let arguments = [&["build", "--out", "o"], &INPUT[..], &more].concat();
            let run = project.run(&arguments).expect_code(0);
            assert_eq!(run.of_type("build-finished")[0]["compiled"], compiled, "{change}");
        }
        let now = project.tree("o/kdb");
        assert!(now != before, "{change}");
        before = now;
    }
}

/// A copy of a clang that reads configuration files, in a prefix of its own.
fn newer_clang(project: &Project) {
    let find = "command -v clang-19 || command -v clang-20 || command -v clang-21";
    let clang = fs::canonicalize(tool("sh", &["-c", find], Path::new("/")).trim()).unwrap();
    let from = clang.parent().unwrap();
    let at = |name: &str| project.path().join("newer").join(name);
    copy(&clang, &at("bin/clang"));
    copy(&from.join("lld"), &at("bin/lld"));
    std::os::unix::fs::symlink("lld", at("bin/ld.lld")).unwrap();
    std::os::unix::fs::symlink(from.join("../lib"), at("lib")).unwrap();
}

#[test]
fn clangs_configuration_files_are_part_of_the_toolchain() {
    let project = Project::new();
    newer_clang(&project);
    project.write(
        "k.cl",
        "#ifndef V\n#define V 1\n#endif\n__kernel void k(__global int* x) { *x = V; }\n",
    );
    project.write_manifest("k.cl", ["-DX=1".to_owned()].into_iter());
    let libs = installed().device_libs;
    let tools = ["--clang", "newer/bin/clang", "--device-libs", libs.to_str().unwrap()];
    let run = |arguments: &[&str]| {
        let more = ["--message-format", "json"];
        project.run(&[arguments, &INPUT, &tools, &more].concat()).expect_code(0)
    };
    let compiled = || {
        let run = run(&["build", "--out", "o"]);
        (run.of_type("build-finished")[0]["compiled"].clone(), project.tree("o/kdb"))
    };
    let (count, plain) = compiled();
    assert_eq!((count, compiled().0), (1.into(), 0.into()));
    project.write("newer/bin/clang.cfg", "# what all jobs get\n-DV=2 @more.cfg\n");
    project.write("newer/bin/more.cfg", "-DX1\n");
    let (count, configured) = compiled();
    assert_eq!((count, compiled().0), (1.into(), 0.into()));
    assert!(configured != plain);
    project.write("newer/bin/more.cfg", "-UV -DV=3\n");
    let said = run(&["plan", "--explain", "k.cl"]).of_type("explained").remove(0);
    assert_eq!(said["changes"][0]["name"], "more.cfg", "{said}");
    let (count, nested) = compiled();
    assert_eq!(count, 1);
    assert!(nested != configured);
    fs::remove_file(project.path().join("newer/bin/clang.cfg")).unwrap();
    assert_eq!(compiled(), (0.into(), plain), "as it was at first");
}

#[test]
fn only_kernels_that_ask_for_the_time_are_refused() {
    let project = Project::new();
    let header = project.write("elsewhere/when.h", "#define WHEN __TIME__\n");
    let own = "options = [\"-D__DATE__=3 -Wno-builtin-macro-redefined\"]";
    let value =
        "constant char when[] = __DATE__;\n__kernel void k(__global char* x) { *x = when[0]; }\n";
    let hip = format!(
        "#include \"{}\"\nextern \"C\" __global__ void k(char* x) {{ *x = WHEN[7]; }}\n",
        header.display()
    );
    let sources = [
        ("comment.cl", "", "// Not __TIME__.\n__kernel void k() {}\n"),
        ("branch.cl", "", "#ifdef NEVER\nchar s[] = __DATE__;\n#endif\n__kernel void k() {}\n"),
        ("own.cl", own, "__kernel void k(__global int* x) { *x = __DATE__; }\n"),
        ("value.cl", "", value),
        ("quiet.cl", "options = [\"-Wno-everything\"]", value),
        ("header.cpp", "", &hip),
    ];
    let mut manifest =
        "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n".to_owned();
    for (name, variant, text) in sources {
        project.write(name, text);
        manifest += &format!("[[kernel]]\nsource = \"{name}\"\n[[kernel.variant]]\n{variant}\n");
    }
    project.write("kernels.toml", &manifest);
    for way in [&[][..], &["--via", "hipcc"]] {
        let arguments = [&["build", "--message-format", "json", "--out", "o"], &INPUT[..], way];
        let run = project.run(&arguments.concat()).expect_code(100);
        let mut failed: Vec<String> = run
            .of_type("job-failed")
            .iter()
            .map(|job| {
                assert_eq!(job["reason"], "asks-for-time", "{job}");
                format!("{} {}", job["kernel_name"], job["message"]).replace('"', "")
            })
            .collect();
        failed.sort();
        let says = |name: &str, asked: &str| {
            format!("{name}.o it asks for `{asked}`, which no two builds agree on")
        };
        let expected = [
            says("header.cpp", "__TIME__"),
            says("quiet.cl", "__DATE__"),
            says("value.cl", "__DATE__"),
        ];
        assert_eq!(failed, expected);
        fs::remove_dir_all(project.path().join("cache")).unwrap();
    }
}

/// Changes a header right after the compiler has read it.
const CHANGING_COMPILER: &str = r#"#!/bin/sh
hipcc "$@"
code=$?
case "$*" in
    *'###'* | *version*) ;;
    *) if [ -e changing ]; then rm changing; echo '#define ZQV 4' > elsewhere/zqv.h; fi ;;
esac
exit $code
"#;

#[test]
fn a_header_that_changes_while_it_is_read_is_read_again() {
    let project = Project::new();
    project.write("k.cpp", "");
    let (header, flag) = (project.path().join("elsewhere/zqv.h"), project.path().join("changing"));
    let compiler = CHANGING_COMPILER.replace("elsewhere/zqv.h", header.to_str().unwrap());
    project.add_compiler(&compiler.replace("changing", flag.to_str().unwrap()));
    let source = format!(
        "#include \"{}\"\nextern \"C\" __global__ void k(int* x) {{ *x = ZQV; }}\n",
        header.display()
    );
    project.write("k.cpp", &source);
    project.write_manifest("k.cpp", ["-DX=1".to_owned()].into_iter());
    project.write("elsewhere/zqv.h", "#define ZQV 3\n");
    let build = |out: &str| {
        let arguments = ["build", "--via", "hipcc", "--hipcc", "bin/hipcc", "--out", out];
        project.run(&[&arguments[..], &INPUT].concat()).expect_code(0);
        project.tree(&format!("{out}/kdb"))
    };
    project.write("changing", "");
    build("o");
    assert!(!flag.exists(), "the header changed");
    let after = build("o");
    fs::rename(project.path().join("cache"), project.path().join("old")).unwrap();
    assert!(build("p") == after, "as from a new cache");
}

#[test]
fn a_toolchain_is_asked_again_when_something_that_it_says_may_have_changed() {
    let project = Project::small();
    let log = project.path().join("log");
    let hipcc = project.path().join("rocm/bin/hipcc");
    let script = format!("#!/bin/sh\necho asked >> '{}'\nexec hipcc \"$@\"\n", log.display());
    let install = |text: &str| {
        project.write("rocm/bin/hipcc.new", text);
        fs::set_permissions(hipcc.with_extension("new"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::rename(hipcc.with_extension("new"), &hipcc).unwrap();
    };
    install(&script);
    let asked = || fs::read_to_string(&log).map_or(0, |log| log.lines().count());
    let run = |arguments: &[&str]| {
        let before = asked();
        let run = project.run(&[arguments, &["--hipcc", hipcc.to_str().unwrap()]].concat());
        (run.expect_code(0).stdout, asked() > before)
    };
    let plan = [&["plan"], &INPUT[..]].concat();
    let (first, asks) = run(&plan);
    assert!(asks);
    // What was changed a moment ago is asked about again.
    let keeps = |_: &u32| !run(&["toolchains"]).1;
    assert!((0..300).any(|number| keeps(&number)), "it is asked every time");
    let cache = project.tree("cache");
    assert_eq!(run(&plan), (first.clone(), false));
    assert!(project.tree("cache") == cache, "looking changes nothing");
    install(&format!("{script}\n"));
    let (_, asks) = run(&plan);
    assert!(asks, "another hipcc");
    assert!(project.tree("cache") == cache, "looking changes nothing");
}

/// The linker of a job, which is where the toolchain is changed under it.
const REPLACING_LINKER: &str = r#"#!/bin/sh
if [ -e 'ROOT/changing' ]; then
    rm 'ROOT/changing'
    printf x >> 'ROOT/rocm/amdgcn/bitcode/oclc_isa_version_1036.bc'
fi
if [ -e 'ROOT/restoring' ]; then
    rm 'ROOT/restoring'
    library='ROOT/rocm/amdgcn/bitcode/oclc_isa_version_1036.bc'
    cp "$library" 'ROOT/saved'
    printf x >> "$library"
    cat 'ROOT/saved' > "$library"
fi
exec "ROOT/llvm/real/${0##*/}" "$@"
"#;

#[test]
fn what_was_made_while_the_toolchain_changed_is_thrown_away() {
    let project = project();
    let at = |path: &str| project.path().join(path);
    fs::create_dir(at("llvm/real")).unwrap();
    for name in ["lld", "ld.lld"] {
        fs::rename(at("llvm/bin").join(name), at("llvm/real").join(name)).unwrap();
    }
    let root = project.path().to_str().unwrap();
    project.write("llvm/bin/lld", &REPLACING_LINKER.replace("ROOT", root));
    fs::set_permissions(at("llvm/bin/lld"), PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("lld", at("llvm/bin/ld.lld")).unwrap();
    // What is tried of a toolchain once, is tried here.
    let other = ["build", "--out", "p", "--manifest", "kernels.toml", "--target", "gfx900"];
    project.run(&[&other[..], &TOOLS].concat()).expect_code(0);
    let before = project.objects();
    let arguments = [&["build", "--out", "o"], &INPUT[..], &TOOLS].concat();

    project.write("changing", "");
    let run = project.run(&arguments).expect_code(1);
    assert!(!at("changing").exists(), "the linker was run");
    let error = &run.of_type("error")[0];
    assert_eq!(
        error["messages"][0],
        "failed to trust what was compiled: the toolchain's `bitcode/oclc_isa_version_1036.bc` changed meanwhile"
    );
    assert_eq!(project.objects(), before);
    assert_eq!(project.tree("o"), []);

    // To whoever reads it nothing else is said.
    project.write("changing", "");
    let words = ["build", "--out", "w", "--manifest", "kernels.toml", "--target", "gfx908"];
    let said = project.run(&[&words[..], &TOOLS[..6]].concat()).expect_code(1).stderr;
    assert!(said.contains("is thrown away") && !said.contains("compiled and kept"), "{said}");
    assert_eq!(project.objects(), before);

    // With the toolchain as it is now, everything is made anew.
    let run = project.run(&arguments).expect_code(0);
    let finished = &run.of_type("build-finished")[0];
    assert_eq!((&finished["compiled"], &finished["cached"]), (&5.into(), &0.into()));

    // Changed and changed back: nobody knows what was read in between.
    let before = project.objects();
    project.write("restoring", "");
    let other = ["build", "--out", "q", "--manifest", "kernels.toml", "--target", "gfx908"];
    let run = project.run(&[&other[..], &TOOLS].concat()).expect_code(1);
    assert!(at("saved").exists(), "the linker was run");
    assert_eq!(&run.of_type("error")[0]["messages"], &error["messages"]);
    assert_eq!(project.objects(), before);
}
