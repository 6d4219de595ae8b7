//! Ways in which a kdb may be changed, and the results of reading and verifying
//! it.

use std::path::Path;

use gfxpack_kdb::FindingClass::{self, *};
use gfxpack_kdb::{KdbErrorKind, Reader, Report, VerifyOptions, verify};
use gfxpack_model::{KernelKey, Target, in_full};

use crate::support::{
    GFX90A, code_object, kernels, listing, mkfifo, to_wal_mode, write_kernels, written,
};

fn report(path: &Path) -> Report {
    verify(path, None, &VerifyOptions::default()).unwrap()
}

fn classes(report: &Report) -> Vec<FindingClass> {
    report.findings.iter().map(|finding| finding.class).collect()
}

/// Row 1 compresses, row 2 does not.
#[track_caller]
fn check(sql: &str, expected: &[FindingClass]) -> Report {
    let (directory, path) = written();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    connection.close().unwrap();
    let report = report(&path);
    assert_eq!(classes(&report), expected, "{sql}: {:?}", report.findings);
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"], "nothing is made beside the file");
    report
}

#[test]
fn an_undamaged_file_is_sound() {
    let report = check("", &[]);
    assert!(report.is_sound());
    assert_eq!(report.rows, 9);
}

#[test]
fn every_tampered_column_is_found() {
    let row = |assignment: &str, row: u64, expected: &[FindingClass]| {
        let report = check(&format!("UPDATE kern_db SET {assignment} WHERE id = {row}"), expected);
        let finding = &report.findings[0];
        assert_eq!(finding.row, Some(row), "the row is named");
        assert_eq!(report.rows, 9, "the others are looked at");
        assert_eq!(report.total_findings(), expected.len() as u64);
        finding.clone()
    };
    row("kernel_hash = upper(kernel_hash)", 1, &[HashForm]);
    row("kernel_hash = substr(kernel_hash, 2)", 1, &[HashForm]);
    row("kernel_hash = ''", 2, &[HashForm]);
    row("kernel_hash = replace(hex(zeroblob(16)), '0', 'a')", 2, &[Hash]);
    row("kernel_hash = zeroblob(16)", 2, &[Column]);
    row("kernel_blob = x'00'", 1, &[Blob]);
    row("kernel_blob = x''", 1, &[Blob]);
    row("kernel_blob = substr(kernel_blob, 1, length(kernel_blob) - 1)", 1, &[Blob]);
    row("kernel_blob = kernel_blob || x'00'", 1, &[Column]);
    row("kernel_blob = cast(kernel_blob || x'00' AS BLOB)", 1, &[Blob]);
    row("kernel_blob = 'text'", 2, &[Column]);
    row("kernel_blob = cast('no code object' AS BLOB)", 2, &[Hash, CodeObject]);
    row("uncompressed_size = 0", 1, &[Hash, CodeObject]);
    row("uncompressed_size = 64", 2, &[Blob]);
    row("uncompressed_size = uncompressed_size + 1", 1, &[Blob]);
    row("uncompressed_size = uncompressed_size - 1", 1, &[Blob]);
    row("uncompressed_size = -1", 1, &[Blob]);
    row("uncompressed_size = 9223372036854775807", 1, &[Blob]);
    row("uncompressed_size = 1.5", 1, &[Column]);
    row("uncompressed_size = 'many'", 1, &[Column]);
    row("kernel_args = ' -DX=''a'' -mcpu=gfx906'", 1, &[Key]);
    row("kernel_name = 'it''s.cl.o'", 1, &[Key]);
    row("kernel_args = kernel_args || char(0)", 1, &[Key, Device]);
    row("kernel_args = ' -DX'", 1, &[Device]);
    row("kernel_args = ' -DX -mcpu=gfx90a'", 1, &[Device]);
    row("kernel_args = ' -DX -mcpu=gfx906:xnack-'", 1, &[Device]);
    row("kernel_args = cast(x'ff2d' AS TEXT)", 1, &[Column]);
    row("kernel_name = cast('blob.cl.o' AS BLOB)", 1, &[Column]);
    let finding = row("kernel_name = 'x.cl.o', kernel_hash = '?'", 1, &[HashForm]);
    assert_eq!(finding.key.unwrap().kernel_name, "x.cl.o", "the key is given");
}

