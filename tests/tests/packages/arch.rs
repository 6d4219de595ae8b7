//! Arch Linux's packages with pacman and bsdtar.

use std::fs;
use std::path::Path;
use std::process::Command;

use gfxpack_model::package::PackageSpec;
use gfxpack_package::Format;

use crate::archives::{check, file, tar};
use crate::installed::{assert_installed, root_tool};
use crate::support::{NAME, awkward_spec, output, plain_spec, run, temp, tool};

/// pacman with a system of its own.
fn pacman(root: &Path) -> Command {
    for dir in ["var/lib/pacman", "cache", "hooks", "gpg"] {
        fs::create_dir_all(root.join(dir)).expect("made");
    }
    let config = root.join("pacman.conf");
    fs::write(&config, "[options]\nArchitecture = any\nSigLevel = Never\n").expect("written");
    let mut pacman = root_tool("pacman");
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
fn files_that_differ_from_the_list_are_reported() {
    let dir = temp();
    let spec = plain_spec(vec![7; 3000]);
    let path = Format::Arch.write(&spec, dir.path(), 1, None).expect("written").path;
    let root = dir.path().join("root");
    fs::create_dir(&root).expect("made");
    run(tool("bsdtar").arg("-C").arg(&root).arg("-xf").arg(&path));
    let read = |name: &str| fs::read(root.join(name)).expect("reads");
    let (kdb, license) = (&spec.files[0].path[1..], format!("usr/share/licenses/{NAME}/copyright"));
    let whole = [".MTREE", ".PKGINFO", kdb, &license].map(|name| (name, read(name)));
    let findings = |members: &[(&str, Vec<u8>)]| {
        let entries: Vec<_> = members.iter().map(|(name, bytes)| file(name, bytes)).collect();
        let packed = zstd::encode_all(&*tar(&entries), 1).expect("packed");
        fs::write(&path, packed).expect("written");
        check(&path).findings.join("; ")
    };
    assert_eq!(findings(&whole), "");
    let mut other = whole.clone();
    other[2].1[5] ^= 1;
    assert_eq!(findings(&other), format!("`/{kdb}` is not what .MTREE says"));
    assert_eq!(findings(&whole[..3]), format!("`/{license}` is in .MTREE and not in the package"));
    let mut more = whole.to_vec();
    more.push(("usr/x", Vec::new()));
    assert_eq!(findings(&more), "`/usr/x` is not in .MTREE");
    assert_eq!(findings(&whole[1..]), "", "pacman does without the list");
    let without_info = findings(&whole[2..]);
    assert_eq!(without_info, "there is no `.PKGINFO` with a name in it");
    let refused = output(pacman(&root).arg("-Qip").arg(&path));
    assert!(!refused.status.success(), "pacman says so too");
    more[0].1.truncate(20);
    assert!(findings(&more).contains("failed to read `.MTREE`"));
}
