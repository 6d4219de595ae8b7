//! Hits, misses, compilers and warnings, from C.

use std::path::Path;

use super::support::*;

const SYSTEM: u8 = 2;
const USER: u8 = 3;
const COMPILED: u8 = 4;
const NO_FILE: u8 = 0;
const NO_KERNEL: u8 = 1;

fn wide(machine: &Machine) -> std::path::PathBuf {
    machine.root.join("system/gfx906.kdb")
}

#[test]
fn a_hit_a_miss_and_a_compiled_kernel() {
    let machine = Machine::with_kdb();
    let (compiled, args_0, args_7) = (machine.object_file(7), args(0), args(7));
    let mut driver = machine.program("driver.c");
    driver.args(["get", NAME, &args_0, "get", NAME, &args_7]);
    driver.args(["compile", NAME, &args_7, &compiled, "compile", NAME, &args_7, "/none"]);
    let output = run(driver.args(["get", NAME, &args_7]));
    let misses = miss(SYSTEM, NO_KERNEL, &machine.kdb()) + &miss(SYSTEM, NO_FILE, &wide(&machine));
    let no_user = miss(USER, NO_FILE, &machine.ukdb());
    let expected = [
        there("get", SYSTEM, 0, Some(&machine.kdb())),
        nothing("get", 1) + &misses + &no_user,
        there("compile", COMPILED, 7, None) + &misses + &no_user,
        there("compile", USER, 7, Some(&machine.ukdb())) + &misses,
        there("get", USER, 7, Some(&machine.ukdb())) + &misses,
    ];
    assert_eq!(text(output.stdout), expected.concat());
    assert_eq!(text(output.stderr), "", "nothing is wrong");
}

#[test]
fn the_searched_files_are_listed_in_order() {
    let machine = Machine::new();
    let file = |layer: u8, path: &Path| format!("file layer={layer} {}\n", path.display());
    let system = file(SYSTEM, &machine.kdb()) + &file(SYSTEM, &wide(&machine));
    let user = file(USER, &machine.ukdb());
    let output = run(machine.program("driver.c").arg("files"));
    assert_eq!(text(output.stdout), format!("{system}{user}"));
    let output = run(machine.program("driver.c").args(["--user-first", "files"]));
    assert_eq!(text(output.stdout), format!("{user}{system}"));
}

const MISSING: &str = "MIOpen(HIP): Warning [SQLiteBase] Missing system database \
                       file:gfx906_60.kdb Performance may degrade\n\
                       hint: install the package ";

#[test]
fn a_missing_kdb_is_reported_once_with_the_exact_message() {
    let machine = Machine::new();
    let mut driver = machine.program("driver.c");
    let output = run(driver.args(["get", NAME, &args(0), "get", NAME, &args(1)]));
    let stderr = text(output.stderr);
    let rest = stderr.strip_prefix(MISSING).unwrap_or_else(|| panic!("{stderr:?}"));
    assert_eq!(rest.matches('\n').count(), 1, "one hint on a line of its own: {stderr:?}");
    assert!(rest.contains("gfx906") && rest.ends_with('\n'), "{stderr:?}");

    // The same text through the callback, and nothing on standard error.
    let mut driver = machine.program("driver.c");
    driver.arg("--callback").args(["get", NAME, &args(0), "get", NAME, &args(1)]);
    let output = run(&mut driver);
    assert_eq!(text(output.stderr), "");
    let printed = text(output.stdout);
    let head = format!("warning mine kind=0 file={}\n", machine.kdb().display());
    assert!(printed.starts_with(&(head.clone() + &stderr)), "{printed}");
    assert_eq!(printed.matches("warning ").count(), 1, "{printed}");
    assert_eq!(printed.matches(&nothing("get", 1)).count(), 2, "{printed}");
}

