//! Lookups over directories of kdbs, whole and damaged.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_plan::{KernelKey, Target};
use gfxpack_runtime::{Answer, Finder};

const GFX906: u8 = 0x2f;
const GFX90A: u8 = 0x3f;

fn key(args: &str) -> KernelKey {
    KernelKey { kernel_name: "conv.cl.o".to_owned(), kernel_args: args.to_owned() }
}

/// A code object that tells by its last byte which file it came from.
fn code_object(mach: u8, mark: u8) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    bytes.resize(200, mark);
    bytes[18..20].copy_from_slice(&[0xe0, 0]);
    bytes[48..52].copy_from_slice(&[mach, 5, 0, 0]);
    bytes
}

fn kdb(path: &Path, kernels: &[(&str, Vec<u8>)]) {
    let keys: Vec<KernelKey> = kernels.iter().map(|(args, _)| key(args)).collect();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 200 }).collect();
    let object = |index: usize| io::Result::Ok(kernels[index].1.clone());
    write(path, &rows, &WriteOptions::default(), object).unwrap();
}

struct Fixture {
    _directory: tempfile::TempDir,
    exact: PathBuf,
    wide: PathBuf,
    finder: Finder,
}

const BOTH: &str = " -DBOTH -mcpu=gfx906";
const WIDE: &str = " -DWIDE -mcpu=gfx906";

/// `gfx906_60.kdb` with one kernel, `gfx906.kdb` with that and another.
fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let exact = directory.path().join("gfx906_60.kdb");
    let wide = directory.path().join("gfx906.kdb");
    kdb(&exact, &[(BOTH, code_object(GFX906, 1))]);
    kdb(&wide, &[(BOTH, code_object(GFX906, 2)), (WIDE, code_object(GFX906, 2))]);
    let target: Target = "gfx906:sramecc+:xnack-@60".parse().unwrap();
    let finder = Finder::new([directory.path()], &target);
    assert_eq!(finder.files(), [exact.clone(), wide.clone()]);
    Fixture { _directory: directory, exact, wide, finder }
}

fn reasons(answer: &Answer) -> Vec<&'static str> {
    answer.misses.iter().map(|miss| miss.reason.name()).collect()
}

#[track_caller]
fn check(fixture: &Fixture, args: &str, hit: Option<(&Path, u8)>, misses: &[&str]) -> Answer {
    let answer = fixture.finder.find(&key(args));
    let found = answer.found.as_ref();
    let found = found.map(|found| (found.file.as_path(), *found.code_object.last().unwrap()));
    assert_eq!(found, hit);
    assert_eq!(reasons(&answer), misses);
    for miss in &answer.misses {
        assert!(!miss.reason.hint().is_empty());
    }
    answer
}

#[test]
fn the_exact_file_comes_first() {
    let fixture = fixture();
    check(&fixture, BOTH, Some((&fixture.exact, 1)), &[]);
}

#[test]
fn the_device_wide_file_serves_what_the_exact_one_lacks() {
    let fixture = fixture();
    let answer = check(&fixture, WIDE, Some((&fixture.wide, 2)), &["no-kernel"]);
    assert_eq!(answer.misses[0].file, fixture.exact);
    std::fs::remove_file(&fixture.exact).unwrap();
    check(&fixture, BOTH, Some((&fixture.wide, 2)), &["no-file"]);
}

#[test]
fn a_miss_says_why_of_every_file() {
    let fixture = fixture();
    let answer = check(&fixture, " -DNONE -mcpu=gfx906", None, &["no-kernel", "no-kernel"]);
    assert!(answer.misses.iter().all(|miss| !miss.reason.is_fault()));
    std::fs::remove_file(&fixture.wide).unwrap();
    check(&fixture, WIDE, None, &["no-kernel", "no-file"]);
    // Keys are bytes: a leading blank is part of one.
    check(&fixture, BOTH.trim_start(), None, &["no-kernel", "no-file"]);
}

