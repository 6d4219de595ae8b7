//! Wheels made by others, also by attackers.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use gfxpack_package::Format;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::archives::check;
use crate::support::{plain_spec, temp};

type Members = Vec<(String, Vec<u8>)>;
type Change<'a> = &'a dyn Fn(&mut Members);

fn written(dir: &Path) -> PathBuf {
    Format::Wheel.write(&plain_spec(vec![7; 3000]), dir, 1, None).expect("written").path
}

fn members(path: &Path) -> Members {
    let mut archive = ZipArchive::new(fs::File::open(path).expect("opens")).expect("a zip");
    let count = archive.len();
    let read = |index| {
        let mut member = archive.by_index(index).expect("a member");
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).expect("reads");
        (member.name().expect("UTF-8").into_owned(), bytes)
    };
    (0..count).map(read).collect()
}

fn packed(members: &Members) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(name.as_str(), SimpleFileOptions::default()).expect("started");
        zip.write_all(bytes).expect("written");
    }
    zip.finish().expect("finished").into_inner()
}

#[test]
fn files_that_differ_from_the_record_are_reported() {
    let dir = temp();
    let path = written(dir.path());
    let whole = members(&path);
    let at = |end: &str| whole.iter().position(|member| member.0.ends_with(end)).expect("there");
    let findings = |change: Change<'_>| {
        let mut members = whole.clone();
        change(&mut members);
        fs::write(&path, packed(&members)).expect("written");
        check(&path).findings.join("; ")
    };
    assert_eq!(findings(&|_| ()), "");
    let add = |name: &str| {
        let member = (name.to_owned(), b"x".to_vec());
        move |members: &mut Members| members.push(member.clone())
    };
    let (kdb, record) = (at(".kdb"), at("RECORD"));
    let cases: [(Change<'_>, &str); 4] = [
        (&add("other.py"), "`/other.py` is not in RECORD"),
        (&add("../x"), "`../x` leads out of"),
        (&|members| members[kdb].1[5] ^= 1, "gfx1030.kdb` is not what RECORD says"),
        (&|members| drop(members.remove(kdb)), "is in RECORD and not in the package"),
    ];
    for (change, expected) in cases {
        let findings = findings(change);
        assert!(findings.contains(expected), "{expected}: {findings}");
    }
    assert!(findings(&|members| drop(members.remove(record))).contains("there is no `RECORD`"));
}

#[test]
fn damage_to_a_wheel_is_a_finding_and_no_panic() {
    let dir = temp();
    let path = written(dir.path());
    let whole = fs::read(&path).expect("reads");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&path, &bytes).expect("written");
        drop(check(&path));
    }
    for end in (0..whole.len()).step_by(11) {
        fs::write(&path, &whole[..end]).expect("written");
        assert!(!check(&path).findings.is_empty(), "cut at {end}");
    }
    fs::write(&path, &whole).expect("written");
    assert_eq!(check(&path).findings, Vec::<String>::new());
}
