//! Arch Linux's packages with pacman and bsdtar.

use std::fs;
use std::path::Path;
use std::process::Command;

use gfxpack_model::package::PackageSpec;
use gfxpack_package::Format;

use super::archives::{check, file, tar};
use super::installed::assert_installed;
use super::support::{NAME, awkward_spec, output, run, temp, tool};
use crate::support::project::as_root;

/// pacman with a system of its own.
fn pacman(root: &Path) -> Command {
    for dir in ["var/lib/pacman", "cache", "hooks", "gpg"] {
        fs::create_dir_all(root.join(dir)).expect("made");
    }
    let config = root.join("pacman.conf");
    fs::write(&config, "[options]\nArchitecture = any\nSigLevel = Never\n").expect("written");
    let mut pacman = as_root("pacman");
    pacman.args(["--noconfirm", "--config"]).arg(config);
    for (option, dir) in
        [("root", ""), ("cachedir", "cache"), ("hookdir", "hooks"), ("gpgdir", "gpg")]
    {
        pacman.arg(format!("--{option}")).arg(root.join(dir));
    }
    pacman.env("TZ", "UTC").arg("--dbpath").arg(root.join("var/lib/pacman"));
    pacman.arg("--logfile").arg(root.join("pacman.log"));
    pacman
}

fn spec(dir: &Path) -> PackageSpec {
    awkward_spec(dir)
}

#[test]
fn pacman_installs_verifies_and_removes() {
    let dir = temp();
    let spec = spec(dir.path());
    let written = Format::Arch.write(&spec, dir.path(), 2, None).expect("written");
    assert_eq!(written.file_name, format!("{NAME}-1.0.0-1-any.pkg.tar.zst"));
    let root = dir.path().join("root");
    fs::create_dir(&root).expect("made");
    let info = run(pacman(&root).arg("-Qip").arg(&written.path));
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name)).expect("a field");
        line.split_once(" : ").expect("a value").1.trim().to_owned()
    };
    for (name, expected) in [
        ("Name", NAME),
        ("Version", "1.0.0-1"),
        ("Description", "precompiled MIOpen kernels for gfx1030 GPUs"),
        ("Architecture", "any"),
        ("URL", "https://example.org/gfxpack"),
        ("Licenses", "MIT"),
        ("Provides", "miopen-kdb-gfx1030=1.0.0"),
        ("Depends On", "None"),
        ("Optional Deps", "miopen-hip>=3.2.0"),
        ("Conflicts With", "miopenkernels-gfx1030-36kdb<2"),
        ("Replaces", "None"),
        ("Packager", "Kernel Packagers <kernels@example.org>"),
        ("Install Script", "No"),
    ] {
        assert_eq!(field(name), expected, "{name}");
    }
    assert_eq!(field("Build Date"), "Tue Nov 14 22:13:20 2023");

    run(pacman(&root).arg("-U").arg(&written.path));
    assert_installed(&spec, &root);
    let verified = run(pacman(&root).args(["-Qkk", NAME]));
    assert!(verified.contains("0 altered files"), "{verified}");
    let kdb = root.join("usr/share/miopen/db/gfx1030.kdb");
    fs::write(&kdb, "damaged").expect("written");
    let verified = output(pacman(&root).args(["-Qkk", NAME]));
    let verified = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.contains("1 altered file"), "{verified}");
    run(pacman(&root).args(["-R", NAME]));
    assert!(!root.join("usr").exists(), "nothing is left");
}

#[test]
fn bsdtar_unpacks_every_byte() {
    let dir = temp();
    let spec = spec(dir.path());
    let path = Format::Arch.write(&spec, dir.path(), 1, None).expect("written").path;
    let root = dir.path().join("root");
    fs::create_dir(&root).expect("made");
    run(tool("bsdtar").arg("-C").arg(&root).args(["-p", "-xf"]).arg(&path));
    assert_installed(&spec, &root);
    let names = run(tool("bsdtar").arg("-tf").arg(&path));
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(names[..3], [".MTREE", ".PKGINFO", "usr/"]);
    // bsdtar finds nothing that is not as the list says.
    let listed = run(tool("bsdtar").args(["-tf"]).arg(root.join(".MTREE")));
    assert_eq!(listed.lines().count(), names.len() - 1, "{listed}");
    let report = check(&path);
    assert_eq!(report.findings, Vec::<String>::new());
    assert_eq!(report.files, spec.files.len() as u64 + 1, "the files and the copyright");
    assert_eq!(report.about.expect("it says").name, NAME);
}

#[test]
fn damage_and_scripts_are_reported() {
    let dir = temp();
    let path = Format::Arch.write(&spec(dir.path()), dir.path(), 1, None).expect("written").path;
    let mut bytes = fs::read(&path).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("written");
    assert!(!check(&path).findings.is_empty());
    let entries = [file(".INSTALL", b"post_install() { :; }"), file("usr/x", b"x")];
    fs::write(&path, zstd::encode_all(&*tar(&entries), 1).expect("packed")).expect("written");
    let findings = check(&path).findings;
    assert_eq!(findings, ["its .INSTALL would run as root", "there is no `.PKGINFO` in it"]);
}