#[test]
fn a_damaged_file_is_a_miss_and_the_next_is_asked() {
    let damage = |bytes: &[u8], reason: &str| {
        let fixture = fixture();
        std::fs::write(&fixture.exact, bytes).unwrap();
        let answer = check(&fixture, BOTH, Some((&fixture.wide, 2)), &[reason]);
        assert!(answer.misses[0].reason.is_fault());
        assert!(std::error::Error::source(&answer.misses[0].reason).is_some());
    };
    damage(b"", "unreadable");
    damage(b"version https://git-lfs.github.com/spec/v1\n", "unreadable");
    damage(&[7; 5000], "unreadable");
    let fixture = fixture();
    let whole = std::fs::read(&fixture.exact).unwrap();
    for cut in [600, 4096, 5000] {
        damage(&whole[..cut], "unreadable");
    }
    let mut wal = whole;
    wal[18..20].copy_from_slice(&[2, 2]);
    damage(&wal, "unreadable");
}

#[test]
fn a_damaged_kernel_is_a_miss_and_the_next_is_asked() {
    let damage = |sql: &str| {
        let fixture = fixture();
        let connection = rusqlite::Connection::open(&fixture.exact).unwrap();
        connection.execute_batch(sql).unwrap();
        connection.close().unwrap();
        let answer = check(&fixture, BOTH, Some((&fixture.wide, 2)), &["damaged"]);
        assert!(answer.misses[0].reason.is_fault());
    };
    damage("UPDATE kern_db SET kernel_blob = x'00'");
    damage("UPDATE kern_db SET kernel_hash = upper(kernel_hash)");
    damage("UPDATE kern_db SET kernel_hash = kernel_hash || ' '");
    damage("UPDATE kern_db SET uncompressed_size = 1");
    damage("UPDATE kern_db SET uncompressed_size = 1 << 50");
}

#[test]
fn code_for_another_device_is_a_miss() {
    let fixture = fixture();
    kdb(&fixture.exact, &[(BOTH, code_object(GFX90A, 1))]);
    check(&fixture, BOTH, Some((&fixture.wide, 2)), &["other-target"]);
    let mut xnack = code_object(GFX906, 1);
    // XNACK on: 3 in bits 8 and 9 of the flags; the device has it off.
    xnack[49] = 3;
    kdb(&fixture.exact, &[(BOTH, xnack)]);
    check(&fixture, BOTH, Some((&fixture.wide, 2)), &["other-target"]);
    kdb(&fixture.exact, &[(BOTH, b"text that is no code object".to_vec())]);
    check(&fixture, BOTH, Some((&fixture.wide, 2)), &["no-code-object"]);
}

#[test]
fn directories_are_asked_in_order() {
    let (first, second) = (fixture(), fixture());
    let target: Target = "gfx906_60".parse().unwrap();
    let directories = [
        Path::new(""),
        Path::new("/nonexistent"),
        first.exact.parent().unwrap(),
        second.exact.parent().unwrap(),
    ];
    let finder = Finder::new(directories, &target);
    assert_eq!(finder.files().len(), 6, "the empty name is no directory");
    let found = finder.find(&key(WIDE)).found.unwrap();
    assert_eq!(found.file, first.wide);
    std::fs::remove_file(&first.wide).unwrap();
    let answer = finder.find(&key(WIDE));
    assert_eq!(answer.found.as_ref().unwrap().file, second.wide);
    let expected = ["no-file", "no-file", "no-kernel", "no-file", "no-kernel"];
    assert_eq!(reasons(&answer), expected);
}

#[test]
fn xnack_has_files_of_its_own() {
    let files = |target: &str| -> Vec<String> {
        let finder = Finder::new(["/db"], &target.parse().unwrap());
        finder.files().iter().map(|file| file.display().to_string()).collect()
    };
    assert_eq!(files("gfx90a:xnack+@104"), ["/db/gfx90a_xnack68.kdb", "/db/gfx90a_xnack.kdb"]);
    assert_eq!(files("gfx90a:xnack-@104"), ["/db/gfx90a68.kdb", "/db/gfx90a.kdb"]);
    assert_eq!(files("gfx1030"), ["/db/gfx1030.kdb"]);
}

#[test]
fn a_device_newer_than_the_table_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let args = " -DX -mcpu=gfx1999";
    kdb(&directory.path().join("gfx1999_40.kdb"), &[(args, code_object(0xfd, 1))]);
    let finder = Finder::new([directory.path()], &"gfx1999@40".parse().unwrap());
    assert!(finder.find(&key(args)).found.is_some());
}
