//! Packages by other programs: those that rpm and dpkg accept are sound, and no others.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use ::tar::EntryType;
use gfxpack_package::Format;

use crate::archives::{TarEntry, both, check, control, deb, file, tar};
use crate::judged;
use crate::support::{plain_spec, run, temp, tool};

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
}

/// `git archive` begins so; dpkg takes no such entries.
#[test]
fn headers_about_all_files_may_be_comments() {
    let dir = temp();
    let comment = format!("52 comment={:040}\n", 1);
    for (records, sound) in [(&*comment, true), ("16 path=../../x\n", false)] {
        let global = TarEntry {
            kind: EntryType::XGlobalHeader,
            ..file("pax_global_header", records.as_bytes())
        };
        let [tarball, deb] = both(dir.path(), &tar(&[global, file("./usr/x", b"x")]));
        assert_eq!(check(&tarball).findings.is_empty(), sound, "{records}");
        let listed = run(tool("tar").arg("-tzf").arg(&tarball));
        assert_eq!(listed.contains("./usr/x"), sound, "{records}: {listed}");
        assert!(!check(&deb).findings.is_empty(), "{records}");
    }
}

/// Whether a program ends well.
fn takes(command: &mut Command) -> bool {
    command.output().expect("it starts").status.success()
}

#[test]
fn packages_that_rpm_and_dpkg_refuse_are_reported() {
    let dir = temp();
    let written = Format::RPM.write(&plain_spec(vec![7; 100]), dir.path(), 1, None);
    let whole = fs::read(written.expect("written").path).expect("read");
    let package = dir.path().join("other.rpm");
    for (at, byte, sound) in [
        (0, 0xec, false),
        (3, 0xda, false),
        (4, 2, false),
        (4, 4, true),
        (4, 5, false),
        (5, 1, true),
        (78, 1, false),
        (79, 4, false),
    ] {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        fs::write(&package, bytes).expect("written");
        let findings = check(&package).findings;
        assert_eq!(findings.is_empty(), sound, "{byte} at {at}: {findings:?}");
        assert_eq!(takes(tool("rpm").arg("-K").arg(&package)), sound, "{byte} at {at}");
    }
    let package = dir.path().join("other.deb");
    let whole = deb(&control(), &tar(&[file("./usr/x", b"x")]));
    let at = 8 + 60;
    assert_eq!(whole[at..at + 4], *b"2.0\n");
    for (version, sound) in
        [("2.0\n", true), ("2.9\n", true), ("2.0 ", false), ("2..\n", false), ("2.x\n", false)]
    {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(version.as_bytes());
        fs::write(&package, bytes).expect("written");
        let findings = check(&package).findings;
        assert_eq!(findings.is_empty(), sound, "{version:?}: {findings:?}");
        assert_eq!(takes(tool("dpkg-deb").arg("--info").arg(&package)), sound, "{version:?}");
    }
}

#[test]
fn rpm_and_dpkg_refuse_exactly_the_reported_packages() {
    let dir = temp();
    for (ending, bytes, expected) in judged::rpms(dir.path()).into_iter().chain(judged::debs()) {
        let path = dir.path().join("judged").with_extension(ending);
        fs::write(&path, bytes).expect("written");
        let taken = if ending == "rpm" {
            takes(tool("rpm").arg("-K").arg(&path)) && takes(tool("rpm").arg("-qp").arg(&path))
        } else {
            // The first reads the fields, the second lists the files.
            takes(tool("dpkg-deb").arg("-W").arg(&path))
                && takes(tool("dpkg-deb").arg("-c").arg(&path))
        };
        assert_eq!(taken, expected.is_empty(), "{ending}: {expected}");
    }
}
