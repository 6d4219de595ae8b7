//! The dense layout: a query like MIOpen's gets the same results.

use gfxpack_kdb::{
    Blob, CopyOptions, FindingClass, Layout, ReadError, Reader, RowError, VerifyOptions, convert,
    verify,
};
use gfxpack_model::KernelKey;

use crate::support::{GFX906, code_object, key, shared, write_kernels, write_laid_out};

fn to(layout: Layout, blob: Option<Blob>) -> CopyOptions<'static> {
    let mut options = CopyOptions::default();
    options.layout = Some(layout);
    options.blob = blob;
    options
}

#[test]
fn both_layouts_return_the_same_object_for_every_key() {
    let directory = tempfile::tempdir().unwrap();
    let (plain, dense) =
        (directory.path().join("gfx906_60.kdb"), directory.path().join("gfx906.kdb"));
    for blob in [Blob::Smaller, Blob::Raw] {
        let kernels = shared();
        write_laid_out(&plain, &kernels, blob, Layout::Miopen);
        write_laid_out(&dense, &kernels, blob, Layout::Dense);
        let readers = [&plain, &dense].map(|path| Reader::open(path).unwrap());
        assert_eq!(readers[0].layout(), Layout::Miopen);
        assert_eq!(readers[1].layout(), Layout::Dense);
        let absent = [("", ""), ("conv.s.o", "-mcpu=gfx906"), ("CONV.S.O", " -mcpu=gfx906")];
        let absent = absent.map(|(name, args)| (key(name, args), None));
        let there = kernels.into_iter().map(|(key, object)| (key, Some(object)));
        for (key, wanted) in there.chain(absent) {
            for reader in &readers {
                assert_eq!(reader.get(&key).unwrap(), wanted, "{key}");
            }
        }
    }
}

#[test]
fn a_known_raw_row_with_another_hash_is_checked_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906.kdb");
    write_laid_out(&path, &shared(), Blob::Raw, Layout::Dense);
    let mark = |key: &KernelKey| {
        let fetched = Reader::open(&path).unwrap().get_unhashed(key, |_| false);
        fetched.map(|fetched| fetched.unwrap().hashed_row.unwrap())
    };
    let kernels = shared();
    let (first, object) = &kernels[0];
    let (second, _) = kernels[1..].iter().find(|(_, other)| other == object).unwrap();
    let known = mark(first).unwrap();
    assert_eq!(mark(second).unwrap(), known);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let changed = connection
        .execute(
            "UPDATE kern_keys SET hash = zeroblob(16) WHERE name = ?1 AND args = ?2",
            (&second.kernel_name, &second.kernel_args),
        )
        .unwrap();
    assert_eq!(changed, 1);
    connection.close().unwrap();
    let found = Reader::open(&path).unwrap().get_unhashed(second, |row| row == known);
    assert!(matches!(found, Err(ReadError::Row { source: RowError::HashMismatch { .. }, .. })));
}

#[test]
fn a_lookup_searches_and_never_scans() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906.kdb");
    write_laid_out(&path, &shared(), Blob::Smaller, Layout::Dense);
    let sql = "EXPLAIN QUERY PLAN SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db \
               WHERE (kernel_name = 'a') AND (kernel_args = 'b');";
    let connection = rusqlite::Connection::open(&path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let steps = statement.query_map((), |row| row.get::<_, String>("detail")).unwrap();
    let plan: String = steps.map(|step| step.unwrap() + "\n").collect();
    assert_eq!(plan.matches("SEARCH").count(), 2, "{plan}");
    assert!(!plan.contains("SCAN"), "{plan}");
}

#[test]
fn an_object_shared_by_keys_is_stored_once() {
    let directory = tempfile::tempdir().unwrap();
    let (plain, dense) =
        (directory.path().join("gfx906_60.kdb"), directory.path().join("gfx906.kdb"));
    let kernels = shared();
    let of_plain = write_laid_out(&plain, &kernels, Blob::Smaller, Layout::Miopen);
    let of_dense = write_laid_out(&dense, &kernels, Blob::Smaller, Layout::Dense);
    assert_eq!(of_plain.rows, of_dense.rows);
    assert!(of_dense.file_bytes * 2 < of_plain.file_bytes, "{of_dense:?} {of_plain:?}");
    let connection = rusqlite::Connection::open(&dense).unwrap();
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, (), |row| row.get(0)).unwrap()
    };
    assert_eq!(count("kern_keys"), kernels.len() as i64);
    assert_eq!(count("kern_objects"), kernels.len() as i64 / 3);
}

