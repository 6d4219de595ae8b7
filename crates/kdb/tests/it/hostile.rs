//! Files made to harm whoever opens them.

use gfxpack_kdb::{Blob, FindingClass, ReadError, Reader, RowError, VerifyOptions, verify};

use crate::support::{GFX906, code_object, kernels, key, write_kernels, written};

/// Replaces the table by a view.
fn with_view(select: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let (directory, path) = written();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "DROP TABLE kern_db; CREATE VIEW kern_db
             (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) AS {select}"
        ))
        .unwrap();
    connection.close().unwrap();
    (directory, path)
}

fn read_all(reader: &Reader) -> Result<u64, ReadError> {
    let mut rows = 0;
    reader.for_each_entry(|_| {
        rows += 1;
        Ok::<_, ReadError>(())
    })?;
    Ok(rows)
}

#[test]
fn a_query_without_end_is_ended() {
    let (_directory, path) = with_view(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
         SELECT 'a.cl.o', ' -mcpu=gfx906', x'00', '', 0 FROM n WHERE x < 0",
    );
    let reader = Reader::open(&path).unwrap();
    let error = reader.get(&key("a.cl.o", " -mcpu=gfx906")).unwrap_err();
    assert!(matches!(error, ReadError::Runaway { .. }), "{error}");
    let report = verify(&path, None, &VerifyOptions::default()).unwrap();
    assert_eq!(report.counts.get(&FindingClass::Unreadable), Some(&1), "{:?}", report.findings);
}

#[test]
fn rows_without_end_are_ended() {
    let (_directory, path) = with_view(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
         SELECT 'a.cl.o', x || ' -mcpu=gfx906', x'00', '', 0 FROM n",
    );
    let reader = Reader::open(&path).unwrap();
    let error = reader.for_each_record(|_| Ok::<_, ReadError>(())).unwrap_err();
    assert!(matches!(error, ReadError::Row { .. }), "the first row is no kernel: {error}");
    assert!(matches!(read_all(&reader).unwrap_err(), ReadError::Runaway { .. }));
    let report = verify(&path, None, &VerifyOptions::default()).unwrap();
    assert_eq!(report.counts.get(&FindingClass::Unreadable), Some(&1));
    assert_eq!(report.findings.len(), 1000);
    assert!(report.total_findings() > 1000);
}

/// A single call of these could take weeks, and nothing would end it.
#[test]
fn functions_that_take_time_without_end_are_refused() {
    for hash in [
        "instr(zeroblob(100000000), zeroblob(50000000) || x'01')",
        "replace(hex(zeroblob(100000000)), '0', hex(zeroblob(1000)))",
        "zeroblob(50000) LIKE '%_%_%_%_%_%_%_%_x'",
    ] {
        let (_directory, path) =
            with_view(&format!("SELECT 'a.cl.o', ' -mcpu=gfx906', x'00', {hash}, 0"));
        assert!(Reader::open(&path).is_err(), "{hash}");
        assert!(!verify(&path, None, &VerifyOptions::default()).unwrap().is_sound(), "{hash}");
        let (_directory, path) = written();
        let connection = rusqlite::Connection::open(&path).unwrap();
        let sql = format!("ALTER TABLE kern_db ADD COLUMN more TEXT AS ({hash})");
        connection.execute_batch(&sql).unwrap();
        connection.close().unwrap();
        assert!(Reader::open(&path).is_err(), "{hash}");
    }
}

#[test]
fn a_value_larger_than_the_limit_is_refused_before_it_is_made() {
    let (_directory, path) =
        with_view("SELECT 'a.cl.o', ' -mcpu=gfx906', zeroblob(999999999), '', 0");
    let reader = Reader::open(&path).unwrap();
    let error = reader.get(&key("a.cl.o", " -mcpu=gfx906")).unwrap_err();
    assert!(matches!(error, ReadError::Sqlite { .. }), "{error}");
}

#[test]
fn a_file_can_not_reach_outside_itself() {
    for select in [
        "SELECT load_extension('x'), 1, 2, 3, 4",
        "SELECT 'a.cl.o', ' -mcpu=gfx906', data, '', 0 FROM sqlite_dbpage",
        "SELECT 'a.cl.o', writefile('x', 'y'), 1, 2, 3",
    ] {
        let (directory, path) = with_view(select);
        if let Ok(reader) = Reader::open(&path) {
            assert!(reader.get(&key("a.cl.o", " -mcpu=gfx906")).is_err(), "{select}");
        }
        assert!(!verify(&path, None, &VerifyOptions::default()).unwrap().is_sound());
        assert_eq!(crate::support::listing(directory.path()), ["gfx906_60.kdb"]);
    }
}

#[test]
fn a_bomb_does_not_go_off() {
    let (directory, path) = written();
    let mut kernels = kernels();
    // 48 MiB that take less than a kilobyte.
    let mut bomb = code_object(GFX906, 1, 64, true);
    bomb.resize(48 << 20, 0);
    kernels[0].1 = bomb;
    let written = write_kernels(&path, &kernels, Blob::Auto);
    assert!(written.file_bytes < 1 << 20);
    assert!(verify(&path, None, &VerifyOptions::default()).unwrap().is_sound());

    let mut options = VerifyOptions::default();
    options.max_object_bytes = 1 << 20;
    let report = verify(&path, None, &options).unwrap();
    assert_eq!(report.counts.get(&FindingClass::Blob), Some(&1), "beyond the caller's limit");

    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE kern_db SET uncompressed_size = 100 WHERE id = 1", ()).unwrap();
    connection.close().unwrap();
    let error = Reader::open(&path).unwrap().get(&kernels[0].0).unwrap_err();
    let ReadError::Row { source: RowError::Length { actual, .. }, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(actual, 101, "decoding stops one byte beyond what is declared");
    drop(directory);
}

#[test]
fn a_column_can_not_claim_more_than_the_file_holds() {
    let (_directory, path) = written();
    let whole = std::fs::read(&path).unwrap();
    // Every record header byte in turn becomes the start of a huge varint.
    for at in (100..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        let end = (at + 9).min(bytes.len());
        bytes[at..end].fill(0xff);
        std::fs::write(&path, &bytes).unwrap();
        let _ = verify(&path, None, &VerifyOptions::default()).unwrap();
        if let Ok(reader) = Reader::open(&path) {
            let _ = read_all(&reader);
            let _ = reader.for_each_record(|_| Ok::<_, ReadError>(()));
        }
    }
}
