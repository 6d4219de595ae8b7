//! From the HIP runtime library to the warning for its device, from C: a gfx906, a gfx90a, no
//! device, and no library.

use std::fs;
use std::path::Path;
use std::process::Output;

use gfxpack_tests::project::workspace;

use crate::support::*;

/// A stand-in for HIP 6 with these definitions, for the loader to find before
/// any that is installed; files that are no libraries hide the others.
fn stand_in(directory: &Path, defines: &[&str]) {
    fs::create_dir_all(directory).unwrap();
    for release in [5, 7] {
        let name = format!("libamdhip64.so.{release}");
        fs::write(directory.join(name), "no library\n").unwrap();
    }
    let mut cc = command("cc");
    cc.args(["-std=gnu11", "-w", "-shared", "-fPIC", "-DRELEASE=6"]);
    cc.args(defines.iter().map(|define| format!("-D{define}")));
    cc.arg(workspace().join("tests/stand-in/hip.c"));
    run(cc.arg("-o").arg(directory.join("libamdhip64.so.6")));
}

/// Has C look two kernels up for what that library shows.
fn look_up(machine: &Machine, defines: &[&str], variables: &[(&str, &str)]) -> Output {
    let hip = machine.root.join("hip");
    stand_in(&hip, defines);
    let paths = std::env::join_paths([hip, machine.libdir()]).unwrap();
    let mut program = machine.program("device.c");
    program.env("LD_LIBRARY_PATH", paths).envs(variables.iter().copied());
    run(program.args([NAME, &args(0)]))
}

const GFX906: [&str; 2] = ["ARCH=\"gfx906:sramecc+:xnack-\"", "COMPUTE_UNITS=60"];
const GFX90A: [&str; 2] = ["ARCH=\"gfx90a:sramecc+:xnack-\"", "COMPUTE_UNITS=104"];

const NO_GFX906: &str = "MIOpen(HIP): Warning [SQLiteBase] Missing system database \
    file:gfx906_60.kdb Performance may degrade\n\
    hint: install the package miopen-hip-gfx906-60kdb (or miopen-hip-gfx906kdb for all gfx906 \
    devices)\n";
const NO_GFX90A: &str = "MIOpen(HIP): Warning [SQLiteBase] Missing system database \
    file:gfx90a68.kdb Performance may degrade\n\
    hint: install the package miopen-hip-gfx90a-104kdb (or miopen-hip-gfx90akdb for all gfx90a \
    devices)\n";

#[test]
fn a_missing_kdb_is_named_after_the_device_to_the_letter() {
    for (defines, target, expected) in [
        (GFX906, "gfx906:sramecc+:xnack-@60", NO_GFX906),
        (GFX90A, "gfx90a:sramecc+:xnack-@104", NO_GFX90A),
    ] {
        let output = look_up(&Machine::new(), &defines, &[]);
        assert_eq!(text(output.stderr), expected);
        let miss = format!("{target} status=1 layer=0\n");
        assert_eq!(text(output.stdout), format!("devices=1\n{miss}{miss}"));
    }
}

#[test]
fn the_devices_kdb_is_found() {
    let output = look_up(&Machine::with_kdb(), &GFX906, &[]);
    assert_eq!(text(output.stderr), "");
    let hit = "gfx906:sramecc+:xnack-@60 status=0 layer=2\n";
    assert_eq!(text(output.stdout), format!("devices=1\n{hit}{hit}"));
}

#[test]
fn no_device_is_an_answer_and_no_warning() {
    // hipErrorNoDevice, hipErrorInvalidDevice, and success with a count of none.
    for code in ["COUNT_CODE=100", "COUNT_CODE=101", "COUNT_CODE=0"] {
        let machine = Machine::new();
        let output = look_up(&machine, &["DEVICES=0", code], &[]);
        assert_eq!(text(output.stderr), "", "{code}");
        let printed = text(output.stdout);
        assert!(printed.starts_with("devices=0\nnote libamdhip64.so.6 sees no device\n"));
        // Unless the user names one.
        let named = [("MIOPEN_DEVICE_ARCH", "gfx90a"), ("MIOPEN_DEVICE_CU", "104")];
        let output = look_up(&machine, &["DEVICES=0", code], &named);
        assert_eq!(text(output.stderr), NO_GFX90A, "{code}");
    }
}

/// In a root directory that holds the program, the C library, what both are
/// linked with, and no more.
#[test]
fn no_library_at_all_is_an_answer_and_no_warning() {
    let machine = Machine::new();
    let program = machine.compile(&c_source("device.c"));
    let root = machine.root.join("root");
    let mut linked = command("ldd");
    let linked = text(run(linked.arg(&program).env("LD_LIBRARY_PATH", machine.libdir())).stdout);
    let files = linked.split_whitespace().map(Path::new).filter(|path| path.is_absolute());
    for from in files {
        let to = root.join(from.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
    fs::copy(&program, root.join("device")).unwrap();
    let run_with = |variables: &[(&str, &str)]| {
        let mut enter = command("unshare");
        enter.arg("--map-root-user").arg("--root").arg(&root);
        let mut enter = machine.environment(enter);
        enter.envs(variables.iter().copied());
        run(enter.args(["/device", NAME, &args(0)]))
    };
    let output = run_with(&[]);
    assert_eq!(text(output.stderr), "");
    let printed = text(output.stdout);
    let none = "devices=0\nnote no HIP runtime library is installed (tried libamdhip64.so.7, ";
    assert!(printed.starts_with(none), "{printed}");
    let output = run_with(&[("MIOPEN_DEVICE_ARCH", "gfx906"), ("MIOPEN_DEVICE_CU", "60")]);
    assert_eq!(text(output.stderr), NO_GFX906);
}
