//! Files made to harm their reader. The work that they cause is counted, in
//! bytes that are read and unpacked.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use bzip2::Compression;
use bzip2::write::BzEncoder;
use gfxpack_kdb::{
    Blob, Conflict, CopyOptions, FindingClass, KdbErrorKind, MAX_OBJECT_BYTES, ReadError, Reader,
    Report, VerifyOptions, diff, merge, verify,
};
use gfxpack_model::{KernelKey, in_full};
use md5::{Digest as _, Md5};

use crate::support::{EMPTY, GFX906, code_object, kernels, key, listing, write_kernels, written};

/// A kdb changed by SQL statements.
fn changed(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let (directory, path) = written();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    (directory, path)
}

/// Replaces the table by a view.
fn with_view(select: &str) -> (tempfile::TempDir, PathBuf) {
    changed(&format!(
        "DROP TABLE kern_db; CREATE VIEW kern_db
         (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) AS {select}"
    ))
}

fn report(path: &Path) -> Report {
    verify(path, None, &VerifyOptions::default()).unwrap()
}

/// Checks that opening fails, before any row is read.
#[track_caller]
fn assert_refused(path: &Path, statement: &str) {
    let error = Reader::open(path).err().unwrap();
    assert!(error.to_string().contains(&format!("its schema has `{statement}")), "{error}");
    let found = report(path);
    assert_eq!(found.counts.get(&FindingClass::Schema), Some(&1), "{:?}", found.findings);
    assert_eq!((found.rows, found.total_findings()), (0, 1));
}

#[test]
fn views_and_virtual_tables_are_rejected() {
    for select in [
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
         SELECT 'a.cl.o', ' -mcpu=gfx906', x'00', '', 0 FROM n WHERE x < 0",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
         SELECT 'a.cl.o', x || ' -mcpu=gfx906', x'00', '', 0 FROM n",
        "SELECT 'a.cl.o', ' -mcpu=gfx906', zeroblob(200000000), '', 0",
        "SELECT load_extension('x'), 1, 2, 3, 4",
        "SELECT 'a.cl.o', ' -mcpu=gfx906', data, '', 0 FROM sqlite_dbpage",
    ] {
        let (directory, path) = with_view(select);
        assert_refused(&path, "CREATE VIEW kern_db");
        assert_eq!(listing(directory.path()), ["gfx906_60.kdb"]);
    }
    let (_directory, path) = changed(
        "CREATE VIRTUAL TABLE more USING fts5(kernel_name);
         CREATE TRIGGER t AFTER INSERT ON kern_db BEGIN DELETE FROM kern_db; END",
    );
    assert_refused(&path, "CREATE VIRTUAL TABLE more");
    // The entry's type and name can say anything.
    let (_directory, path) = with_view("SELECT 1, 2, zeroblob(200000000), 4, 5");
    let sql = "PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET type = 'table', rootpage = 2, name = 'k', tbl_name = 'k'";
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    assert!(Reader::open(&path).is_err() && !report(&path).is_sound());
}

/// SQLite's integrity check evaluates them for every row.
#[test]
fn expressions_of_a_table_are_not_evaluated() {
    for (sql, sound) in [
        ("ALTER TABLE kern_db ADD COLUMN more TEXT AS (hex(zeroblob(7)))", false),
        ("CREATE INDEX i ON kern_db (hex(zeroblob(7)))", false),
        ("CREATE INDEX i ON kern_db (id) WHERE hex(zeroblob(7)) > id", false),
        ("ALTER TABLE kern_db ADD COLUMN more INT CHECK (more > 7)", true),
    ] {
        let (_directory, path) = changed(sql);
        let found = report(&path);
        assert_eq!(found.rows, 9, "the rows are looked at all the same");
        assert_eq!(found.is_sound(), sound, "{:?}", found.findings);
        assert!(found.findings.iter().all(|it| it.class == FindingClass::Schema), "{sql}");
        read_all(&Reader::open(&path).unwrap()).unwrap();
    }
    // Functions that can take weeks are rejected by the parser.
    for call in ["instr(zeroblob(7), x'01')", "replace(hex(zeroblob(7)), '0', '11')"] {
        let sql = format!("ALTER TABLE kern_db ADD COLUMN more TEXT AS ({call})");
        let (_directory, path) = changed(&sql);
        assert!(Reader::open(&path).is_err() && !report(&path).is_sound(), "{call}");
        let (_directory, path) = with_view(&format!("SELECT 1, 2, 3, {call}, 5"));
        assert!(Reader::open(&path).is_err() && !report(&path).is_sound(), "{call}");
    }
}

