//! Packages by other programs, which rpm and dpkg accept, are sound, but for scripts.

use std::fs;
use std::os::unix::fs::symlink;

use super::archives::check;
use super::support::{run, temp, tool};

#[test]
fn links_of_all_kinds_are_sound() {
    let dir = temp();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("usr/lib/x/sub")).expect("created");
    fs::create_dir_all(tree.join("DEBIAN")).expect("created");
    fs::write(tree.join("usr/lib/x/libx.so.1.0"), "a library\n").expect("written");
    fs::hard_link(tree.join("usr/lib/x/libx.so.1.0"), tree.join("usr/lib/x/other"))
        .expect("linked");
    symlink("libx.so.1.0", tree.join("usr/lib/x/libx.so")).expect("linked");
    symlink("../libx.so", tree.join("usr/lib/x/sub/up")).expect("linked");
    symlink("/etc/x", tree.join("usr/lib/x/settings")).expect("linked");
    fs::write(
        tree.join("DEBIAN/control"),
        "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: x\n",
    )
    .expect("written");
    let script = "cd \"$0\" && md5sum usr/lib/x/libx.so.1.0 usr/lib/x/other > DEBIAN/md5sums";
    run(tool("sh").args(["-ec", script]).arg(&tree));
    let deb = dir.path().join("x.deb");
    run(tool("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&tree).arg(&deb));
    let report = check(&deb);
    assert_eq!(report.findings, Vec::<String>::new());
    assert_eq!((report.files, report.links.len()), (5, 4), "{:?}", report.links);

    let spec = dir.path().join("x.spec");
    let text = "Name: x\nVersion: 1\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n\
                %description\nx\n\
                %install\nmkdir -p %{buildroot} && cp -a TREE/usr %{buildroot}\n\
                %files\n/usr/lib/x\n%ghost /usr/lib/x/ghost\n";
    let text = text.replace("TREE", tree.to_str().expect("UTF-8"));
    let text = text.replace("%files", "touch %{buildroot}/usr/lib/x/ghost\n%files");
    fs::write(&spec, text).expect("written");
    for payload in ["w3.zstdio", "w6.gzdio", "w1.xzdio"] {
        let top = dir.path().join(payload);
        let define = format!("_topdir {}", top.display());
        run(tool("rpmbuild")
            .args(["-bb", "--quiet", "--define", &define, "--define"])
            .arg(format!("_binary_payload {payload}"))
            .args(["--define", "_build_id_links none"])
            .arg(&spec));
        let package = top.join("RPMS/noarch/x-1-1.noarch.rpm");
        let report = check(&package);
        assert_eq!(report.findings, Vec::<String>::new(), "{payload}");
        assert_eq!((report.files, report.links.len()), (5, 4), "{:?}", report.links);
        run(tool("rpm").arg("-K").arg("--nosignature").arg(&package));
    }
    let text = fs::read_to_string(&spec).expect("read");
    fs::write(&spec, text.replace("%files", "%post -p /sbin/ldconfig\n%files")).expect("written");
    let top = dir.path().join("script");
    let define = format!("_topdir {}", top.display());
    run(tool("rpmbuild").args(["-bb", "--quiet", "--define", &define]).arg(&spec));
    let report = check(&top.join("RPMS/noarch/x-1-1.noarch.rpm"));
    assert_eq!(report.findings, ["its scriptlet would run as root"]);

    // More rights than those of who runs it, and a script that `rpm -V` runs.
    for (files, more, expected) in [
        ("%attr(4755,root,root) /usr/lib/x/other", "", "`/usr/lib/x/other` runs with the rights"),
        ("%caps(cap_net_raw=ep) /usr/lib/x/other", "", "a file in it runs with more rights"),
        ("%dir %attr(777,root,root) /usr/lib/x/sub", "", "`/usr/lib/x/sub` may be written to"),
        ("/usr/lib/x/other", "%verifyscript\ntrue\n", "its scriptlet would run as root"),
    ] {
        let (begin, _) = text.split_once("%files").expect("files");
        let list = format!("{begin}{more}%files\n{files}\n");
        fs::write(&spec, list).expect("written");
        // The other files are left out.
        let unpackaged = ["--define", "_unpackaged_files_terminate_build 0"];
        run(tool("rpmbuild")
            .args(["-bb", "--quiet", "--define", &define])
            .args(unpackaged)
            .arg(&spec));
        let findings = check(&top.join("RPMS/noarch/x-1-1.noarch.rpm")).findings;
        assert!(matches!(&findings[..], [one] if one.starts_with(expected)), "{findings:?}");
    }
}
