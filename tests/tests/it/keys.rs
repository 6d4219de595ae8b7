//! Keys as MIOpen writes them, with sources and includes in several directories, included by bare
//! name, as in MIOpen's source tree.

use crate::support::kdb::{code_object, write_kdb};
use crate::support::project::{Project, finish, python_reads, tool};
use gfxpack_model::KernelKey;

const GFX906: u32 = 0x2f;

/// Odd blanks are part of real keys.
const ARGUMENTS: [(&str, &str); 6] = [
    ("ConvDirect.cl.o", "  -DMLO_N=2  -DMLO_GRP=64 -mcpu=gfx906"),
    ("ConvDirect.cl.o", " -DMLO_N=2  -DMLO_GRP=64 -mcpu=gfx906"),
    ("ConvDirect.cl.o", " -DMLO_N=3 -DMLO_GRP=64 -DNAME=\"a b\" -mcpu=gfx906"),
    ("gemm_wrapper.cpp.o", " -DCK_N=4 -mcpu=gfx906"),
    ("gemm_wrapper.cpp.o", " -DCK_N=4 -std=c++14 -mcpu=gfx906 -mcpu=gfx906"),
    ("conv1x1.s.o", " -Wa,-defsym,n=4 -mcpu=gfx906"),
];

fn project() -> Project {
    let project = Project::new();
    let source = |path: &str, text: &str| {
        project.write(&format!("MIOpen/src/kernels/{path}"), text);
    };
    source(
        "ConvDirect.cl",
        "#include \"types.h\"\n#include \"deep.inc\"\n__kernel void k(__global DATA* x) { x[get_global_id(0)] *= MLO_N * MLO_GRP + DEEP; }\n",
    );
    source("types.h", "#define DATA float\n");
    source("common/include/deep.inc", "#define DEEP 1\n");
    source(
        "static/src/wrapper/gemm_wrapper.cpp",
        "#include \"gemm.hpp\"\nextern \"C\" __global__ void gemm(float* x) { multiply(x); }\n",
    );
    source(
        "static/include/algorithm/gemm.hpp",
        "#include \"config.hpp\"\n#include <limits>\n__device__ inline void multiply(float* x) { x[threadIdx.x] *= CK_N * SCALE; }\n",
    );
    source(
        "static/include/utility/config.hpp",
        "#include \"hip/hip_runtime.h\"\n#define SCALE 3\n",
    );
    source("other/include/utility/config.hpp", "#error the nearer one is meant\n");
    // Reserves registers by the target's XNACK setting, as MIOpen's do.
    source(
        "conv1x1.s",
        ".include \"macros.inc\"\n.text\n.globl conv\n.p2align 8\n.type conv,@function\nconv:\n s_endpgm\n.rodata\n.p2align 6\n.amdhsa_kernel conv\n .amdhsa_reserve_xnack_mask xnack\n .amdhsa_next_free_vgpr n\n .amdhsa_next_free_sgpr 8\n.end_amdhsa_kernel\n",
    );
    source("inc/macros.inc", ".set xnack, 0\n");
    project
}

fn lines(keys: &[(&str, &str)]) -> String {
    let line = |(name, args): &(&str, &str)| {
        format!("{}\n", serde_json::json!({ "kernel_name": name, "kernel_args": args }))
    };
    keys.iter().map(line).collect()
}

const DIST: [&str; 10] = [
    "dist",
    "--keys",
    "keys.jsonl",
    "--source-dir",
    "MIOpen",
    "--license",
    "MIT",
    "--target",
    "gfx906_60",
    "--out=o",
];

#[test]
fn every_key_is_in_the_kdb_byte_for_byte() {
    let project = project();
    let keys = project.write("keys.jsonl", &lines(&ARGUMENTS));
    let run = project.run(&DIST).expect_code(0);
    assert!(!run.stderr.contains("keys.jsonl"), "{}", run.stderr);
    let mut expected: Vec<(String, String)> =
        ARGUMENTS.iter().map(|(name, args)| ((*name).into(), (*args).into())).collect();
    expected.sort();
    assert_eq!(python_reads(&project.path().join("o/kdb/gfx906_60.kdb"), GFX906), expected);

    // Whichever directory above the sources is given.
    let nearer = DIST.map(|arg| match arg {
        "MIOpen" => "MIOpen/src/kernels",
        "--out=o" => "--out=p",
        other => other,
    });
    project.run(&nearer).expect_code(0);
    assert!(project.tree("o") == project.tree("p"));

    // From a pipe too.
    let plan = |file: &'static str| {
        let plan = ["plan", "--source-dir", "MIOpen", "--target", "gfx906", "--keys", file];
        [&plan[..], &["--json", "-"]].concat()
    };
    let mut piped = project.command(&plan("-"));
    piped.stdin(std::fs::File::open(keys).unwrap());
    let piped = finish(piped).expect_code(0);
    assert_eq!(piped.stdout, project.run(&plan("keys.jsonl")).expect_code(0).stdout);
}