#[test]
fn an_error_of_the_callers_compiler_is_returned() {
    let machine = Machine::with_kdb();
    let (compiled, args_7) = (machine.object_file(7), args(7));
    let mut driver = machine.program("driver.c");
    for (code, message) in [("7", "-"), ("7", "no such header"), ("0", "-"), ("0", "no memory")] {
        driver.args(["fail", NAME, &args_7, code, message]);
    }
    // Nobody is left waiting for it.
    let output = run(driver.args(["compile", NAME, &args_7, &compiled]));
    let printed = text(output.stdout);
    let errors: Vec<_> = printed.lines().filter_map(|line| line.strip_prefix("error ")).collect();
    let expected =
        ["the compiler returned 7", "no such header", "the compiler gave no code object"]
            .iter()
            .chain(&["no memory"])
            .map(|why| format!("failed to compile `conv.cl.o`: {why}"));
    assert_eq!(errors, expected.collect::<Vec<_>>());
    assert_eq!(printed.matches(&nothing("fail", -4)).count(), 4, "{printed}");
    assert!(printed.contains(&there("compile", COMPILED, 7, None)), "{printed}");
}

#[test]
fn null_pointers_and_nonsense_are_errors_and_the_process_lives() {
    let machine = Machine::new();
    run(&mut machine.program("nulls.c"));
}

#[test]
fn devices_are_detected() {
    let machine = Machine::new();
    let sysfs = machine.root.join("sys");
    let node = sysfs.join("class/kfd/kfd/topology/nodes/1");
    std::fs::create_dir_all(&node).unwrap();
    std::fs::write(node.join("gpu_id"), "4660\n").unwrap();
    let properties = "simd_count 240\nsimd_per_cu 4\ngfx_target_version 90006\nvendor_id 4098\n\
                      device_id 26273\nlocation_id 768\ndomain 0\nnum_xcc 1\n";
    std::fs::write(node.join("properties"), properties).unwrap();
    let mut driver = machine.program("driver.c");
    let output = run(driver.args(["detect", sysfs.to_str().unwrap(), ""]));
    let printed = text(output.stdout);
    assert!(printed.starts_with("detect status=0 count=1 hip=-\ndevice gfx906"), "{printed}");
    assert!(printed.contains("@60 units=60 source=3 "), "{printed}");

    let mut driver = machine.program("driver.c");
    let output = run(driver.args(["detect", "/nonexistent", ""]));
    assert!(text(output.stdout).starts_with("detect status=0 count=0 hip=-\n"));

    let mut driver = machine.program("driver.c");
    let printed = text(run(driver.args(["detect", "/nonexistent", "/no/library.so"])).stdout);
    assert!(printed.contains("note ") && printed.contains("/no/library.so"), "{printed}");
}

#[test]
fn the_examples_find_a_kernel() {
    let machine = Machine::with_kdb();
    let c = machine.compile(&crate_dir().join("examples/lookup.c"));
    for program in [c, built().join("examples/lookup")] {
        check_example(&machine, &program);
        std::fs::remove_dir_all(machine.user()).unwrap();
    }
    let short = machine.compile(&crate_dir().join("examples/find.c"));
    for (number, printed, status) in [(0, "364 bytes\n", 0), (8, "0 bytes\n", 1)] {
        let mut find = machine.environment(command(&short));
        let output = find.args([NAME, &args(number), "gfx906@60"]).output().unwrap();
        assert_eq!((text(output.stdout).as_str(), output.status.code()), (printed, Some(status)));
    }
}

#[track_caller]
fn check_example(machine: &Machine, program: &Path) {
    let example = |arguments: &[&str]| {
        let mut example = machine.environment(command(program));
        example.args(arguments).output().unwrap()
    };
    let (args_0, args_7, compiled) = (args(0), args(7), machine.object_file(7));
    let first = |arguments: &[&str]| {
        let output = example(arguments);
        assert!(output.status.success(), "{output:?}");
        let printed = text(output.stdout);
        printed.lines().next().unwrap_or_default().to_owned()
    };
    let line = first(&[NAME, &args_0, "gfx906@60"]);
    assert!(line.starts_with("364 bytes ") && line.contains("installed"), "{line}");
    let line = first(&[NAME, &args_7, "gfx906@60", &compiled]);
    assert!(line.starts_with("371 bytes ") && line.contains("compile"), "{line}");
    let line = first(&[NAME, &args_7, "gfx906@60"]);
    assert!(line.starts_with("371 bytes ") && line.contains("user"), "{line}");
    let output = example(&[NAME, &args(8), "gfx906@60"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(output.stderr).contains("there is no compiler in this example"));
    assert!(!example(&[NAME]).status.success());
    assert!(!example(&[NAME, "x", "voodoo5"]).status.success());
}
