//! Every gfx target in every language, with a distribution's packages: newer processors with a
//! newer clang, and with constants that its device libraries lack.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::project::{Project, Run, finish, tool};
use gfxpack_model::{Target, TargetId, processors};
use serde_json::Value;

/// The processors that Debian 12's own hipcc builds for.
const OLDER: &[&str] = &[
    "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c", "gfx1010",
    "gfx1011", "gfx1012", "gfx1013", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034",
    "gfx1035", "gfx1036",
];
/// Those that take clang 19 and a constant there.
const NEWER: &[&str] = &[
    "gfx942", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152",
    "gfx1200", "gfx1201",
];
/// Those with settings for XNACK and SRAM ECC.
const WITH_FEATURES: &[&str] = &["gfx906", "gfx908", "gfx90a", "gfx942"];

/// One key for each language; the small library has five.
const MANIFEST: &str = r#"
format = 1

[library]
name = "one-of-each"
version = "1.0"
license = "MIT"
copyright = "2026 Somebody"
maintainer = "Somebody <somebody@example.org>"
include-dirs = ["include"]

[[kernel]]
source = "src/add.cpp"
[[kernel.variant]]
defines = { TYPE = ["float"] }

[[kernel]]
source = "src/scale.cl"
options = "-DGROUP=64"
[[kernel.variant]]
options = ["-DFACTOR=2"]

[[kernel]]
source = "src/fill.s"
[[kernel.variant]]
defines = { VALUE = 7 }
"#;

/// Kernels whose code shows the ISA's number: as a constant, and in what the
/// device libraries choose by it.
const BY_ISA_HIP: &str = r#"
#include <hip/hip_runtime.h>
typedef _Float16 half2_t __attribute__((ext_vector_type(2)));
extern "C" __device__ float __ockl_fdot2(half2_t, half2_t, float, bool);
extern "C" __device__ float __ockl_wfred_add_f32(float);
extern "C" __global__ void by_isa(float* x, const half2_t* y)
{
    const int i = threadIdx.x;
    x[i] = __ockl_wfred_add_f32(__ockl_fdot2(y[i], y[i + 64], x[i], false)) + sinf(x[i]);
}
"#;
const BY_ISA_OPENCL: &str = r#"
extern __constant int __oclc_ISA_version;
__kernel void by_isa(__global float* x, __global int* isa)
{
    const int i = get_global_id(0);
    isa[i] = __oclc_ISA_version;
    x[i] = exp(x[i]) + work_group_reduce_add(x[i]);
}
"#;

fn one_of_each() -> Project {
    let project = Project::small();
    project.write("kernels.toml", MANIFEST);
    project
}

fn by_isa() -> Project {
    let project = Project::new();
    let keys = MANIFEST.find("[[kernel]]").expect("kernels");
    let head = MANIFEST[..keys].replace("include-dirs = [\"include\"]", "");
    let kernels = ["by_isa.cpp", "by_isa.cl"].map(|source| {
        format!("[[kernel]]\nsource = \"{source}\"\n[[kernel.variant]]\ndefines = {{ A = 1 }}\n")
    });
    project.write("kernels.toml", &format!("{head}\n{}", kernels.concat()));
    project.write("by_isa.cpp", BY_ISA_HIP);
    project.write("by_isa.cl", BY_ISA_OPENCL);
    project
}

fn build(project: &Project, out: &str, targets: &str, more: &[&str]) -> Run {
    let arguments = ["build", "--manifest", "kernels.toml", "--target", targets, "--json", "-"];
    project.run(&[&arguments[..], &["--out", out], more].concat())
}

/// The clang that knows the newer targets.
fn newer_clang() -> &'static str {
    let found = ["clang-19", "clang-20", "clang-21", "clang"].into_iter().find(|clang| {
        let asked = crate::support::project::command(clang)
            .args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus"])
            .output();
        asked.is_ok_and(|output| {
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).contains("gfx1201")
        })
    });
    found.expect("no clang knows gfx1201: `cargo xtask test --setup` installs one")
}

