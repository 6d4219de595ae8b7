//! From the HIP runtime library to the warning for its device, from C: a gfx906 and a gfx90a.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::project::workspace;

use super::support::*;

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
    cc.arg(workspace().join("tests/tests/it/support/hip.c"));
    run(cc.arg("-o").arg(directory.join("libamdhip64.so.6")));
}

/// Has C look two kernels up for what that library shows.
fn look_up(machine: &Machine, defines: &[&str]) -> Output {
    let hip = machine.root.join("hip");
    stand_in(&hip, defines);
    let paths = std::env::join_paths([hip, machine.libdir()]).unwrap();
    let mut program = machine.program("device.c");
    program.env("LD_LIBRARY_PATH", paths);
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
        let output = look_up(&Machine::new(), &defines);
        assert_eq!(text(output.stderr), expected);
        let miss = format!("{target} status=1 layer=0\n");
        assert_eq!(text(output.stdout), format!("devices=1\n{miss}{miss}"));
    }
}

#[test]
fn the_devices_kdb_is_found() {
    let output = look_up(&Machine::with_kdb(), &GFX906);
    assert_eq!(text(output.stderr), "");
    let hit = "gfx906:sramecc+:xnack-@60 status=0 layer=2\n";
    assert_eq!(text(output.stdout), format!("devices=1\n{hit}{hit}"));
}
