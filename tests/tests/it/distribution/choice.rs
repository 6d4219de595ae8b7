//! `gfxpack install`: the packages chosen for the GPUs of a machine.

use std::fs;

use crate::support::project::command;

use super::lab::{Lab, files, ok};

/// sysfs of a machine that has that device of AMD's and no driver for it.
pub(crate) fn sysfs(lab: &Lab, id: &str) -> String {
    let device = lab.path("sys/bus/pci/devices/0000:03:00.0");
    fs::create_dir_all(&device).expect("made");
    for (name, text) in [("vendor", "0x1002"), ("device", id), ("class", "0x038000")] {
        fs::write(device.join(name), format!("{text}\n")).expect("written");
    }
    lab.path("sys").display().to_string()
}

const MI210: &str = "0x740f";
pub(crate) const MI50: &str = "0x66a1";

#[test]
fn the_package_of_the_gpu_is_chosen_from_a_directory() {
    let lab = Lab::new();
    let sysfs = sysfs(&lab, MI210);
    lab.dist("packages", &["--target", "gfx90a,gfx90a@104,gfx906"]);
    let install = |manager: &str, more: &[&str]| {
        let args = ["install", "--no-hip", "--sysfs", &sysfs, "--with", manager, "--dry-run"];
        lab.run(&[&args[..], more].concat())
    };
    for (manager, command, file) in [
        ("apt", "apt-get install --yes", "miopen-hip-gfx90akdb_1.2.3-1_all.deb"),
        ("dnf", "dnf install --assumeyes", "miopen-hip-gfx90akdb-1.2.3-1.noarch.rpm"),
        ("zypper", "zypper --non-interactive install", "miopen-hip-gfx90akdb-1.2.3-1.noarch.rpm"),
    ] {
        let run = install(manager, &["--from", "packages"]).expect_code(0);
        let path = lab.path("packages").join(file);
        assert_eq!(run.stdout, format!("{command} {}\n", path.display()));
        assert!(run.stderr.contains("Instinct MI210"), "{}", run.stderr);
    }
    // For other machines, whatever is in this one.
    let others = ["--from", "packages", "--target", "gfx90a@104,gfx906@60"];
    let run = install("apt", &others).expect_code(0);
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let names: Vec<String> = run.stdout.split_whitespace().skip(3).filter_map(name).collect();
    let expected =
        ["miopen-hip-gfx90a-104kdb_1.2.3-1_all.deb", "miopen-hip-gfx906kdb_1.2.3-1_all.deb"];
    assert_eq!(names, expected);
    fs::create_dir(lab.path("none")).expect("made");
    let none = install("apt", &["--from", "none"]).expect_code(3);
    let expected =
        "failed to find a package for gfx90a\nhint: the directory given with --from has none";
    assert!(none.stderr.contains(expected), "{}", none.stderr);
}

/// MIOpen opens one kdb for a GPU: a second package would take up space, and may
/// hide the larger one.
#[test]
fn one_package_is_installed_for_each_gpu() {
    let lab = Lab::new();
    lab.dist("packages", &["--target", "gfx90a,gfx90a@104"]);
    let device = |node: u32, compute_units: u32| {
        let dir = lab.path(&format!("kfd/class/kfd/kfd/topology/nodes/{node}"));
        fs::create_dir_all(&dir).expect("made");
        let simds = compute_units * 4;
        let text = format!("simd_count {simds}\nsimd_per_cu 4\ngfx_target_version 90010\n");
        fs::write(dir.join("properties"), text).expect("written");
    };
    let install = || {
        let sysfs = lab.path("kfd").display().to_string();
        let args = ["install", "--no-hip", "--sysfs", &sysfs, "--with", "apt", "--dry-run"];
        lab.run(&[&args[..], &["--from", "packages"]].concat()).expect_code(0).stdout
    };
    let package = |gfx: &str| {
        let name = format!("miopen-hip-{gfx}kdb_1.2.3-1_all.deb");
        lab.path("packages").join(name).display().to_string()
    };
    device(1, 104);
    device(2, 104);
    assert_eq!(install(), format!("apt-get install --yes {}\n", package("gfx90a-104")));
    device(3, 110);
    let both = [package("gfx90a-104"), package("gfx90a")].join(" ");
    assert_eq!(install(), format!("apt-get install --yes {both}\n"));
}

/// rpm takes names of files for patterns.
const PACKAGES: &str = "br[1] {y}";

