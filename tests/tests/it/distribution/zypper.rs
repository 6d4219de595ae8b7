//! zypper's solver, which chooses packages for the devices of the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use gfxpack_model::package::{Relation, RelationKind};

use crate::support::project::as_root;

use super::lab::{Lab, ok, other};

/// zypper in a root of its own, with what the kernel says of devices in
/// `sysfs`.
fn zypper(lab: &Lab, sysfs: &Path, args: &[&str]) -> Command {
    let mut zypper = as_root("zypper");
    zypper.arg("--root").arg(lab.path("root")).args(["--non-interactive", "--no-refresh"]);
    zypper.args(args).env("ZYPP_MODALIAS_SYSFS", sysfs).env("ZYPP_LOCKFILE_ROOT", lab.path("root"));
    zypper
}

fn set_up(lab: &Lab) {
    fs::create_dir_all(lab.path("root/etc/zypp/repos.d")).expect("made");
    let text = format!(
        "[kernels]\nname=kernels\nenabled=1\nautorefresh=0\nbaseurl=dir://{}\ntype=rpm-md\n\
         gpgcheck=1\ngpgkey=file://{}\n",
        lab.path("repository").display(),
        lab.key_file().display()
    );
    fs::write(lab.path("root/etc/zypp/repos.d/kernels.repo"), text).expect("written");
    let mut refresh = as_root("zypper");
    refresh
        .arg("--root")
        .arg(lab.path("root"))
        .args(["--non-interactive", "--gpg-auto-import-keys"]);
    ok(refresh.arg("refresh"));
}

/// What installing MIOpen would bring.
fn brought(lab: &Lab, sysfs: &Path) -> String {
    ok(&mut zypper(lab, sysfs, &["install", "--dry-run", "miopen-hip"]))
}

#[test]
fn installing_miopen_also_installs_the_kernels_of_the_device() {
    let lab = Lab::new();
    lab.dist("repository", &["--target", "gfx906,gfx90a", "--layout", "fhs"]);
    lab.stand_in("repository", &other("miopen-hip", "3.5", "/usr/share/miopen/x", "MIOpen"));
    // Another package for a device of this very machine, whatever it has.
    let devices = fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
    let own = devices.filter_map(|d| fs::read_to_string(d.path().join("modalias")).ok()).next();
    if let Some(alias) = &own {
        let (ids, _) = alias.trim().split_once("sv").expect("subsystem follows device");
        let mut spec = other("own-kernels", "1.0", "/usr/share/miopen/y", "own");
        spec.relations.push(Relation {
            kind: RelationKind::Supplements,
            name: format!("modalias(miopen-hip:{ids}sv*sd*bc*sc*i*)"),
            version: None,
        });
        lab.stand_in("repository", &spec);
    }
    lab.repo("repository");
    set_up(&lab);

    let with_mi210 = lab.path("with-mi210");
    let device = with_mi210.join("devices/pci0000:00/0000:03:00.0");
    fs::create_dir_all(&device).expect("made");
    let alias = "pci:v00001002d0000740Fsv00001002sd00000C34bc03sc80i00\n";
    fs::write(device.join("modalias"), alias).expect("written");
    let output = brought(&lab, &with_mi210);
    assert!(output.contains("miopen-hip-gfx90akdb"), "{output}");
    assert!(!output.contains("gfx906"), "{output}");

    let without = lab.path("without");
    fs::create_dir_all(without.join("devices")).expect("made");
    let output = brought(&lab, &without);
    assert!(output.contains("miopen-hip") && !output.contains("kdb"), "{output}");

    if own.is_some() {
        let output = brought(&lab, Path::new("/sys"));
        assert!(output.contains("own-kernels") && !output.contains("kdb"), "{output}");
    }
}
