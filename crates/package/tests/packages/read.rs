//! Packages of others, and of whoever means harm: what is sound passes, all
//! else is told, and nothing panics, hangs or fills memory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::tar::{EntryType, Header};
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use gfxpack_package::read::{self, Kind, Report};
use gfxpack_package::rpm::{self, RpmOptions};

use crate::support::{plain_spec, run, temp, tool};

fn check(path: &Path) -> Report {
    let kind = Kind::of(path).expect("a package's name");
    read::check(path, kind, &mut |_, _| Ok(())).expect("reads")
}

/// An entry of a tar as nobody's tool writes it.
struct Entry<'a> {
    name: &'a str,
    kind: EntryType,
    mode: u32,
    target: &'a str,
    bytes: &'a [u8],
}

fn file<'a>(name: &'a str, bytes: &'a [u8]) -> Entry<'a> {
    Entry { name, kind: EntryType::Regular, mode: 0o644, target: "", bytes }
}

fn link<'a>(kind: EntryType, name: &'a str, target: &'a str) -> Entry<'a> {
    Entry { name, kind, mode: 0o777, target, bytes: &[] }
}

fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = tar_without_end(entries);
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn tar_without_end(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        let mut header = Header::new_gnu();
        // The library's own way in refuses what this is about.
        header.as_old_mut().name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        header.as_old_mut().linkname[..entry.target.len()].copy_from_slice(entry.target.as_bytes());
        header.set_entry_type(entry.kind);
        header.set_mode(entry.mode);
        header.set_size(entry.bytes.len() as u64);
        header.set_cksum();
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(entry.bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Level::fast());
    packed.write_all(bytes).expect("written");
    packed.finish().expect("written")
}

/// A .deb of these two archives.
fn deb(control: &[u8], data: &[u8]) -> Vec<u8> {
    let mut made = b"!<arch>\n".to_vec();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gz(control)),
        ("data.tar.gz", gz(data)),
    ];
    for (name, bytes) in members {
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100644, bytes.len());
        made.extend_from_slice(header.as_bytes());
        made.extend_from_slice(&bytes);
        made.resize(made.len().next_multiple_of(2), b'\n');
    }
    made
}

fn control() -> Vec<u8> {
    tar(&[file("./control", b"Package: x\nVersion: 1\nArchitecture: all\n")])
}

/// Writes both a tarball and a .deb of the archive.
fn both(dir: &Path, data: &[u8]) -> [PathBuf; 2] {
    let paths = [dir.join("x.tar.gz"), dir.join("x.deb")];
    fs::write(&paths[0], gz(data)).expect("written");
    fs::write(&paths[1], deb(&control(), data)).expect("written");
    paths
}

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