#[test]
fn another_schema_is_found() {
    check("DROP INDEX idx_kern_db", &[Schema]);
    check(
        "DROP INDEX idx_kern_db; CREATE INDEX idx_kern_db ON kern_db (kernel_name, kernel_args)",
        &[Schema],
    );
    check(
        "DROP INDEX idx_kern_db;
         CREATE UNIQUE INDEX i ON kern_db (kernel_name, kernel_args) WHERE id > 3",
        &[Schema],
    );
    check(
        "DROP INDEX idx_kern_db; CREATE UNIQUE INDEX i ON kern_db (kernel_name, kernel_args)",
        &[],
    );
    check("DROP TABLE kern_db", &[Schema]);
    check("ALTER TABLE kern_db RENAME COLUMN kernel_hash TO sha", &[Schema]);
    check("ALTER TABLE kern_db ADD COLUMN note TEXT", &[]);
    check(
        "CREATE TABLE k (id INTEGER PRIMARY KEY, kernel_name BLOB NOT NULL, kernel_args TEXT NOT NULL,
           kernel_blob BLOB, kernel_hash TEXT NOT NULL, uncompressed_size INT NOT NULL);
         INSERT INTO k SELECT * FROM kern_db; DROP TABLE kern_db; ALTER TABLE k RENAME TO kern_db;
         CREATE UNIQUE INDEX idx_kern_db ON kern_db (kernel_name, kernel_args)",
        &[Schema, Schema],
    );
}

#[test]
fn code_for_another_target_is_found() {
    let (_directory, path) = written();
    let target = |text: &str| -> Target { text.parse().unwrap() };
    let against = |text| verify(&path, Some(&target(text)), &VerifyOptions::default()).unwrap();
    assert!(against("gfx906").is_sound());
    assert!(against("gfx906:xnack+@60").is_sound(), "features at any serve each");
    let wrong = against("gfx90a@104");
    assert_eq!(wrong.counts.get(&FindingClass::Target), Some(&9));
    assert_eq!(wrong.counts.get(&Device), Some(&8), "the mlir kernel names no device");

    let mut kernels = kernels();
    kernels[3].1 = code_object(GFX90A, 1, 500, true);
    // XNACK on (V4 and later: 3 in bits 8 and 9) for a kdb whose file name says
    // off.
    kernels[4].1[49] = 3;
    kernels[5].1[48] = 0xfe;
    write_kernels(&path, &kernels, gfxpack_kdb::Blob::Smaller);
    let found = report(&path);
    let rows: Vec<_> = found.findings.iter().map(|finding| (finding.row, finding.class)).collect();
    let target = FindingClass::Target;
    assert_eq!(rows, [(Some(4), target), (Some(5), target), (Some(6), target)]);
    assert!(found.findings[0].detail.contains("gfx90a"), "{}", found.findings[0]);

    // Without a target in the file name, each object must still fit its own
    // key.
    let unnamed = path.with_file_name("kernels.kdb");
    std::fs::copy(&path, &unnamed).unwrap();
    let found = report(&unnamed);
    assert_eq!(found.target, None);
    let rows: Vec<_> = found.findings.iter().map(|finding| finding.row).collect();
    assert_eq!(rows, [Some(4), Some(6)], "XNACK can't be judged without a file name");
}

#[test]
fn a_file_that_is_not_a_kdb_gets_its_own_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let found = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        (classes(&report(&path)), Reader::open(&path).err().expect("it does not open"))
    };
    let (classes, error) = found(b"version https://git-lfs.github.com/spec/v1\nsize 600000000\n");
    assert_eq!(classes, [TooSmall]);
    assert_eq!(error.kind(), KdbErrorKind::TooSmall);
    assert!(error.to_string().contains(": 58 bytes are less"), "{error}");
    assert!(error.hint().contains("git lfs"));
    assert_eq!(found(b"").0, [TooSmall]);
    let (classes, error) = found(&[0x5a; 9000]);
    assert_eq!(classes, [NotSqlite]);
    assert!(error.to_string().ends_with("no SQLite 3 file"), "{error}");

    let absent = directory.path().join("absent.kdb");
    assert!(
        verify(&absent, None, &VerifyOptions::default()).unwrap_err().kind()
            == KdbErrorKind::Absent
    );
    assert!(Reader::open(&absent).err().unwrap().kind() == KdbErrorKind::Absent);
    let pipe = directory.path().join("pipe.kdb");
    mkfifo(&pipe);
    for path in [directory.path(), &pipe] {
        let error = Reader::open(path).err().unwrap();
        assert!(error.to_string().ends_with("it is no regular file"), "{error}");
    }
}