#[test]
fn the_newest_package_of_a_directory_is_installed_with_its_dependencies() {
    let lab = Lab::new();
    let sysfs = sysfs(&lab, MI210);
    for version in ["1.9", "1.10"] {
        let more = ["--target", "gfx90a", "--layout", "rocm-6.4.1", "--package-version", version];
        lab.dist(&format!("{PACKAGES}/{version}"), &more);
    }
    for name in ["miopen-hip-gfx90akdb_9_all.deb", "miopen-hip-gfx90akdb-9.noarch.rpm"] {
        fs::write(lab.path(PACKAGES).join(name), "junk").expect("written");
    }
    let dir = lab.path(PACKAGES).join("1.10");
    for (manager, files) in [
        (
            "apt",
            [
                "miopen-hip-gfx90akdb_6.4.1+1.10-1_all.deb",
                "miopen-hip-gfx90akdb6.4.1_1.10-1_all.deb",
            ],
        ),
        (
            "dnf",
            [
                "miopen-hip-gfx90akdb-6.4.1+1.10-1.noarch.rpm",
                "miopen-hip-gfx90akdb6.4.1-1.10-1.noarch.rpm",
            ],
        ),
    ] {
        let args = ["install", "--no-hip", "--sysfs", &sysfs, "--with", manager, "--dry-run"];
        let run = lab.run(&[&args[..], &["--from", PACKAGES]].concat()).expect_code(0);
        let junk = run.stderr.matches("` is left out: it can't be read as a package").count();
        assert_eq!(junk, 1, "{}", run.stderr);
        let files = files.map(|file| dir.join(file).display().to_string()).join(" ");
        assert!(run.stdout.ends_with(&format!(" {files}\n")), "{}", run.stdout);
    }
}

/// A package manager takes every package that is named by its path.
#[test]
fn packages_are_checked_before_they_are_installed() {
    let lab = Lab::new();
    let sysfs = sysfs(&lab, MI210);
    let install = |dir: &str, manager: &str, more: &[&str]| {
        let args = ["install", "--no-hip", "--sysfs", &sysfs, "--dry-run", "--with", manager];
        lab.run(&[&args[..], &["--from", dir], more].concat())
    };
    let own = lab.key_file().display().to_string();
    let made = lab.path("made");
    lab.dist("made", &["--target", "gfx90a,gfx906"]);
    lab.run(&["repo", "made"]).expect_code(0);
    fs::remove_dir_all(made.join("kdb")).expect("removed");
    let sums = "cd \"$0\" && sha256sum *.deb *.rpm > SHA256SUMS";
    let sums = || ok(command("sh").args(["-ec", sums]).arg(&made));
    let deb = files(&made, "gfx90akdb_1.2.3-1_all.deb")[0].clone();
    let rpm = files(&made, "gfx90akdb-1.2.3-1.noarch.rpm")[0].clone();
    let refused = |manager: &str, more: &[&str], why: &str| {
        let run = install("made", manager, more).expect_code(101);
        assert!(run.stderr.contains(why), "{why}: {}", run.stderr);
        assert_eq!(run.stdout, "", "the package manager is not started");
    };
    for manager in ["apt", "dnf"] {
        let run = install("made", manager, &[]).expect_code(0);
        assert!(run.stderr.contains("--keyring FILE has signatures checked"), "{}", run.stderr);
    }
    // The packages of other GPUs need not be here.
    fs::remove_file(&files(&made, "gfx906kdb_1.2.3-1_all.deb")[0]).expect("removed");
    install("made", "apt", &[]).expect_code(0);

    let whole = [&deb, &rpm].map(|path| fs::read(path).expect("read"));
    for (path, whole) in [&deb, &rpm].into_iter().zip(&whole) {
        let mut changed = whole.clone();
        *changed.last_mut().expect("bytes") ^= 1;
        fs::write(path, changed).expect("written");
    }
    refused("apt", &[], "SHA256SUMS`: `miopen-hip-gfx90akdb_1.2.3-1_all.deb` is not what it says");
    refused("dnf", &[], "is not what it says");
    sums();
    refused("apt", &[], "Release`: `miopen-hip-gfx90akdb_1.2.3-1_all.deb` is not what the index");
    refused("dnf", &[], "repomd.xml`: `");
    for index in ["dists", "repodata"] {
        fs::remove_dir_all(made.join(index)).expect("removed");
    }

    // What fits all sums may still be no package of kernels.
    let tree = lab.path("tree").display().to_string();
    for (script, why) in [
        ("echo '#!/bin/sh' > DEBIAN/preinst; chmod 755 DEBIAN/preinst", "its preinst would run"),
        ("mkdir etc; touch etc/x", "`/etc/x` is not in a directory for kernels"),
        ("ln -s /etc opt/rocm/share/x", "`/opt/rocm/share/x` is not in a directory for kernels"),
        ("touch opt/rocm/x; chmod 4755 opt/rocm/x", "`/opt/rocm/x` runs with the rights"),
        ("mknod -m 644 opt/rocm/x p", "`/opt/rocm/x` is no file"),
    ] {
        fs::write(&deb, &whole[0]).expect("written");
        let pack = "rm -rf \"$0\"; dpkg-deb -R \"$1\" \"$0\"; cd \"$0\"; eval \"$2\"; \
                    dpkg-deb --root-owner-group -Zgzip -b . \"$1\"";
        ok(command("sh").args(["-ec", pack, &tree]).arg(&deb).arg(script));
        sums();
        refused("apt", &[], why);
    }
    fs::write(&deb, &whole[0]).expect("written");
    fs::write(&rpm, &whole[1]).expect("written");
    sums();
    install("made", "apt", &[]).expect_code(0);
    refused("apt", &["--keyring", &own], "SHA256SUMS`: its signature: ");
    fs::remove_file(made.join("SHA256SUMS")).expect("removed");
    for manager in ["apt", "dnf"] {
        install("made", manager, &["--keyring", &own]).expect_code(0);
    }
    fs::remove_file(format!("{}.asc", deb.display())).expect("removed");
    refused("apt", &["--keyring", &own], "it is not signed");
}