#[test]
fn archives_that_write_elsewhere_are_told() {
    let dir = temp();
    let kdb = file("./usr/x", b"x");
    let told =
        |entries: &[Entry<'_>]| both(dir.path(), &tar(entries)).map(|path| check(&path).findings);
    assert_eq!(told(&[kdb]), [Vec::<String>::new(), Vec::new()]);
    let symlink = |name, target| link(EntryType::Symlink, name, target);
    let cases: [(&[Entry<'_>], &str); 13] = [
        (&[file("./../../../../tmp/x", b"")], "`./../../../../tmp/x` leads out of"),
        (&[file("../x", b"")], "`../x` leads out of"),
        (&[file("/etc/cron.d/x", b"")], "`/etc/cron.d/x` leads out of"),
        (&[file("usr/../../x", b"")], "`usr/../../x` leads out of"),
        (&[link(EntryType::Directory, "../x/", "")], "`../x/` leads out of"),
        (&[Entry { mode: 0o4755, ..file("usr/x", b"") }], "`/usr/x` runs with the rights"),
        (&[Entry { mode: 0o2755, ..file("usr/x", b"") }], "`/usr/x` runs with the rights"),
        (&[symlink("usr/x", "../../etc/passwd")], "`/usr/x` is a link that leads out"),
        (
            &[symlink("usr/x", "y"), file("usr/x/z", b"")],
            "`/usr/x/z` lies behind the link `/usr/x`",
        ),
        (&[link(EntryType::Link, "usr/x", "usr/y")], "`/usr/x` is a link to no file"),
        (&[link(EntryType::Link, "usr/x", "/etc/passwd")], "`/usr/x` is a link to no file"),
        (&[link(EntryType::Fifo, "usr/x", "")], "`/usr/x` is no file: Fifo"),
        (&[link(EntryType::Char, "usr/x", "")], "`/usr/x` is no file: Char"),
    ];
    for (entries, expected) in cases {
        for findings in told(entries) {
            let [finding] = findings.as_slice() else { panic!("{expected}: {findings:?}") };
            assert!(finding.starts_with(expected), "{expected}: {finding}");
        }
    }
    // Below the system's root, which a tarball need not be unpacked in.
    let [tarball, deb] = told(&[symlink("usr/x", "/etc/x")]);
    assert_eq!((tarball.len(), deb.len()), (1, 0), "{tarball:?} {deb:?}");
}

/// `git archive` begins so; dpkg takes no such entries.
#[test]
fn what_is_said_of_all_files_may_be_a_comment() {
    let dir = temp();
    let comment = format!("52 comment={:040}\n", 1);
    for (records, sound) in [(&*comment, true), ("16 path=../../x\n", false)] {
        let global = Entry {
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
fn what_rpm_and_dpkg_do_not_take_is_told() {
    let dir = temp();
    let written = rpm::write(&plain_spec(vec![7; 100]), dir.path(), &RpmOptions::default());
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
fn an_archive_ends_once_and_nothing_is_behind_it() {
    let dir = temp();
    let entries = [file("./usr/x", b"x")];
    let whole = tar(&entries);
    let told = |data: &[u8]| both(dir.path(), data).map(|path| check(&path).findings.join("; "));
    assert_eq!(told(&whole), ["", ""]);
    assert_eq!(told(&[&whole[..], &[0; 8192]].concat()), ["", ""]);
    for (data, expected) in [
        (tar_without_end(&entries), "has no end"),
        (whole[..whole.len() - 512].to_vec(), "has no end"),
        ([&whole[..], &whole].concat(), "there is more behind the end of"),
        ([&whole[..], b"\n"].concat(), "there is more behind the end of"),
    ] {
        for findings in told(&data) {
            assert!(findings.contains(expected), "{expected}: {findings}");
        }
    }
}

#[test]
fn what_unpacks_to_too_much_is_told_and_not_kept() {
    let dir = temp();
    let zeros = vec![0; 65 << 20];
    let bomb = tar(&[file("./md5sums", &zeros)]);
    let path = dir.path().join("x.deb");
    fs::write(&path, deb(&bomb, &tar(&[]))).expect("written");
    assert!(fs::metadata(&path).expect("there").len() < 1 << 20, "it is small");
    let findings = check(&path).findings.join("; ");
    assert!(findings.contains("there are more than 67108864 bytes"), "{findings}");
    // Names and attributes before a file are kept whole by who reads them.
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let long = Entry { kind, ..file("././@LongLink", &zeros) };
        for path in both(dir.path(), &tar(&[long, file("x", b"")])) {
            let findings = check(&path).findings.join("; ");
            assert!(findings.contains("too long"), "{kind:?}: {findings}");
        }
    }
    let text = gz(&zeros);
    let unpacked = |max| read::unpacked_text(Path::new("primary.xml.gz"), &text, max);
    assert_eq!(unpacked(65 << 20).expect("as much as may be").len(), 65 << 20);
    let error = unpacked((65 << 20) - 1).expect_err("more than may be");
    assert!(error.to_string().contains("more than"), "{error}");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let dir = temp();
    let fifo = dir.path().join("x.deb");
    run(tool("mkfifo").arg(&fifo));
    let error = read::check(&fifo, Kind::Deb, &mut |_, _| Ok(())).expect_err("no file");
    assert!(matches!(error, read::ReadError::Io { .. }), "{error:?}");
    assert!(gfxpack_package::sums::digest_file(&fifo).is_err());
    assert!(read::bytes(Path::new("/dev/zero"), u64::MAX).is_err());
}

/// Every number in the indexes is made one that is too large, and bytes here
/// and there others.
#[test]
fn no_damage_to_the_headers_of_an_rpm_is_more_than_a_finding() {
    let dir = temp();
    let spec = plain_spec(vec![7; 100]);
    let written = rpm::write(&spec, dir.path(), &RpmOptions::default()).expect("written");
    let whole = fs::read(&written.path).expect("read");
    let payload = whole.windows(4).rposition(|four| four == [0x28, 0xb5, 0x2f, 0xfd]);
    let payload = payload.expect("the payload is zstd's");
    let path = dir.path().join("damaged.rpm");
    let damaged = |at: usize, value: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        fs::write(&path, &bytes).expect("written");
        check(&path).findings
    };
    let magic = [0x8e, 0xad, 0xe8, 1];
    let starts = (96..payload).filter(|at| whole[*at..].starts_with(&magic));
    let starts: Vec<usize> = starts.collect();
    assert_eq!(starts.len(), 2, "two headers");
    for start in starts {
        let entries = u32::from_be_bytes(whole[start + 8..start + 12].try_into().expect("four"));
        for at in (start + 8..start + 16 + entries as usize * 16).step_by(4) {
            for value in [u32::MAX, i32::MAX as u32, 1 << 16] {
                let findings = damaged(at, &value.to_be_bytes());
                // An entry of a tag that is unknown may be there.
                let is_tag = at >= start + 16 && (at - start) % 16 == 0;
                assert!(is_tag || !findings.is_empty(), "{value} at {at}");
            }
        }
    }
    for at in (0..payload).step_by(23) {
        damaged(at, &[whole[at] ^ 1]);
        fs::write(&path, &whole[..at]).expect("written");
        assert!(!check(&path).findings.is_empty(), "{at} bytes");
    }
}
