//! `gfxpack detect` and the runtime's HIP loader with stand-in HIP libraries: devices of several
//! releases, no device, no library, and libraries that return wrong data.

use std::fs;
use std::path::Path;

use crate::support::hip_stand_in::{HipStandIn, check_layout};
use crate::support::project::{Project, Run, binary, command, finish, tool};
use gfxpack_runtime::device::{Detection, HipLibrary, Inputs, detect};
use gfxpack_runtime::hip::{Hip, HipError};

/// Runs `gfxpack detect` with the library where the loader looks first, and a
/// sysfs without devices.
fn run(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    fs::create_dir_all(project.path().join("sys")).unwrap();
    let mut all = vec!["detect", "--sysfs", "sys"];
    all.extend(arguments);
    let mut command = project.command(&all);
    for name in ["MIOPEN_DEVICE_ARCH", "MIOPEN_DEVICE_CU", "HSA_OVERRIDE_GFX_VERSION", "HSA_XNACK"]
    {
        command.env_remove(name);
    }
    command.env("LD_LIBRARY_PATH", project.path().join("hip"));
    command.envs(variables.iter().copied());
    let run = finish(command);
    let has_device = !run.stderr.contains("failed to find an AMD GPU");
    run.expect_code(if has_device { 0 } else { 3 })
}

fn with(library: &HipStandIn) -> Project {
    let project = Project::new();
    library.build(&project.path().join("hip"));
    project
}

#[test]
fn the_stand_in_has_the_layout_of_hip() {
    check_layout();
}

#[test]
fn a_gfx906_with_60_compute_units() {
    let project = with(&HipStandIn::gfx906());
    let human = run(&project, &[], &[]);
    assert_eq!(
        human.stdout,
        "gfx906:sramecc+:xnack-@60  gfx906_60.kdb gfx906.kdb  Stand-in, 0000:03:00.0 (HIP runtime)\n"
    );
    assert_eq!(human.stderr, "");
    let both = run(&project, &["--packages=both"], &[]);
    assert_eq!(both.stdout, "miopen-hip-gfx906-60kdb\nmiopen-hip-gfx906kdb\n");
    let exact = run(&project, &["--packages=exact", "--name-template", "k-{gfx}"], &[]);
    assert_eq!(exact.stdout, "k-gfx906-60\n");
    let wide = run(&project, &["--packages=device-wide"], &[]);
    assert_eq!(wide.stdout, "miopen-hip-gfx906kdb\n");
}

#[test]
fn a_gfx90a_with_104_compute_units() {
    let project = with(&HipStandIn::gfx90a());
    let devices = run(&project, &["--json", "-"], &[]).of_type("device");
    assert_eq!(devices.len(), 1);
    let device = &devices[0];
    assert_eq!(device["target"], "gfx90a:sramecc+:xnack-@104");
    assert_eq!(device["gfx"], "gfx90a");
    assert_eq!(device["compute_units"], 104);
    assert_eq!(device["source"], "hip");
    assert_eq!(device["kdbs"], serde_json::json!(["gfx90a68.kdb", "gfx90a.kdb"]));
    let packages = serde_json::json!(["miopen-hip-gfx90a-104kdb", "miopen-hip-gfx90akdb"]);
    assert_eq!(device["packages"], packages);
}

#[test]
fn xnack_is_part_of_the_names_if_it_is_on() {
    let project = with(&HipStandIn::new(6, "gfx90a:sramecc+:xnack+", 104));
    let packages = run(&project, &["--packages=both"], &[]).stdout;
    assert_eq!(packages, "miopen-hip-gfx90a-xnack-104kdb\nmiopen-hip-gfx90a-xnackkdb\n");
}

#[test]
fn every_release_of_hip_is_read() {
    for release in [5, 6, 7] {
        let project = with(&HipStandIn::new(release, "gfx1030", 40).with("DEVICES=2"));
        let detected = run(&project, &["--verbose"], &[]);
        assert_eq!(
            detected.stdout.matches("gfx1030@40 ").count(),
            2,
            "{release}: {}",
            detected.stdout
        );
        assert!(detected.stdout.contains("0000:04:00.0"), "{}", detected.stdout);
        let library = format!("libamdhip64.so.{release} ({release}.3.0)");
        assert!(detected.stderr.contains(&library), "{}", detected.stderr);
        let packages = run(&project, &["--packages=exact"], &[]).stdout;
        assert_eq!(packages, "miopen-hip-gfx1030-40kdb\n", "two equal devices, one package");
    }
}