#[test]
fn a_kdb_in_wal_mode_is_refused_and_reported() {
    let (directory, path) = written();
    to_wal_mode(&path);
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
    let error = Reader::open(&path).err().unwrap();
    assert!(error.to_string().ends_with("its journal mode is `wal`, not `delete`"), "{error}");
    let found = report(&path);
    assert_eq!(classes(&found), [JournalMode]);
    assert_eq!(found.rows, 9, "the rows are looked at all the same");
    assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
}

#[test]
fn every_truncation_is_found_and_never_gives_other_bytes() {
    let (_directory, path) = written();
    let whole = std::fs::read(&path).unwrap();
    let kernels = kernels();
    for cut in (0..whole.len()).step_by(1000).chain((0..whole.len()).step_by(4096)) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(!report(&path).is_sound(), "cut at {cut}");
        let Ok(reader) = Reader::open(&path) else { continue };
        for (key, object) in &kernels {
            if let Ok(Some(found)) = reader.get(key) {
                assert!(found == *object, "cut at {cut}");
            }
        }
    }
}

/// Position of the last kernel's key in the index, and the key.
fn last_index_entry(bytes: &[u8]) -> (std::ops::Range<usize>, KernelKey) {
    const INDEX_LEAF: u8 = 0x0a;
    let (key, _) = kernels().pop().unwrap();
    let text = format!("{}{}", key.kernel_name, key.kernel_args);
    let at = (0..bytes.len() - text.len())
        .filter(|at| bytes[*at..].starts_with(text.as_bytes()))
        .find(|at| bytes[at / 4096 * 4096] == INDEX_LEAF)
        .expect("the index holds the key");
    (at..at + text.len(), key)
}

#[test]
fn a_damaged_index_is_found() {
    let (_directory, path) = written();
    let mut bytes = std::fs::read(&path).unwrap();
    let (entry, key) = last_index_entry(&bytes);
    bytes[entry.start] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let found = report(&path);
    assert!(found.counts.contains_key(&Integrity), "{:?}", found.findings);
    assert_eq!(found.rows, 9);
    assert_eq!(Reader::open(&path).unwrap().get(&key).unwrap(), None);
}

#[test]
fn a_wrong_index_entry_is_an_error_and_not_another_kernel() {
    let (_directory, path) = written();
    let mut bytes = std::fs::read(&path).unwrap();
    let (entry, key) = last_index_entry(&bytes);
    // The row's id follows the key.
    assert_eq!(bytes[entry.end], 9);
    bytes[entry.end] = 2;
    std::fs::write(&path, bytes).unwrap();
    let error = Reader::open(&path).unwrap().get(&key).unwrap_err();
    assert_eq!(error.kind(), KdbErrorKind::RowIndex);
    let other = format!("the index leads to `{}`", kernels()[1].0);
    assert!(in_full(&error).ends_with(&other), "{error:?}");
    assert!(report(&path).counts.contains_key(&Integrity));
}

#[test]
fn files_left_beside_a_kdb_change_nothing() {
    let (directory, path) = written();
    for suffix in ["-journal", "-wal", "-shm"] {
        std::fs::write(path.with_file_name(format!("gfx906_60.kdb{suffix}")), [0xd9; 600]).unwrap();
    }
    let before = listing(directory.path());
    let reader = Reader::open(&path).unwrap();
    for (key, object) in kernels() {
        assert_eq!(reader.get(&key).unwrap(), Some(object));
    }
    assert!(report(&path).is_sound());
    assert_eq!(listing(directory.path()), before);
}