#[test]
fn refused_kernels_are_listed_and_others_built() {
    let project = project();
    let broken = ("ConvDirect.cl.o", " -DMLO_N=2 -mcpu=gfx906");
    let gone = ("Gone.cl.o", " -DX -mcpu=gfx906");
    let mut keys = ARGUMENTS.to_vec();
    keys.push(broken);
    project.write("keys.jsonl", &lines(&keys));
    let run = project.run(&DIST).expect_code(100);
    assert!(run.stderr.contains("`ConvDirect.cl.o -DMLO_N=2 -mcpu=gfx906`"), "{}", run.stderr);
    assert!(run.stderr.contains("use of undeclared identifier 'MLO_GRP'"), "{}", run.stderr);
    let kdb = project.path().join("o/kdb/gfx906_60.kdb");
    assert_eq!(python_reads(&kdb, GFX906).len(), ARGUMENTS.len());
    keys.push(gone);
    keys.push(("ConvDirect.cl.o", " -o x -mcpu=gfx906"));
    project.write("keys.jsonl", &lines(&keys));
    let run = project.run(&DIST).expect_code(100);
    let line = ARGUMENTS.len() + 2;
    let expected = format!("keys.jsonl:{line}: failed to find source `Gone.cl`");
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
    assert!(run.stderr.contains("failed to accept option `-o`"), "{}", run.stderr);
    assert_eq!(python_reads(&kdb, GFX906).len(), ARGUMENTS.len());
    assert!(run.stderr.contains("no package was made"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: see the reasons above"), "{}", run.stderr);
    // No compiler was asked, and no package is made.
    project.write("few.jsonl", &lines(&[ARGUMENTS[0], gone]));
    let build = ["build", "--keys", "few.jsonl", "--source-dir", "MIOpen", "--out", "b"];
    let few = project.run(&[&build[..], &["--target", "gfx906"]].concat()).expect_code(100).stderr;
    assert!(few.contains("failed to build 1 of 2 kernels\nhint: see the reasons"), "{few}");
    assert!(!few.contains("package"), "{few}");
    // What the build left does not become a package that looks whole.
    let package = ["package", "o/kdb/gfx906_60.kdb", "--out", "p", "--license", "MIT"];
    let run = project.run(&package).expect_code(100);
    assert!(run.stderr.contains("it lacks 3 kernels"), "{}", run.stderr);
    project.run(&[&DIST[..], &["--allow-partial"]].concat()).expect_code(0);
    let ledger = std::fs::read_to_string(project.path().join("o/kernels.jsonl")).unwrap();
    let lines = ledger.lines().map(|line| serde_json::from_str(line).unwrap());
    let absent: Vec<serde_json::Value> =
        lines.filter(|line: &serde_json::Value| line.get("absent").is_some()).collect();
    assert_eq!(absent.len(), 3, "{ledger}");
    let gone = absent.iter().find(|line| line["absent"] == "no-source").expect("listed");
    assert_eq!(gone["why"], "failed to find source `Gone.cl`");
    // The list of all wanted keys, each once for every target, is a list of keys.
    project.write("all.jsonl", &ledger.repeat(2));
    let again = ["build", "--keys", "all.jsonl", "--source-dir", "MIOpen", "--out", "again"];
    project.run(&[&again[..], &["--target", "gfx906_60"]].concat()).expect_code(100);
    assert!(project.text("again/kernels.jsonl") == ledger);
}

#[test]
fn a_source_that_cant_be_read_is_the_fault_of_its_key_alone() {
    let project = project();
    // It can be opened, and not be read.
    let bad = project.path().join("MIOpen/src/kernels/bad.s");
    std::os::unix::fs::symlink("/proc/self/mem", bad).unwrap();
    let bad = ("bad.s.o", " -mcpu=gfx906");
    project.write("keys.jsonl", &lines(&[bad, ("conv1x1.s.o", " -Wa,-defsym,n=4 -mcpu=gfx906")]));
    let run = project.run(&DIST).expect_code(100);
    assert!(run.stderr.contains("keys.jsonl:1: failed to read"), "{}", run.stderr);
    assert_eq!(python_reads(&project.path().join("o/kdb/gfx906_60.kdb"), GFX906).len(), 1);
}

#[test]
fn keys_of_other_devices_and_missing_package_metadata_are_warned_of() {
    let project = project();
    let other = ("ConvDirect.cl.o", " -DMLO_N=2 -DMLO_GRP=64 -mcpu=gfx908");
    project.write("keys.jsonl", &lines(&[ARGUMENTS[0], other]));
    let dist =
        ["dist", "--keys=keys.jsonl", "--source-dir=MIOpen", "--target=gfx906_60", "--out=o"];
    let run = project.run(&[&dist[..], &["--format=tar.gz"]].concat()).expect_code(0);
    assert!(run.stderr.contains("warning: keys.jsonl: keys for 1 other devices"), "{}", run.stderr);
    assert_eq!(python_reads(&project.path().join("o/kdb/gfx906_60.kdb"), GFX906).len(), 1);
    let lacks: Vec<&str> = run.stderr.lines().filter(|line| line.contains("lack ")).collect();
    let [line] = lacks[..] else { panic!("{}", run.stderr) };
    for option in ["--license", "--copyright", "--package-version", "--maintainer"] {
        assert!(line.contains(option), "{line}");
    }
}

#[test]
fn packages_have_version_and_licence_of_the_source_tree() {
    let project = project();
    project.write(
        "MIOpen/CMakeLists.txt",
        "project ( MIOpen C CXX )\nrocm_setup_version(VERSION 3.3.0)\n",
    );
    let head = "/* Copyright (c) 2021 Some Authors */\n/* SPDX-License-Identifier: ISC */\n";
    let source = project.text("MIOpen/src/kernels/ConvDirect.cl");
    project.write("MIOpen/src/kernels/ConvDirect.cl", &format!("{head}{source}"));
    project.write("keys.jsonl", &lines(&ARGUMENTS[..2]));
    let dist = |more: &[&str]| {
        let dist = ["dist", "--keys=keys.jsonl", "--source-dir=MIOpen", "--target=gfx906_60"];
        project.run(&[&dist[..], &["--format=deb", "--out=o"], more].concat()).expect_code(0)
    };
    let package = |version: &str| {
        let deb = format!("o/miopen-hip-gfx906-60kdb_{version}-1_all.deb");
        let control = tool("dpkg-deb", &["--field", &deb], project.path());
        let read = ["--fsys-tarfile", &deb];
        let files = tool("dpkg-deb", &read, project.path());
        (control, files)
    };

    let run = dist(&[]);
    assert!(!run.stderr.contains("--license") && !run.stderr.contains("--package-version"));
    let (control, files) = package("3.3.0");
    assert!(!control.contains("Homepage:"), "{control}");
    for line in ["Copyright: 2021 Some Authors", "License: ISC"] {
        assert!(files.contains(line), "{line}");
    }

    dist(&["--package-version=4", "--homepage=https://example.org/k", "--description=Own words."]);
    let (control, _) = package("4");
    assert!(control.contains("Homepage: https://example.org/k"), "{control}");
    assert!(control.contains("Own words."), "{control}");
}

/// The MIOpen whose sources these are says where it looks, and so does what is packaged later.
#[test]
fn packages_of_keys_are_installed_where_the_library_of_the_sources_looks() {
    let project = project();
    project.write("keys.jsonl", &lines(&ARGUMENTS[..1]));
    let more = ["--target=gfx906_60", "--license=MIT", "--format=tar.gz", "--out=o"];
    let dist = ["dist", "--keys=keys.jsonl", "--source-dir=MIOpen/src/kernels"];
    let dist = [&dist[..], &more].concat();
    let unknown = project.run(&dist).expect_code(0).stderr;
    assert!(unknown.contains("it is not known whether the MIOpen"), "{unknown}");
    project.write("MIOpen/src/kernels/miopen-prefix", "/opt/rocm-6.4.1\n");
    let known =
        "install into /opt/rocm-6.4.1/share/miopen/db, where the MIOpen that was asked looks";
    let made = project.run(&dist).expect_code(0).stderr;
    assert!(made.contains(known), "{made}");
    let kdb = "o/kdb/gfx906_60.kdb";
    let later = ["package", kdb, "--license=MIT", "--format=tar.gz", "--out=p"];
    let later = project.run(&later).expect_code(0).stderr;
    assert!(later.contains(known), "{later}");
    let prefix = project.run(&[&dist[..], &["--prefix=/srv"]].concat()).expect_code(0).stderr;
    assert!(prefix.contains("but the MIOpen that was asked looks in /opt/rocm-6.4.1/"), "{prefix}");
    // For PyTorch's, the default is a wheel.
    let torch = "/v/lib/python3.12/site-packages/torch";
    project.write("MIOpen/src/kernels/miopen-prefix", torch);
    project
        .run(&[&dist[..3], &["--target=gfx906_60", "--license=MIT", "--out=w"]].concat())
        .expect_code(0);
    let names: Vec<String> = project.tree("w").into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().any(|name| name.ends_with(".whl")), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with(".deb")), "{names:?}");
}

