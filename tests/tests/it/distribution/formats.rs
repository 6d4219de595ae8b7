//! Packages for Python, containers and pacman: made by the command
//! line, signed, listed, verified.

use std::fs;

use crate::support::project::command;

use super::lab::{KEY, Lab, files, ok};

const DIST: [&str; 5] = ["dist", "--manifest", "kernels.toml", "--target", "gfx90a@104"];

#[test]
fn every_format_is_signed_listed_and_verified() {
    let lab = Lab::new();
    let dist = |format: &str| {
        let args = ["--out", "out", "--sign-key", KEY, "--meta", "all", "--format", format];
        lab.run(&[&DIST[..], &args].concat()).expect_code(0);
    };
    // What one run makes stays when another makes other formats.
    dist("wheel,oci");
    dist("arch,deb");
    let out = lab.path("out");
    let name = "miopen-hip-gfx90a-104kdb";
    let made = [
        "miopen_hip_gfx90a_104kdb-1.2.3-py3-none-any.whl".to_owned(),
        format!("{name}-1.2.3-1.oci.tar"),
        format!("{name}-1.2.3-1-any.pkg.tar.zst"),
        format!("{name}_1.2.3-1_all.deb"),
    ];
    let sums = fs::read_to_string(out.join("SHA256SUMS")).expect("reads");
    let bill = fs::read_to_string(out.join(format!("{name}-1.2.3-1.spdx.json"))).expect("reads");
    for file in &made {
        assert!(out.join(file).is_file(), "{file}");
        assert!(sums.contains(&format!("  {file}\n")), "{file}: {sums}");
        assert!(bill.contains(file), "{file}: {bill}");
        let mut verify = lab.gpg();
        verify.arg("--verify").arg(out.join(format!("{file}.asc"))).arg(out.join(file));
        ok(&mut verify);
    }
    // A family's package depends on others, which only some formats can say.
    let families = ["-any.pkg.tar.zst", ".deb", ".whl", ".oci.tar"].map(|end| {
        let files = files(&out, end).into_iter();
        files.filter(|path| path.to_str().is_some_and(|path| path.contains("allkdb"))).count()
    });
    assert_eq!(families, [1, 1, 0, 0]);
    let keyring = lab.key_file().display().to_string();
    let verify = || lab.run(&["verify", "out", "--keyring", &keyring]);
    let verified = verify().expect_code(0).stdout;
    let kernels = |file: &str| {
        let begin = format!("out/{file}: sound, ");
        let line = verified.lines().find_map(|line| line.strip_prefix(&begin));
        let (_, kernels) = line.and_then(|line| line.split_once(", ")).expect("files and kernels");
        kernels.to_owned()
    };
    for file in &made {
        assert_eq!(kernels(file), kernels(&made[3]), "{file}");
        assert_ne!(kernels(file), "0 kernels");
    }
    for file in &made[..3] {
        let path = out.join(file);
        let whole = fs::read(&path).expect("reads");
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&path, bytes).expect("written");
        verify().expect_code(101);
        fs::write(&path, whole).expect("written");
    }
    verify().expect_code(0);
}

/// A wheel goes into PyTorch, whatever ROCm the other packages are for.
#[test]
fn a_wheel_beside_packages_for_a_version_of_rocm_has_a_bill_of_its_own() {
    let lab = Lab::new();
    let versioned = [&DIST[..], &["--layout", "rocm-6.4.1", "--out", "out"]].concat();
    let dist = |format: &str| {
        lab.run(&[&versioned[..], &["--format", format]].concat()).expect_code(0);
    };
    let bills = || {
        let bills = files(&lab.path("out"), ".spdx.json").into_iter();
        let described = bills.map(|bill| {
            let bill = fs::read_to_string(bill).expect("reads");
            (bill.contains(".whl"), bill.contains(".deb"))
        });
        let mut described: Vec<_> = described.collect();
        described.sort();
        described
    };
    dist("wheel");
    assert_eq!(bills(), [(true, false)]);
    // The kernels' package, and the one that depends on it without ROCm's version in its name.
    dist("deb");
    assert_eq!(bills(), [(false, true), (false, true), (true, false)]);
    dist("deb,wheel");
    assert_eq!(bills(), [(false, true), (false, true), (true, false)]);
    lab.run(&["verify", "out"]).expect_code(0);
    let wheels = files(&lab.path("out"), ".whl");
    let bill = lab.path("out/miopen-hip-gfx90a-104kdb-1.2.3-1.spdx.json");
    let bill = fs::read_to_string(bill).expect("reads");
    let digest = ok(command("sha256sum").arg(&wheels[0]));
    assert!(bill.contains(&digest[..64]), "{bill}");
}

/// Python's rules are not dpkg's and rpm's.
#[test]
fn a_version_before_a_release_is_no_newer_one() {
    let lab = Lab::new();
    let dist = |version: &str, format: &str| {
        let args = ["--package-version", version, "--format", format, "--out", "o"];
        lab.run(&[&DIST[..], &args].concat()).expect_code(0).stderr
    };
    let before = "3.6.0~rc1";
    let said = dist("3.6.0rc1", "deb,wheel");
    assert!(said.contains(&format!("say --package-version '{before}'")), "{said}");
    assert!(dist("3.6.0rc1", "rpm").contains(before));
    for (version, format) in [("3.6.0rc1", "wheel,arch"), (before, "deb,rpm"), ("3.6.0", "deb")] {
        let said = dist(version, format);
        assert!(!said.contains("say --package-version"), "{version}: {said}");
    }
    for (version, than) in [("3.6.0rc1", "gt"), (before, "lt")] {
        ok(command("dpkg").args(["--compare-versions", version, than, "3.6.0"]));
        let ask = format!("%{{lua:print(rpm.vercmp('{version}', '3.6.0'))}}");
        let order = ok(command("rpm").args(["--eval", &ask]));
        assert_eq!(order.trim(), if than == "gt" { "1" } else { "-1" }, "{version}");
    }
}