#[test]
fn no_device_is_an_answer() {
    // hipErrorNoDevice, hipErrorInvalidDevice, and success with a count of none.
    for code in [100, 101, 0] {
        let project = with(&HipStandIn::without_device().with(&format!("COUNT_CODE={code}")));
        for arguments in [&[][..], &["--packages"]] {
            let detected = run(&project, arguments, &[]);
            assert_eq!(detected.stdout, "");
            assert!(
                detected.stderr.contains("libamdhip64.so.6 sees no device"),
                "{}",
                detected.stderr
            );
            assert_eq!(detected.code, Some(3), "{}", detected.stderr);
        }
    }
}

/// Package managers that know packages of these names.
fn with_apt(project: &Project, known: &str) -> String {
    let script = format!(
        "#!/bin/sh\nfor name in {known}; do\n  case \" $* \" in *\" $name \"*) exit 0;; esac\ndone\necho 'E: No packages found' >&2\nexit 100\n"
    );
    for (name, script) in [("apt-cache", script.as_str()), ("apt-get", "#!/bin/sh\n")] {
        let path = project.write(&format!("apt/{name}"), script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path, mode).unwrap();
    }
    format!("{}:/usr/bin:/bin", project.path().join("apt").display())
}

#[test]
fn one_package_is_named_for_each_gpu() {
    let project = with(&HipStandIn::gfx906());
    for (known, expected) in [
        ("miopen-hip-gfx906-60kdb miopen-hip-gfx906kdb", "miopen-hip-gfx906-60kdb\n"),
        ("miopen-hip-gfx906kdb miopen-hip-gfx906-64kdb", "miopen-hip-gfx906kdb\n"),
        ("", "miopen-hip-gfx906kdb\n"),
    ] {
        let path = with_apt(&project, known);
        assert_eq!(run(&project, &["--packages"], &[("PATH", &path)]).stdout, expected, "{known}");
    }
}