fn read_all(reader: &Reader) -> Result<u64, ReadError> {
    let mut rows = 0;
    reader.for_each_row(|_| {
        rows += 1;
        Ok::<_, ReadError>(())
    })?;
    Ok(rows)
}

/// A root page whose children are all the same page has rows without end, and
/// SQLite counts them in one step.
#[test]
fn a_cyclic_tree_is_an_error() {
    let (_directory, path) = written();
    let big: Vec<_> = (0..3000)
        .map(|n| (key("a.cl.o", &format!(" -DN={n:05} -mcpu=gfx906")), vec![0x5a; 100]))
        .collect();
    write_kernels(&path, &big, Blob::Raw);
    let mut bytes = std::fs::read(&path).unwrap();
    // Both roots are interior pages; nearly all of their children become the
    // page itself.
    for root in [2, 3] {
        let page = &mut bytes[(root - 1) * 4096..root * 4096];
        assert!(matches!(page[0], 0x05 | 0x02), "an interior page");
        let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
        let first = u32::from_be_bytes(
            page[usize::from(u16::from_be_bytes([page[12], page[13]]))..][..4].try_into().unwrap(),
        );
        let level = u32::try_from(bytes.len() / 4096 + 1).unwrap();
        // A chain of pages of the same shape, each leading to the next.
        for depth in 0..16 {
            let mut page = bytes[(root - 1) * 4096..root * 4096].to_vec();
            let next = if depth == 15 { first } else { level + depth + 1 };
            point_to(&mut page, cells, next);
            bytes.extend(page);
        }
        point_to(&mut bytes[(root - 1) * 4096..root * 4096], cells, level);
    }
    let pages = u32::try_from(bytes.len() / 4096).unwrap();
    bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let limit = MAX_OBJECT_BYTES + 256 * bytes.len() as u64;
    let reader = Reader::open(&path).unwrap();
    let error = reader.count().unwrap_err();
    assert_eq!(error.kind(), KdbErrorKind::Runaway, "{error}");
    assert!(reader.work_bytes() <= limit);
    // The index leads to rows that can't be found any more.
    assert!(read_all(&reader).is_err());
    let found = report(&path);
    assert!(found.counts.contains_key(&FindingClass::Unreadable), "{:?}", found.counts);
    assert!(found.rows <= limit / 4096 && found.work_bytes <= limit, "{} rows", found.rows);
}

fn point_to(page: &mut [u8], cells: usize, child: u32) {
    page[8..12].copy_from_slice(&child.to_be_bytes());
    for cell in 0..cells {
        let at = usize::from(u16::from_be_bytes([page[12 + 2 * cell], page[13 + 2 * cell]]));
        page[at..at + 4].copy_from_slice(&child.to_be_bytes());
    }
}

const MIB: u64 = 1 << 20;

struct Bombs {
    _directory: tempfile::TempDir,
    path: PathBuf,
    /// The work limit for one pass over the file.
    limit: u64,
}

/// `size` zeros, behind a code object's head if `head` is "elf": compressed
/// with bzip2, and their MD5.
fn packed(size: u64, head: &str) -> (Vec<u8>, String) {
    let mut packer = BzEncoder::new(Vec::new(), Compression::best());
    let mut digest = Md5::new();
    let mut piece = if head == "elf" { code_object(GFX906, 0, 64, true) } else { vec![0; 64] };
    let mut left = size as usize;
    while left > 0 {
        piece.truncate(left);
        left -= piece.len();
        packer.write_all(&piece).unwrap();
        digest.update(&piece);
        piece = vec![0; MIB as usize];
    }
    let hash = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    (packer.finish().unwrap(), hash)
}

/// A file with `count` rows of zeros, or of a code object's head and zeros.
/// Each unpacks to `size` bytes and declares `claim`.
fn bombs(size: u64, claim: u64, count: u64, head: &str, md5: &str) -> Bombs {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let (blob, right) = packed(size, head);
    let hash = if md5 == "right" { right } else { "0".repeat(32) };
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(EMPTY).unwrap();
    let transaction = connection.transaction().unwrap();
    for n in 0..count {
        let key = bomb_key(n);
        let row = (&key.kernel_name, &key.kernel_args, &blob, &hash, claim as i64);
        let sql = "INSERT INTO kern_db VALUES (NULL, ?, ?, ?, ?, ?)";
        transaction.execute(sql, row).unwrap();
    }
    transaction.commit().unwrap();
    connection.close().unwrap();
    let bytes = path.metadata().unwrap().len();
    assert!(bytes < 100_000, "small on disk");
    Bombs { _directory: directory, path, limit: MAX_OBJECT_BYTES + 256 * bytes }
}

fn bomb_key(n: u64) -> KernelKey {
    key("a.cl.o", &format!(" -DN={n:03} -mcpu=gfx906"))
}

