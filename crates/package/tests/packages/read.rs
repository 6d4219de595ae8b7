//! Packages made by others, also by attackers: sound ones pass, all else is
//! reported, and nothing panics, hangs or fills memory.

use std::fs;
use std::path::Path;

use ::tar::EntryType;
use gfxpack_package::Format;
use gfxpack_package::read::{self, PackageKind};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::archives::{TarEntry, both, check, deb, file, gz, link, tar};
use crate::support::{plain_spec, temp};

#[test]
fn what_is_no_plain_file_below_the_root_is_reported() {
    let dir = temp();
    let findings_of = |entries: &[TarEntry<'_>]| {
        both(dir.path(), &tar(entries)).map(|path| check(&path).findings)
    };
    assert_eq!(findings_of(&[file("./usr/x", b"x")]), [Vec::<String>::new(), Vec::new()]);
    let cases: [(TarEntry<'_>, &str); 8] = [
        (file("./../../../../tmp/x", b""), "`./../../../../tmp/x` leads out of"),
        (file("/etc/cron.d/x", b""), "`/etc/cron.d/x` leads out of"),
        (TarEntry { mode: 0o4755, ..file("usr/x", b"") }, "`/usr/x` runs with the rights"),
        (TarEntry { mode: 0o2755, ..file("usr/x", b"") }, "`/usr/x` runs with the rights"),
        (TarEntry { mode: 0o666, ..file("usr/x", b"") }, "`/usr/x` may be written to"),
        (link(EntryType::Directory, "usr/x", ""), "`/usr/x` may be written to by everybody"),
        (link(EntryType::Fifo, "usr/x", ""), "`/usr/x` is no file: Fifo"),
        (link(EntryType::Char, "usr/x", ""), "`/usr/x` is no file: Char"),
    ];
    for (entry, expected) in cases {
        for findings in findings_of(&[entry]) {
            let [finding] = findings.as_slice() else { panic!("{expected}: {findings:?}") };
            assert!(finding.starts_with(expected), "{expected}: {finding}");
        }
    }
}

#[test]
fn files_that_differ_from_md5sums_and_scripts_are_reported() {
    let dir = temp();
    let path = dir.path().join("x.deb");
    let sums = "9dd4e461268c8034f5c8564e155c67a6  usr/x\n";
    let findings = |more: TarEntry<'_>, data: &[TarEntry<'_>]| {
        let control = file("./control", b"Package: x\n");
        fs::write(&path, deb(&tar(&[control, more]), &tar(data))).expect("written");
        check(&path).findings
    };
    let sums = || file("./md5sums", sums.as_bytes());
    let none: [&str; 0] = [];
    assert_eq!(findings(sums(), &[file("./usr/x", b"x")]), none);
    assert_eq!(findings(sums(), &[file("./usr/x", b"y")]), ["`/usr/x` is not what md5sums says"]);
    assert_eq!(findings(sums(), &[]), ["`/usr/x` is in md5sums and not in the package"]);
    let script = findings(file("./postinst", b""), &[]);
    assert_eq!(script, ["its postinst would run as root"]);
}

#[test]
fn an_archive_that_unpacks_to_too_much_is_reported_and_not_kept() {
    let dir = temp();
    let zeros = vec![0; 65 << 20];
    let bomb = tar(&[file("./md5sums", &zeros)]);
    let path = dir.path().join("x.deb");
    fs::write(&path, deb(&bomb, &tar(&[]))).expect("written");
    assert!(fs::metadata(&path).expect("there").len() < 1 << 20, "it is small");
    let findings = check(&path).findings.join("; ");
    assert!(findings.contains("there are more than 67108864 bytes"), "{findings}");
    // Readers keep names and attributes before a file in memory.
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let long = TarEntry { kind, ..file("././@LongLink", &zeros) };
        for path in both(dir.path(), &tar(&[long, file("x", b"")])) {
            let findings = check(&path).findings.join("; ");
            assert!(findings.contains("longer than"), "{kind:?}: {findings}");
        }
    }
    let text = gz(&zeros);
    let unpacked = |max| read::unpacked_text(Path::new("primary.xml.gz"), &text, max);
    assert_eq!(unpacked(65 << 20).expect("as much as may be").len(), 65 << 20);
    let error = unpacked((65 << 20) - 1).expect_err("more than may be");
    assert!(error.to_string().contains("more than"), "{error}");
}

#[test]
fn reading_a_pipe_or_a_device_does_not_block() {
    let dir = temp();
    let fifo = dir.path().join("x.deb");
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &fifo, FileType::Fifo, mode, 0).expect("made");
    let error = read::check(&fifo, PackageKind::Deb, &mut |_, _| Ok(())).expect_err("no file");
    assert_eq!(error.to_string(), format!("failed to read `{}`", fifo.display()));
    assert!(gfxpack_package::sums::digest_file(&fifo).is_err());
    assert!(read::bytes(Path::new("/dev/zero"), u64::MAX).is_err());
}

/// Sets every number in the indexes to one that is too large, and changes bytes
/// here and there.
#[test]
fn damage_to_the_headers_of_an_rpm_is_a_finding_and_no_panic() {
    let dir = temp();
    let spec = plain_spec(vec![7; 100]);
    let written = Format::RPM.write(&spec, dir.path(), 1, None).expect("written");
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
                // Of the signature header, only the digest is used here.
                assert!(start == 96 || !findings.is_empty(), "{value} at {at}");
            }
        }
    }
    for at in (0..payload).step_by(23) {
        damaged(at, &[whole[at] ^ 1]);
        fs::write(&path, &whole[..at]).expect("written");
        assert!(!check(&path).findings.is_empty(), "{at} bytes");
    }
    fs::write(&path, &whole[..payload + 40]).expect("written");
    let findings = check(&path).findings.join("; ");
    assert!(findings.contains("failed to read `the payload`: it ends early"), "{findings}");
}
