//! The processor table compared with installed compilers: names, machine numbers, features.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::support::project::{command, workspace};
use gfxpack_model::processors::{self, Processor};
use gfxpack_model::{Target, TargetId, code_object};
use gfxpack_runtime::device::{HipLibrary, Inputs, detect};

/// hipcc's own on Debian 12, then what later suites and backports bring.
const COMPILERS: &[&str] = &[
    "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20", "clang-21", "clang-22",
];

#[expect(clippy::disallowed_methods, reason = "the compiler is the judge here")]
fn run(compiler: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(compiler)
        .args(["-target", "amdgcn--amdhsa", "-nogpulib"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()
}

/// What the compiler says that it can build for, from `gfx803` on.
fn known_to(compiler: &str) -> Vec<&'static Processor> {
    let output = run(compiler, &["--print-supported-cpus"]).expect("starts, since it was found");
    // Clang 15 lists them on stderr.
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text)
        .expect("names are ASCII")
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("gfx") && !line.ends_with("-generic"))
        .filter_map(|name| {
            let known = processors::by_name(name);
            // Before gfx9 ROCm has gfx803 alone; gfx13 is not sold.
            let expected = name.len() == "gfx1010".len() || name >= "gfx900";
            let unsold = name.starts_with("gfx13");
            assert!(known.is_some() || !expected || unsold, "{compiler} knows {name}, we don't");
            known
        })
        .collect()
}

/// The code object that an empty source gives, if the target ID is accepted.
fn assemble(compiler: &str, target: &str) -> Option<Vec<u8>> {
    let mcpu = format!("-mcpu={target}");
    let output = run(compiler, &["-x", "assembler", &mcpu, "-c", "-o", "-", "/dev/null"])?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || stderr.contains("invalid target ID"),
        "{compiler} failed for {target} in another way:\n{stderr}"
    );
    output.status.success().then_some(output.stdout)
}

#[test]
fn the_table_agrees_with_the_compilers() {
    let compilers: Vec<_> = COMPILERS
        .iter()
        .copied()
        .filter(|compiler| run(compiler, &["--version"]).is_some())
        .collect();
    assert!(
        !compilers.is_empty(),
        "no clang with the AMDGPU backend (clang-15 of hipcc): `cargo xtask test --setup` installs it"
    );
    for compiler in compilers {
        let known = known_to(compiler);
        for name in ["gfx803", "gfx906", "gfx90a", "gfx1030", "gfx1100"] {
            assert!(
                known.iter().any(|processor| processor.name == name),
                "{compiler} lacks {name}"
            );
        }
        for processor in known {
            check_target_ids(compiler, processor);
        }
    }
}

/// Each feature that the table grants is accepted and shows in the code
/// object; each that it denies is refused.
fn check_target_ids(compiler: &str, processor: &Processor) {
    let name = processor.name;
    let features = [
        ("", true),
        (":xnack+", processor.xnack),
        (":xnack-", processor.xnack),
        (":sramecc+", processor.sramecc),
        (":sramecc-", processor.sramecc),
        (":sramecc+:xnack-", processor.sramecc),
    ];
    for (feature, granted) in features {
        let target = format!("{name}{feature}");
        let object = assemble(compiler, &target);
        assert_eq!(object.is_some(), granted, "{compiler} -mcpu={target}");
        if let Some(object) = object {
            let expected: TargetId = target.parse().expect("the table grants it");
            let found = code_object::targets(&object).expect("an ELF code object");
            assert_eq!(found, [expected], "{compiler} -mcpu={target}");
        }
    }
}

/// Prints AMD's own list: a name, its version in the kernel driver's topology, and whether XNACK is
/// a choice.
const AMDS: &str = "from rocm_bootstrap import targets as t
for one in t.ALL_TARGETS: print(one.name, one.gfx_target_version, one.xnack == t.XnackMode.SUPPORTED)";

#[test]
fn the_table_agrees_with_amds_own() {
    let python = workspace().join("target/tools/targets/bin/python");
    let listed = command(&python).args(["-c", AMDS]).output().expect("rocm-bootstrap is installed");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    assert!(listed.lines().count() >= 34, "{listed}");
    for line in listed.lines() {
        let [name, version, has_xnack] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        // A mode of gfx1250, which the topology does not show.
        if name == "gfx1250-strict" {
            continue;
        }
        let processor = processors::by_name(name).unwrap_or_else(|| panic!("{name} is unknown"));
        assert_eq!(processor.xnack, has_xnack == "True", "{name}");
        let sysfs = tempfile::tempdir().expect("a directory");
        let node = sysfs.path().join("class/kfd/kfd/topology/nodes/1");
        fs::create_dir_all(&node).expect("made");
        let properties = format!("simd_count 64\nsimd_per_cu 2\ngfx_target_version {version}\n");
        fs::write(node.join("properties"), properties).expect("written");
        let inputs =
            Inputs { sysfs: sysfs.path().to_owned(), hip: HipLibrary::None, ..Inputs::default() };
        let found = detect(&inputs);
        let found: Vec<&str> = found.devices.iter().map(|one| one.target_id.processor()).collect();
        assert_eq!(found, [name]);
    }
}

#[test]
fn the_released_targets_are_real_products() {
    let matrix = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/matrix.json");
    let matrix = std::fs::read_to_string(matrix).expect("the matrix of release CI");
    let matrix: serde_json::Value = serde_json::from_str(&matrix).expect("JSON");
    let jobs = matrix["include"].as_array().expect("a list of jobs");
    assert!(!jobs.is_empty());
    for job in jobs {
        let targets: Vec<Target> =
            serde_json::from_value(job["targets"].clone()).expect("targets as gfxpack takes them");
        assert!(!targets.is_empty(), "{job}");
        for target in targets {
            assert_eq!(target.id().processor(), job["processor"], "{target}");
            let processor = processors::by_name(target.id().processor()).expect("a known one");
            let sold = target.compute_units().is_none_or(|n| processor.compute_units.contains(&n));
            assert!(sold, "no {} with {target} is sold", processor.name);
        }
    }
}