fn manifest(project: &Project, out: &str) -> BTreeMap<String, Value> {
    let text = fs::read(project.path().join(out).join("manifest.json")).expect("written");
    let manifest: Value = serde_json::from_slice(&text).expect("JSON");
    let targets = manifest["targets"].as_array().expect("a list").iter();
    targets
        .map(|target| (target["target"].as_str().expect("a name").to_owned(), target.clone()))
        .collect()
}

/// The `e_flags` of each object by its kernel's name, as Python reads them.
fn flags(kdb: &Path) -> BTreeMap<String, u32> {
    const SCRIPT: &str = r#"
import bz2, sqlite3, struct, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
for name, blob, size in db.execute("select kernel_name, kernel_blob, uncompressed_size from kern_db"):
    code = bz2.decompress(blob) if size else blob
    # OS ABI "AMDGPU HSA", code object version 4 or later: else the flags mean something else.
    assert code[:4] == b"\x7fELF" and code[7] == 64 and code[8] >= 2, name
    print(name, struct.unpack_from("<I", code, 48)[0])
"#;
    let printed =
        tool("python3", &["-c", SCRIPT, kdb.to_str().expect("a plain path")], Path::new("/"));
    let line = |line: &str| {
        let (name, flags) = line.split_once(' ').expect("two words");
        (name.to_owned(), flags.parse().expect("a number"))
    };
    printed.lines().map(line).collect()
}

/// Source: LLVM, `AMDGPUUsage`, "ELF header", `e_flags` for V4 on.
fn expected_flags(id: &TargetId, assembly: bool) -> u32 {
    let processor = processors::by_name(id.processor()).expect("a known one");
    let setting = |known: bool, value: Option<bool>| match value {
        _ if !known => 0,
        None => 1,
        Some(false) => 2,
        Some(true) => 3,
    };
    // A kdb without `_xnack` in its name serves devices with XNACK off.
    let xnack = if assembly { id.xnack().or(Some(false)) } else { id.xnack() };
    processor.mach
        | setting(processor.xnack, xnack) << 8
        | setting(processor.sramecc, id.sramecc()) << 10
}

#[track_caller]
fn check_flags(project: &Project, out: &str, targets: &[String]) {
    for target in targets {
        let target: Target = target.parse().expect("a target");
        let found = flags(&project.path().join(out).join("kdb").join(target.kdb_file_name()));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["add.cpp.o", "fill.s.o", "scale.cl.o"], "{target}");
        for (name, flags) in found {
            let expected = expected_flags(target.id(), name == "fill.s.o");
            assert_eq!(flags, expected, "{name} for {target}: {flags:#x}, not {expected:#x}");
        }
    }
}

#[test]
fn every_target_builds_in_every_language() {
    let project = one_of_each();
    project.add_hips_header();
    let plain: Vec<String> = OLDER.iter().chain(NEWER).map(|&name| name.to_owned()).collect();
    let with = |features: &str| -> Vec<String> {
        WITH_FEATURES.iter().map(|name| format!("{name}{features}")).collect()
    };
    // Both settings of each feature.
    let all = [plain, with(":sramecc-:xnack+")].concat();
    build(&project, "o", &all.join(","), &[]).expect_code(0);
    check_flags(&project, "o", &all);
    let others = with(":sramecc+:xnack-");
    build(&project, "p", &others.join(","), &[]).expect_code(0);
    check_flags(&project, "p", &others);

    // What was supplied is what the libraries of that compiler lack.
    for (name, target) in manifest(&project, "o") {
        let gfx = target["gfx"].as_str().expect("a name");
        let supplied: Vec<&str> = target["compiler"]["supplied"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|constant| constant["file"].as_str().expect("a name"))
            .collect();
        let own = format!("oclc_isa_version_{}.bc", gfx.trim_start_matches("gfx"));
        assert!(supplied.is_empty() || supplied == [own.as_str()], "{name}: {supplied:?}");
        assert!(supplied.is_empty() || NEWER.contains(&gfx), "{name}: {supplied:?}");
    }
}