/// A kdb with kernels for gfx906 that are called by these numbers.
fn kdb(project: &Project, path: &str, numbers: std::ops::Range<u32>) {
    let key = |number| KernelKey::for_source("k.cl", &format!(" -DN={number}"), "gfx906");
    let path = project.path().join(path);
    write_kdb(&path, numbers.map(key).collect(), &code_object(0x2f, 1));
}

#[test]
fn a_kdb_that_would_hide_a_larger_one_is_warned_of() {
    let project = Project::new();
    kdb(&project, "installed/share/miopen/db/gfx906.kdb", 0..9);
    kdb(&project, "gfx906_60.kdb", 7..11);
    let prefix = project.path().join("installed").display().to_string();
    let package = |kdb: &str, prefix: &str, out: &str| {
        let args = ["package", kdb, "--layout", prefix, "--license", "MIT", "--format", "deb"];
        project.run(&[&args[..], &["--out", out]].concat()).expect_code(0).stderr
    };
    let stderr = package("gfx906_60.kdb", &prefix, "hides");
    assert!(
        stderr.contains("`gfx906_60.kdb` hides `") && stderr.contains("lacks 7 of its 9"),
        "{stderr}"
    );
    assert!(stderr.contains("build for gfx906 instead"), "{stderr}");
    let stderr = package("gfx906_60.kdb", "/no/such/prefix", "alone");
    assert!(!stderr.contains("hides"), "{stderr}");
    kdb(&project, "more/gfx906_60.kdb", 0..11);
    let stderr = package("more/gfx906_60.kdb", &prefix, "more");
    assert!(!stderr.contains("hides"), "{stderr}");
}

