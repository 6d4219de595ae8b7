//! Detection in made-up sysfs trees, with overrides, and without the HIP
//! runtime.

use std::fs;

use super::*;

/// A temporary sysfs tree.
struct Sysfs(tempfile::TempDir);

impl Sysfs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn node(&self, number: u32, properties: &str) {
        self.write(&format!("class/kfd/kfd/topology/nodes/{number}/properties"), properties);
    }

    fn pci(&self, address: &str, vendor: &str, device: &str, class: &str) {
        for (name, text) in [("vendor", vendor), ("device", device), ("class", class)] {
            self.write(&format!("bus/pci/devices/{address}/{name}"), &format!("{text}\n"));
        }
    }

    fn inputs(&self, variables: &[(&str, &str)]) -> Inputs {
        let environment = Environment::from_pairs(variables.iter().copied());
        Inputs { environment, sysfs: self.0.path().to_owned(), hip: HipLibrary::None }
    }

    #[track_caller]
    fn check(&self, inputs: &Inputs, expected: &[&str]) -> Detection {
        let detection = detect(inputs);
        let found: Vec<String> = detection
            .devices
            .iter()
            .map(|device| format!("{} {}", device.target(), device.source.name()))
            .collect();
        assert_eq!(found, expected, "{:?}", detection.notes);
        detection
    }
}

const CPU: &str = "cpu_cores_count 32\nsimd_count 0\nmem_banks_count 1\ngfx_target_version 0\n";
const MI210: &str = "cpu_cores_count 0\nsimd_count 416\nsimd_per_cu 4\nvendor_id 4098\n\
    device_id 29711\nlocation_id 50944\ndomain 0\ngfx_target_version 90010\n";
/// Sold as 80 compute units, which HIP counts as 40.
const RX6900XT: &str = "simd_count 160\nsimd_per_cu 2\ndevice_id 29631\nlocation_id 768\n\
    gfx_target_version 100300\n";
const MI300X: &str = "simd_count 1216\nsimd_per_cu 4\nnum_xcc 8\ngfx_target_version 90402\n";

#[test]
fn a_node_is_taken_for_what_its_own_variable_says() {
    let sysfs = Sysfs::new();
    sysfs.node(0, CPU);
    sysfs.node(1, RX6900XT);
    sysfs.node(2, RX6900XT);
    let inputs = sysfs.inputs(&[
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0"),
        ("HSA_OVERRIDE_GFX_VERSION_2", "10.3.1"),
        ("HSA_OVERRIDE_GFX_VERSION_x", "9.0.0"),
    ]);
    let detection = sysfs.check(&inputs, &["gfx1100@40 kfd", "gfx1031@40 kfd"]);
    assert!(detection.notes.iter().any(|note| note.contains("KFD node 2 for gfx1031")));
}

#[test]
fn a_machine_without_gpus_is_not_an_error() {
    let sysfs = Sysfs::new();
    let detection = sysfs.check(&sysfs.inputs(&[]), &[]);
    assert_eq!(detection.notes.len(), 1, "{:?}", detection.notes);
    let gone = Inputs { sysfs: "/nonexistent".into(), ..sysfs.inputs(&[]) };
    sysfs.check(&gone, &[]);
}

#[test]
fn the_drivers_topology_gives_processor_compute_units_and_pci_address() {
    let sysfs = Sysfs::new();
    sysfs.node(0, CPU);
    sysfs.node(2, MI210);
    sysfs.node(10, RX6900XT);
    sysfs.node(3, MI300X);
    // The bus is not read if the driver reports devices.
    sysfs.pci("0000:03:00.0", "0x1002", "0x73bf", "0x030000");
    let expected = ["gfx90a@104 kfd", "gfx942@304 kfd", "gfx1030@40 kfd"];
    let detection = sysfs.check(&sysfs.inputs(&[]), &expected);
    assert_eq!(detection.devices[0].pci.as_deref(), Some("0000:c7:00.0"));
    assert_eq!(detection.devices[1].pci, None);
    assert!(detection.notes.is_empty(), "{:?}", detection.notes);
}

#[test]
fn an_invalid_driver_node_is_a_note() {
    let sysfs = Sysfs::new();
    for (number, text) in [
        (1, "simd_count 256\nsimd_per_cu 4\ngfx_target_version 999999999999\n"),
        (2, "simd_count 256\nsimd_per_cu 4\n"),
        (3, ""),
        (4, "simd_count\n\0\nsimd_count x\nsimd_count 256 \n \n"),
    ] {
        sysfs.node(number, text);
    }
    fs::write(sysfs.0.path().join("class/kfd/kfd/topology/nodes/3/properties"), [0xff, 0xfe])
        .unwrap();
    fs::create_dir_all(sysfs.0.path().join("class/kfd/kfd/topology/nodes/5/properties")).unwrap();
    let detection = sysfs.check(&sysfs.inputs(&[]), &[]);
    for node in [1, 2, 3, 4, 5] {
        let noted = detection.notes.iter().any(|note| note.contains(&format!("KFD node {node} ")));
        assert!(noted, "{node}: {:?}", detection.notes);
    }
    // An invalid count makes a device-wide target.
    for (number, text) in [
        (6, "simd_count 256\nsimd_per_cu 0\ngfx_target_version 90006\n"),
        (7, "simd_count 18446744073709551615\nsimd_per_cu 1\ngfx_target_version 90006\n"),
        (8, "simd_count 1\nsimd_per_cu 2\ngfx_target_version 90006\n"),
    ] {
        sysfs.node(number, text);
    }
    sysfs.check(&sysfs.inputs(&[]), &["gfx906 kfd", "gfx906 kfd", "gfx906 kfd"]);
}