/// Links to the installed device libraries, without some of them.
fn device_libs_without(project: &Project, installed: &Path, names: &[&str]) -> PathBuf {
    let dir = project.path().join("bitcode");
    fs::create_dir(&dir).expect("made");
    for entry in fs::read_dir(installed).expect("readable").flatten() {
        let name = entry.file_name();
        if !names.iter().any(|without| name == *without) {
            std::os::unix::fs::symlink(entry.path(), dir.join(name)).expect("linked");
        }
    }
    dir
}

fn installed_libs(project: &Project, clang: &str) -> PathBuf {
    let run = project.run(&["targets", "--toolchains", "--clang", clang, "--json", "-"]);
    let listed = run.expect_code(0).of_type("toolchain");
    listed[0]["device_libs"].as_str().expect("a directory").into()
}

#[test]
fn supplied_constants_give_the_bytes_of_the_installed_ones() {
    let clang = newer_clang();
    let project = by_isa();
    let installed = installed_libs(&project, clang);
    let names = ["90a", "1030"].map(|isa| format!("oclc_isa_version_{isa}.bc"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in &names {
        assert!(installed.join(name).is_file(), "{name} is what the supplied one is held against");
    }
    let targets = "gfx90a,gfx1030";
    build(&project, "installed", targets, &["--clang", clang]).expect_code(0);
    for target in manifest(&project, "installed").values() {
        assert!(target["compiler"]["supplied"].is_null(), "nothing is lacking");
    }

    let lacking = device_libs_without(&project, &installed, &names);
    let lacking = lacking.to_str().expect("a plain path");
    let with = ["--clang", clang, "--device-libs", lacking];
    let run = build(&project, "supplied", targets, &with).expect_code(0);
    assert_eq!(run.of_type("build-finished")[0]["cached"], 0, "another toolchain");
    for (gfx, target) in manifest(&project, "supplied") {
        let constants = target["compiler"]["supplied"].as_array().expect("recorded");
        let own = format!("oclc_isa_version_{}.bc", gfx.trim_start_matches("gfx"));
        assert_eq!(constants.len(), 1);
        assert_eq!(constants[0]["file"], own.as_str());
        assert_eq!(constants[0]["made_by"], target["compiler"]["identity"]);
    }
    assert!(project.tree("installed/kdb") == project.tree("supplied/kdb"), "the same objects");

    // A damaged constant is noticed before it is used, and made again. Beside
    // it are links, some to a file of its name: what they lead to is the system's.
    let supplied = project.tree("cache/device-libs").into_iter();
    let kept =
        |(file, bytes)| (project.path().join("cache/device-libs").join::<String>(file), bytes);
    let is_own = |file: &Path| file.ends_with("oclc_isa_version_90a.bc") && !file.is_symlink();
    let (file, mut bytes) = supplied.map(kept).find(|(file, _)| is_own(file)).expect("kept");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&file, &bytes).expect("written");
    fs::remove_dir_all(project.path().join("cache/v1")).expect("removed");
    build(&project, "again", targets, &with).expect_code(0);
    assert!(project.tree("installed/kdb") == project.tree("again/kdb"), "the same objects");
}

#[test]
fn each_target_is_built_by_the_first_toolchain_that_can() {
    let clang = newer_clang();
    let project = one_of_each();
    // hipcc knows gfx906 itself, and is named first.
    let with = ["--hipcc", "hipcc", "--clang", clang];
    build(&project, "o", "gfx906,gfx1201", &with).expect_code(0);
    let made = manifest(&project, "o");
    let identity = |gfx: &str| made[gfx]["compiler"]["identity"].as_str().expect("said").to_owned();
    assert!(identity("gfx906").starts_with("hipcc "), "{}", identity("gfx906"));
    let plan = project.run(&["plan", "--manifest", "kernels.toml", "--target", "gfx1201"]);
    let plan = plan.expect_code(0).stdout;
    assert!(plan.contains(&identity("gfx1201")), "{plan}");

    // Elsewhere, by another cache: the same bytes and the same identity.
    let other = one_of_each();
    build(&other, "o", "gfx1201", &["--clang", clang]).expect_code(0);
    let elsewhere = &manifest(&other, "o")["gfx1201"];
    if identity("gfx1201").starts_with("HIP ") {
        assert_eq!(elsewhere["plan"], made["gfx1201"]["plan"]);
        assert_eq!(elsewhere["kdb"], made["gfx1201"]["kdb"]);
    }
}

#[test]
fn listing_toolchains_leaves_no_files() {
    let project = one_of_each();
    let plan = ["plan", "--manifest", "kernels.toml", "--target", "gfx1201", "--commands"];
    let run = project.run(&[&plan[..], &["--clang", newer_clang()]].concat());
    assert!(run.expect_code(0).stdout.contains("--offload-arch=gfx1201"));
    assert!(!project.path().join("cache").exists());
}

#[test]
fn toolchains_are_listed_with_their_targets() {
    let project = Project::new();
    let run = project.run(&["targets", "--toolchains", "--json", "-"]).expect_code(0);
    let listed = run.of_type("toolchain");
    let builds = |toolchain: &Value, language: &str, gfx: &str| {
        let processors = toolchain["builds"][language].as_array().expect("a list").clone();
        processors.into_iter().find(|processor| processor["gfx"] == gfx)
    };
    for language in ["hip", "opencl-c", "assembly"] {
        for gfx in OLDER.iter().chain(NEWER) {
            let found = listed.iter().any(|toolchain| builds(toolchain, language, gfx).is_some());
            assert!(found, "nothing builds {language} for {gfx}:\n{}", run.stdout);
        }
    }
    for toolchain in &listed {
        let libs = Path::new(toolchain["device_libs"].as_str().expect("a directory"));
        let Some(own) = builds(toolchain, "hip", "gfx1201") else { continue };
        let installed = libs.join("oclc_isa_version_1201.bc").is_file();
        assert_eq!(own["supplied"], !installed, "{toolchain}");
    }
    let human = project.run(&["targets", "--toolchains"]).expect_code(0).stdout;
    assert!(human.contains("HIP headers") && human.contains("gfx1201"), "{human}");
    let targets = project.run(&["targets", "--buildable"]).expect_code(0).stdout;
    assert!(targets.contains("gfx1201") && !targets.contains("gfx9999"), "{targets}");
}

#[test]
fn a_target_that_no_toolchain_builds_is_reported_with_a_package_that_does() {
    let project = one_of_each();
    let with = |target: &str, more: &[&str], expected: &[&str]| {
        let run = build(&project, "o", target, more).expect_code(2);
        for text in expected {
            assert!(run.stdout.contains(text), "`{text}` is not in:\n{}", run.stdout);
        }
    };
    let stand_in = "#!/bin/sh\n# A clang of long ago.\nexec clang-15 \"$@\"\n";
    let old = project.write("bin/clang", stand_in);
    fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    with(
        "gfx942",
        &["--clang", "bin/clang"],
        &["does not know it", "apt-get install clang-19 lld-19", "leave out the options"],
    );
    with("gfx1153", &["--clang", "bin/clang"], &["ROCm 6.4", "newer suite"]);
    // Headers and libraries of another release than the compiler's.
    let installed = installed_libs(&project, newer_clang());
    let lacking = device_libs_without(&project, &installed, &["ocml.bc"]);
    let lacking = lacking.to_str().expect("a plain path");
    with(
        "gfx906",
        &["--clang", newer_clang(), "--device-libs", lacking],
        &["does not go with its headers and libraries", "error:"],
    );
}

#[test]
fn native_stands_for_the_gpus_of_this_machine() {
    let project = one_of_each();
    let plan = |device: &[(&str, &str)]| {
        let mut command = project.command(&["plan", "--manifest", "kernels.toml"]);
        command.args(["--target", "native"]).envs(device.iter().copied());
        finish(command)
    };
    let planned = plan(&[("MIOPEN_DEVICE_ARCH", "gfx90a:xnack+"), ("MIOPEN_DEVICE_CU", "104")]);
    let planned = planned.expect_code(0).stdout;
    assert!(planned.contains("gfx90a_xnack68.kdb"), "{planned}");
    // Test machines have no GPU.
    let none = plan(&[]);
    if none.code != Some(0) {
        assert!(none.expect_code(2).stderr.contains("no AMD GPU was found in this machine"));
    }
}