/// Checks what each reader does with a file whose rows are all invalid.
#[track_caller]
fn assert_faults(bombs: &Bombs, rows: u64, fault: &str) {
    let Bombs { path, limit, .. } = bombs;
    let found = report(path);
    assert_eq!(found.counts.get(&FindingClass::Blob), Some(&rows), "{:?}", found.counts);
    assert!(found.work_bytes <= *limit, "{} bytes", found.work_bytes);
    let reader = Reader::open(path).unwrap();
    for n in 0..8 {
        let error = reader.get(&bomb_key(n)).unwrap_err();
        assert!(in_full(&error).contains(fault), "{error:?}");
        assert!(reader.work_bytes() < MIB, "{} bytes", reader.work_bytes());
    }
    let out = path.with_file_name("out.kdb");
    let options = CopyOptions::default();
    let inputs = std::slice::from_ref(path);
    let error = merge(inputs, &out, Conflict::Error, &options).unwrap_err();
    assert!(in_full(&error).contains(fault), "{error:?}");
}

#[test]
fn every_reader_rejects_a_row_that_claims_more_than_the_limit() {
    let bombs = bombs(MIB, 300 * MIB, 100, "elf", "right");
    assert_faults(&bombs, 100, "failed to accept a code object of 314572800 bytes");
    // Readers of keys only reject it too.
    let reader = Reader::open(&bombs.path).unwrap();
    for error in [
        read_all(&reader).unwrap_err(),
        diff(&bombs.path, &bombs.path, |_| Ok::<_, ReadError>(())).unwrap_err(),
    ] {
        assert!(in_full(&error).contains("of 314572800 bytes: the limit is"), "{error:?}");
    }
}

#[test]
fn a_large_object_of_zeros_is_not_unpacked() {
    let bombs = bombs(20 * MIB, 20 * MIB, 100, "zeros", "right");
    assert_faults(&bombs, 100, "it does not begin as one");
}

#[test]
fn a_row_that_unpacks_to_more_than_it_claims_is_an_error() {
    let bombs = bombs(20 * MIB, 4096, 100, "elf", "right");
    assert_faults(&bombs, 100, "to 4096 bytes: it holds at least 4097");
}

/// The rows look like code objects until they are fully unpacked.
#[test]
fn rows_below_the_limit_have_a_limit_for_their_sum() {
    const SIZE: u64 = 64 * MIB;
    let bombs = bombs(MIB, SIZE, 100, "elf", "right");
    let fit = bombs.limit / SIZE;
    assert!((4..20).contains(&fit), "{fit} of them fit");
    let found = report(&bombs.path);
    assert!(found.work_bytes <= bombs.limit, "{} bytes", found.work_bytes);
    let over = found.findings.iter().filter(|finding| finding.detail.contains(" in all")).count();
    // Reading the rows counts as well.
    assert!((100 - fit..=101 - fit).contains(&(over as u64)), "{over}");
    // Lookups of such rows fail once they have cost as much.
    let reader = Reader::open(&bombs.path).unwrap();
    let looked_up = (0..100).take_while(|n| {
        let error = reader.get(&bomb_key(*n)).unwrap_err();
        in_full(&error).ends_with("it holds only 1048576")
    });
    assert_eq!(looked_up.count() as u64, fit + 1);
    let error = reader.get(&bomb_key(0)).unwrap_err();
    assert_eq!(error.kind(), KdbErrorKind::Runaway, "{error}");
    assert_eq!(reader.work_bytes(), 0);
}

#[test]
fn a_blob_above_the_limit_is_not_read() {
    let (_directory, path) =
        changed("UPDATE kern_db SET kernel_blob = zeroblob(269000000) WHERE id = 1");
    let reader = Reader::open(&path).unwrap();
    let error = reader.get(&kernels()[0].0).unwrap_err();
    assert!(in_full(&error).contains("of 269000000 bytes: the limit is"), "{error}");
    assert!(reader.work_bytes() < 10_000, "{} bytes", reader.work_bytes());
}

#[test]
fn a_column_cannot_claim_more_than_the_file_holds() {
    let (_directory, path) = written();
    let whole = std::fs::read(&path).unwrap();
    // Every record header byte in turn becomes the start of a huge varint.
    for at in (100..whole.len()).step_by(307) {
        let mut bytes = whole.clone();
        let end = (at + 9).min(bytes.len());
        bytes[at..end].fill(0xff);
        std::fs::write(&path, &bytes).unwrap();
        let _ = report(&path);
        if let Ok(reader) = Reader::open(&path) {
            let _ = read_all(&reader);
            let _ = reader.for_each_kernel(|_| Ok::<_, ReadError>(()));
        }
    }
}