#[test]
fn converting_there_and_back_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for blob in [Blob::Smaller, Blob::Raw, Blob::Bz2] {
        for (here, there) in [(Layout::Miopen, Layout::Dense), (Layout::Dense, Layout::Miopen)] {
            write_laid_out(&path("a.kdb"), &shared(), blob, here);
            convert(&path("a.kdb"), &path("b.kdb"), &to(there, None)).unwrap();
            write_laid_out(&path("b-expected.kdb"), &shared(), blob, there);
            assert!(
                std::fs::read(path("b.kdb")).unwrap()
                    == std::fs::read(path("b-expected.kdb")).unwrap(),
                "converting gives what building gives"
            );
            convert(&path("b.kdb"), &path("c.kdb"), &to(here, None)).unwrap();
            assert!(std::fs::read(path("a.kdb")).unwrap() == std::fs::read(path("c.kdb")).unwrap());
        }
    }
    write_kernels(&path("a.kdb"), &shared(), Blob::Smaller);
    convert(&path("a.kdb"), &path("raw.kdb"), &to(Layout::Miopen, Some(Blob::Raw))).unwrap();
    assert_eq!(Reader::open(path("raw.kdb")).unwrap().stats(None).unwrap().all.raw_rows, 24);
    convert(&path("raw.kdb"), &path("c.kdb"), &to(Layout::Miopen, Some(Blob::Smaller))).unwrap();
    assert!(std::fs::read(path("a.kdb")).unwrap() == std::fs::read(path("c.kdb")).unwrap());
    // Converts a file onto itself, in the same layout.
    convert(&path("raw.kdb"), &path("raw.kdb"), &CopyOptions::default()).unwrap();
    assert_eq!(Reader::open(path("raw.kdb")).unwrap().stats(None).unwrap().all.raw_rows, 24);
}

#[test]
fn verify_checks_the_tables_behind_the_view() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let wrong = |sql: &str| {
        write_laid_out(&path, &shared(), Blob::Smaller, Layout::Dense);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        verify(&path, None, &VerifyOptions::default()).unwrap()
    };
    let report = wrong("");
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.rows, 24);
    assert_eq!(report.target.unwrap().to_string(), "gfx906@60");

    // A key that leads to another key's object, which is itself intact.
    let report = wrong("UPDATE kern_keys SET object = 1 + object % 8");
    assert_eq!(report.counts.get(&FindingClass::Hash), Some(&24), "{:?}", report.findings);
    let error = Reader::open(&path).unwrap().get(&shared()[0].0).unwrap_err();
    assert!(matches!(error, ReadError::Row { .. }), "{error}");

    let report = wrong("DELETE FROM kern_objects WHERE id = 1");
    assert_eq!(report.counts.get(&FindingClass::Integrity), Some(&1), "{:?}", report.findings);
    assert!(report.findings[0].detail.starts_with("3 keys"), "{:?}", report.findings);
    let report = wrong("UPDATE kern_keys SET args = args || ' ' WHERE object = 2");
    assert!(report.findings[0].detail.starts_with("3 keys"), "{:?}", report.findings);
    let report = wrong("DELETE FROM kern_keys WHERE object = 2");
    assert_eq!(report.counts.get(&FindingClass::Integrity), Some(&1), "{:?}", report.findings);
}

#[test]
fn a_file_of_the_dense_layout_is_described_by_its_own_statements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    write_laid_out(
        &path,
        &[(key("a.cl.o", ""), code_object(GFX906, 1, 99, true))],
        Blob::Smaller,
        Layout::Dense,
    );
    let connection = rusqlite::Connection::open(&path).unwrap();
    let answer = |sql: &str| -> String {
        connection.query_row(sql, (), |row| row.get::<_, rusqlite::types::Value>(0)).map_or_else(
            |error| panic!("{sql}: {error}"),
            |value| match value {
                rusqlite::types::Value::Integer(number) => number.to_string(),
                rusqlite::types::Value::Text(text) => text,
                other => panic!("{sql}: {other:?}"),
            },
        )
    };
    let schema = "SELECT group_concat(name || ' ' || type, ', ') FROM sqlite_schema";
    assert_eq!(answer(schema), "kern_objects table, kern_keys table, kern_db view");
    assert_eq!(answer("PRAGMA page_size"), "1024");
    assert_eq!(answer("PRAGMA journal_mode"), "delete");
    assert_eq!(answer("PRAGMA integrity_check"), "ok");
    assert_eq!(answer("PRAGMA freelist_count"), "0");
    assert_eq!(answer("SELECT count(*) FROM kern_db"), "1");
}