/// In a root directory that holds gfxpack, what it is linked with, and no
/// more: no HIP library anywhere, and no sysfs either.
#[test]
fn no_library_at_all_is_an_answer() {
    let root = tempfile::tempdir().unwrap();
    let copy = |from: &Path| {
        let to = root.path().join(from.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        // In another process: one started meanwhile would hold it open, so that it can't be started.
        tool("cp", &[from.to_str().unwrap(), to.to_str().unwrap()], Path::new("/"));
    };
    let linked = tool("ldd", &[binary().to_str().unwrap()], Path::new("/"));
    linked.split_whitespace().map(Path::new).filter(|path| path.is_absolute()).for_each(copy);
    tool("cp", &[binary().to_str().unwrap(), root.path().to_str().unwrap()], Path::new("/"));

    let mut detect = command("unshare");
    detect.arg("--map-root-user").arg("--root").arg(root.path()).args(["/gfxpack", "detect"]);
    let detected = finish(detect).expect_code(3);
    assert_eq!(detected.stdout, "");
    assert!(detected.stderr.contains("no HIP runtime library is installed"), "{}", detected.stderr);
    assert!(detected.stderr.contains("no KFD topology"), "{}", detected.stderr);
    assert!(detected.stderr.contains("failed to find an AMD GPU"), "{}", detected.stderr);
}

#[test]
fn the_kernel_driver_answers_where_hip_does_not() {
    let project = with(&HipStandIn::without_device());
    project.write(
        "sys/class/kfd/kfd/topology/nodes/1/properties",
        "simd_count 240\nsimd_per_cu 4\ngfx_target_version 90006\n",
    );
    let stdout = run(&project, &[], &[]).stdout;
    assert_eq!(stdout, "gfx906@60  gfx906_60.kdb gfx906.kdb  (kernel driver)\n");

    project.write(
        "sys/class/kfd/kfd/topology/nodes/2/properties",
        "simd_count 416\nsimd_per_cu 4\ngfx_target_version 90010\n",
    );
    let xnack = run(&project, &["--packages=exact"], &[("HSA_XNACK", "1")]).stdout;
    assert_eq!(xnack, "miopen-hip-gfx906-xnack-60kdb\nmiopen-hip-gfx90a-xnack-104kdb\n");

    let project = with(&HipStandIn::gfx90a());
    project.write("sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 4\n");
    let detected = run(&project, &["--no-hip"], &[]);
    assert_eq!((detected.stdout.as_str(), detected.code), ("", Some(3)), "HIP was not asked");
}

/// Detection with that library and nothing else, in this process.
fn detect_with(library: &HipStandIn) -> Detection {
    let directory = tempfile::tempdir().unwrap();
    let path = library.build(directory.path());
    let sysfs = directory.path().join("sys");
    detect(&Inputs { hip: HipLibrary::File(path), sysfs, ..Inputs::default() })
}

#[test]
fn libraries_with_wrong_data_are_reported_without_a_crash() {
    let long = format!("ARCH=\"{}\"", "x".repeat(256));
    for (define, expected) in [
        ("COUNT_CODE=3", "`hipGetDeviceCount`"),
        ("DEVICES=2000000", "2000000 devices"),
        ("COUNT_CODE=0 -DDEVICES=-1", "-1 devices"),
        ("PROPERTIES_CODE=1", "HIP error 1"),
        ("WITHOUT_PROPERTIES", "failed to find `hipGetDeviceProperties`"),
        // What a struct of another layout looks like.
        ("STRUCT_COMPUTE_UNITS=61", "61 compute units, and 60 elsewhere"),
        ("COMPUTE_UNITS=0", "0 compute units"),
        ("COMPUTE_UNITS=-7", "-7 compute units"),
        ("COMPUTE_UNITS=1000000", "1000000 compute units"),
        ("ARCH=\"\"", "a device called ``"),
        ("ARCH=\"AMD Radeon\"", "a device called `AMD Radeon`"),
        ("ARCH=\"gfx906\\001\"", "a device called ``"),
        (&long, "a device called ``"),
    ] {
        let (define, more) = define.split_once(" -D").unwrap_or((define, "NOTHING"));
        let detection = detect_with(&HipStandIn::gfx906().with(define).with(more));
        assert!(detection.devices.is_empty(), "{define}: {detection:?}");
        let noted = detection.notes.iter().any(|note| note.contains(expected));
        assert!(noted, "{define}: {expected}: {:?}", detection.notes);
    }
    // The device that makes sense is kept when ROCm adds features to a name.
    let detection = detect_with(&HipStandIn::new(6, "gfx900:sramecc-:xnack-", 64));
    assert_eq!(detection.devices[0].target().kdb_file_name(), "gfx900_64.kdb");
}

#[test]
fn a_module_is_loaded_queried_and_unloaded() {
    let directory = tempfile::tempdir().unwrap();
    let hip = Hip::load(&HipStandIn::gfx906().build(directory.path())).unwrap();
    assert!(hip.describe().ends_with("(6.3.0)"));
    let mut elf = b"\x7fELF\x02\x01\x01\x40\x02".to_vec();
    elf.resize(64, 0);
    elf[18..20].copy_from_slice(&[0xe0, 0]);
    elf[48] = 0x2f;
    let module = hip.load_module(&elf).unwrap();
    assert!(hip.describe().ends_with("(6.3.1)"), "the stand-in counts the modules loaded");
    module.function("fill").unwrap();
    assert!(matches!(module.function("other"), Err(HipError::Call { code: 500, .. })));
    assert!(matches!(module.function("fi\0ll"), Err(HipError::KernelName(_))));
    drop(module);
    assert!(hip.describe().ends_with("(6.3.0)"));

    // HIP is told no length: what points outside the bytes stays here.
    for cut in [0, 4, 63] {
        assert!(matches!(hip.load_module(&elf[..cut]), Err(HipError::CodeObject(_))), "{cut}");
    }
    let mut outside = elf.clone();
    outside[40..48].copy_from_slice(&65_u64.to_le_bytes());
    assert!(matches!(hip.load_module(&outside), Err(HipError::CodeObject(_))));
    outside[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
    outside[58] = 64;
    outside[60] = 255;
    assert!(matches!(hip.load_module(&outside), Err(HipError::CodeObject(_))));
    assert!(matches!(hip.load_module(b"no code object at all"), Err(HipError::CodeObject(_))));
}
