//! Checks by lintian, rpmlint, appstreamcli, pyspdxtools, dpkg-deb and rpm.

use std::path::Path;

use crate::support::project::{command, workspace};

use super::lab::{Lab, files, ok, run_to_end};

fn lintian(packages: &[std::path::PathBuf]) -> String {
    let mut lintian = command("lintian");
    lintian.args(["--allow-root", "--no-cfg", "--display-info", "--tag-display-limit=0"]);
    run_to_end(lintian.args(packages)).stdout
}

fn rpmlint(packages: &[std::path::PathBuf]) -> String {
    let mut rpmlint = command("rpmlint");
    rpmlint.arg("--config").arg(workspace().join("packaging/rpmlint.toml"));
    let run = run_to_end(rpmlint.args(packages));
    assert!(run.stdout.contains("specfiles checked"), "{}{}", run.stdout, run.stderr);
    run.stdout
}

/// A program of Python's that xtask installs.
fn pyspdxtools() -> std::path::PathBuf {
    let tool = workspace().join("target/tools/spdx/bin/pyspdxtools");
    assert!(tool.is_file(), "`cargo xtask test --setup` installs spdx-tools");
    tool
}

/// The package and each archive have a URL of their own, as its specification spells it.
fn has_package_urls(bill: &std::path::Path) {
    let read = "\
import json, sys
from packageurl import PackageURL
with open(sys.argv[1]) as file:
    packages = json.load(file)['packages']
for package in packages:
    for one in package.get('externalRefs', []):
        assert one['referenceType'] == 'purl', one
        url = PackageURL.from_string(one['referenceLocator'])
        print(url.name, url.version, url.qualifiers.get('checksum', ''))
        assert url.to_string() == one['referenceLocator'], one
        assert url.name == package['name'] and url.version == package['versionInfo'], package
";
    let python = pyspdxtools().with_file_name("python");
    let urls = ok(command(python).args(["-c", read]).arg(bill));
    // Families have a .deb and an .rpm, others a tarball too.
    assert!(urls.lines().count() >= 3, "{urls}");
    assert_eq!(urls.matches("sha256:").count(), urls.lines().count() - 1, "{urls}");
}

#[test]
fn policy_and_formats_are_kept_in_every_layout() {
    let lab = Lab::new();
    // One target for which devices are claimed and one for which they aren't.
    let targets = ["--target", "gfx906,gfx90a@104", "--meta", "gfx9"];
    for (out, layout) in [
        ("fhs", &["--layout", "fhs"][..]),
        ("debian", &["--layout", "debian"]),
        ("rocm", &["--layout", "rocm-6.4.1"]),
        ("therock", &["--layout", "therock-7.11.0"]),
    ] {
        lab.dist(out, &[&targets[..], layout].concat());
        let dir = lab.path(out);
        let (debs, rpms) = (files(&dir, ".deb"), files(&dir, ".rpm"));
        assert_eq!(lintian(&debs), "", "{out}");
        let judged = rpmlint(&rpms);
        assert!(judged.contains(" 0 errors"), "{out}: {judged}");
        // The bills of the other layouts differ in paths alone.
        let bills = if out == "fhs" { files(&dir, ".spdx.json") } else { Vec::new() };
        for bill in bills {
            ok(command(pyspdxtools()).arg("--infile").arg(&bill));
            has_package_urls(&bill);
        }
        for deb in &debs {
            let tree = lab.path("unpacked").join(deb.file_name().expect("a name"));
            std::fs::create_dir_all(&tree).expect("made");
            ok(command("dpkg-deb").arg("--extract").arg(deb).arg(&tree));
            let claims = ok(command("dpkg-deb").arg("--field").arg(deb).arg("Modaliases"));
            let claims = claims.trim();
            let metainfo = tree.join("usr/share/metainfo");
            assert_eq!(metainfo.exists(), !claims.is_empty(), "{}: {claims}", deb.display());
            if metainfo.exists() {
                let mut appstreamcli = command("appstreamcli");
                appstreamcli.args(["validate", "--no-net"]).args(files(&metainfo, ".xml"));
                ok(&mut appstreamcli);
            }
        }
    }
    names_and_relations(&lab);
}

fn names_and_relations(lab: &Lab) {
    let field = |deb: &str, name: &str| {
        ok(command("dpkg-deb").arg("--field").arg(lab.path(deb)).arg(name)).trim().to_owned()
    };
    let rpm = |package: &str, args: &[&str]| {
        ok(command("rpm").args(["-qp", "--nosignature"]).args(args).arg(lab.path(package)))
    };
    let wide = "fhs/miopen-hip-gfx906kdb_1.2.3-1_all.deb";
    assert_eq!(field(wide, "X-ROCm-GPU-Architecture"), "gfx906");
    assert!(field(wide, "Modaliases").starts_with("amdgpu(pci:v00001002d000066A0sv*sd*bc*sc*i*, "));
    assert_eq!(field(wide, "Provides"), "miopenkernels-gfx906kdb (= 1.2.3-1)");
    assert_eq!(field(wide, "Conflicts"), "", "nothing of AMD's is in /usr");
    let supplements = rpm("fhs/miopen-hip-gfx906kdb-1.2.3-1.noarch.rpm", &["--supplements"]);
    assert!(
        supplements.starts_with("modalias(miopen-hip:pci:v00001002d000066A0sv*sd*bc*sc*i*)\n"),
        "{supplements}"
    );
    assert_eq!(rpm("fhs/miopen-hip-gfx90a-104kdb-1.2.3-1.noarch.rpm", &["--supplements"]), "");
    let family = rpm("fhs/miopen-hip-gfx9kdb-1.2.3-1.noarch.rpm", &["--requires"]);
    for member in ["miopen-hip-gfx906kdb", "miopen-hip-gfx90a-104kdb"] {
        assert!(family.contains(&format!("{member} = 1.2.3-1\n")), "{family}");
    }
    let listed = ok(command("dpkg-deb")
        .arg("--contents")
        .arg(lab.path("rocm/miopen-hip-gfx906kdb6.4.1_1.2.3-1_all.deb")));
    assert!(listed.contains(" ./opt/rocm-6.4.1/share/miopen/db/gfx906.kdb\n"), "{listed}");
    let listed = rpm("therock/miopen-hip-gfx906kdb7.11-1.2.3-1.noarch.rpm", &["--list"]);
    assert!(listed.contains("/opt/rocm/core-7.11/share/miopen/db/gfx906.kdb\n"), "{listed}");
    let control = ok(command("dpkg-deb").arg("--info").arg(Path::new(&lab.path(wide))));
    assert!(control.contains(" Enhances: miopen-hip, libmiopen1, miopen\n"), "{control}");
    let copyright = lab.path("unpacked/miopen-hip-gfx906kdb_1.2.3-1_all.deb");
    let copyright = copyright.join("usr/share/doc/miopen-hip-gfx906kdb/copyright");
    let text = std::fs::read_to_string(copyright).expect("the copyright reads");
    assert!(text.contains("\nFiles: *\nCopyright: 2026 Somebody\nLicense: Expat\n"), "{text}");
}