#[test]
fn the_device_id_identifies_gpus_of_old_drivers() {
    let sysfs = Sysfs::new();
    sysfs.node(1, "simd_count 240\nsimd_per_cu 4\ndevice_id 26287\n");
    sysfs.check(&sysfs.inputs(&[]), &["gfx906@60 kfd"]);
}

#[test]
fn overrides_of_the_driver_library_work_as_in_the_runtime() {
    let sysfs = Sysfs::new();
    // A Radeon RX 6700 XT, gfx1031, treated as gfx1030; then as gfx906, with
    // units instead of pairs.
    sysfs.node(1, "simd_count 80\nsimd_per_cu 2\ngfx_target_version 100301\n");
    let with = |text: &str| sysfs.inputs(&[("HSA_OVERRIDE_GFX_VERSION", text)]);
    sysfs.check(&with("10.3.0"), &["gfx1030@20 kfd"]);
    sysfs.check(&with("9.0.6"), &["gfx906@40 kfd"]);
    let refused = sysfs.check(&with("gfx1030"), &["gfx1031@20 kfd"]);
    assert!(refused.notes[0].contains("`gfx1030`"), "{:?}", refused.notes);
    sysfs.check(&with(""), &["gfx1031@20 kfd"]);
}

#[test]
fn xnack_is_on_if_requested_and_supported() {
    let sysfs = Sysfs::new();
    sysfs.node(1, MI210);
    sysfs.node(2, RX6900XT);
    let inputs = sysfs.inputs(&[("HSA_XNACK", "1")]);
    let detection = sysfs.check(&inputs, &["gfx90a:xnack+@104 kfd", "gfx1030@40 kfd"]);
    assert_eq!(detection.devices[0].target().kdb_file_name(), "gfx90a_xnack68.kdb");
}

#[test]
fn the_pci_bus_gives_only_the_processor() {
    let sysfs = Sysfs::new();
    sysfs.pci("0000:00:01.0", "0x8086", "0x73bf", "0x030000");
    sysfs.pci("0000:03:00.0", "0x1002", "0x73bf", "0x030000");
    sysfs.pci("0000:03:00.1", "0x1002", "0xab28", "0x040300");
    sysfs.pci("0000:05:00.0", "0x1002", "0x74a1", "0x120000");
    sysfs.pci("0000:07:00.0", "0x1002", "0xffff", "0x038000");
    sysfs.pci("0000:09:00.0", "0x1002", "nonsense", "0x030000");
    let detection = sysfs.check(&sysfs.inputs(&[]), &["gfx1030 pci", "gfx942 pci"]);
    assert_eq!(detection.devices[0].pci.as_deref(), Some("0000:03:00.0"));
    assert!(detection.devices[0].name.as_deref().unwrap().contains("6900"));
    assert_eq!(detection.devices[0].targets().len(), 1);
    assert!(detection.notes.iter().any(|note| note.contains("1002:ffff")));
}

#[test]
fn miopens_overrides_take_precedence() {
    let sysfs = Sysfs::new();
    sysfs.node(1, MI210);
    let with = |arch: &str, count: &str| {
        sysfs.inputs(&[("MIOPEN_DEVICE_ARCH", arch), ("MIOPEN_DEVICE_CU", count)])
    };
    let whole = sysfs
        .check(&with("gfx906:sramecc+:xnack-", "60"), &["gfx906:sramecc+:xnack-@60 environment"]);
    assert_eq!(whole.devices[0].target().kdb_file_name(), "gfx906_60.kdb");
    sysfs.check(&with("gfx906", ""), &["gfx906@104 environment"]);
    sysfs.check(&with("gfx906", "0"), &["gfx906@104 environment"]);
    sysfs.check(&with("", "110"), &["gfx90a@110 kfd"]);
    let refused = sysfs.check(&with("Vega", "many"), &["gfx90a@104 kfd"]);
    assert_eq!(refused.notes.len(), 2, "{:?}", refused.notes);

    let empty = Sysfs::new();
    empty.check(&empty.inputs(&[("MIOPEN_DEVICE_ARCH", "gfx906")]), &["gfx906 environment"]);
}

#[test]
fn a_file_that_is_not_a_library_is_a_note() {
    let sysfs = Sysfs::new();
    sysfs.node(1, MI210);
    sysfs.write("libamdhip64.so.6", "no library");
    for name in ["libamdhip64.so.6", "absent.so"] {
        let hip = HipLibrary::File(sysfs.0.path().join(name));
        let detection = sysfs.check(&Inputs { hip, ..sysfs.inputs(&[]) }, &["gfx90a@104 kfd"]);
        assert!(detection.notes[0].contains(name), "{:?}", detection.notes);
        assert_eq!(detection.hip, None);
    }
}