#[test]
fn leaving_out_existing_keys_warns_about_a_hidden_kdb() {
    let project = Project::new();
    project.write("src/k.cl", "kernel void k(global float* x) { *x = N; }\n");
    kdb(&project, "gfx906.kdb", 0..3);
    kdb(&project, "old/gfx906_60.kdb", 0..3);
    let lines = (2..5).map(|number| {
        format!("{{\"kernel_name\":\"k.cl.o\",\"kernel_args\":\" -DN={number} -mcpu=gfx906\"}}\n")
    });
    project.write("keys.jsonl", &lines.collect::<String>());
    let dist = |present: &str, target: &str, out: &str| {
        let args = ["dist", "--keys", "keys.jsonl", "--source-dir", "src", "--license", "MIT"];
        let more = ["--missing-from", present, "--target", target, "--format", "deb", "--out", out];
        project.run(&[&args[..], &more].concat()).expect_code(0).stderr
    };
    let stderr = dist("gfx906.kdb", "gfx906@60", "exact");
    assert!(stderr.contains("`gfx906_60.kdb` hides `gfx906.kdb`"), "{stderr}");
    assert!(stderr.contains("lacks 3 of its 3 kernels"), "{stderr}");
    let stderr = dist("old/gfx906_60.kdb", "gfx906@60", "same");
    assert!(stderr.contains("`gfx906_60.kdb` takes the place of `old/gfx906_60.kdb`"), "{stderr}");
    let stderr = dist("old/gfx906_60.kdb", "gfx906@64", "other");
    assert!(!stderr.contains("hides") && !stderr.contains("takes the place"), "{stderr}");
}

/// The directories above a source that was found by name have names of
/// gfxpack's own, which no source may meet.
#[test]
fn a_directory_that_is_not_there_is_not_found_by_a_source_found_by_name() {
    let project = Project::new();
    let ask = |name| format!("#if __has_include(\"{name}\")\n#error {name}\n#endif\n");
    let asks = ["../s/k.cl", "../../s/k.cl", "../../s/s/k.cl"].map(ask);
    project.write("src/k.cl", &(asks.concat() + "kernel void k(global float* x) { *x = N; }\n"));
    let line = "{\"kernel_name\":\"k.cl.o\",\"kernel_args\":\" -DN=1 -mcpu=gfx906\"}\n";
    project.write("keys.jsonl", line);
    let build = ["build", "--keys", "keys.jsonl", "--source-dir", "src", "--target", "gfx906"];
    project.run(&[&build[..], &["--out", "o"]].concat()).expect_code(0);
}

#[test]
fn keys_that_lists_have_in_common_are_built_once() {
    let project = project();
    project.write("keys.jsonl", &lines(&ARGUMENTS[..2]));
    project.write("more.jsonl", &lines(&ARGUMENTS[1..3]));
    project.run(&[&DIST[..], &["--keys", "more.jsonl"]].concat()).expect_code(0);
    assert_eq!(python_reads(&project.path().join("o/kdb/gfx906_60.kdb"), GFX906).len(), 3);
}
