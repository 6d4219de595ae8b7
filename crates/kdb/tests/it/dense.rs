//! The dense layout: the same answers to whoever asks as MIOpen does.

use std::collections::BTreeMap;
use std::path::Path;

use gfxpack_kdb::{
    Blob, CopyOptions, FindingClass, Layout, ReadError, Reader, VerifyOptions, convert, verify,
};
use gfxpack_model::KernelKey;

use crate::support::{
    GFX906, code_object, command, kernels, key, python, run, write_kernels, write_laid_out,
};

/// MIOpen's own check and query, as its sources have them: every column of
/// `KernelConfig::FieldNames` must be among the names that table_info gives,
/// whatever their types, keys and constraints; the key is spliced in.
///
/// Source: ROCm/MIOpen 2d1fd997a, `SQLite::impl::CreateFileDb`,
/// `SQLiteBase::CheckTableColumns`, `KernDb::FindRecordUnsafe`.
pub(crate) const ASK_AS_MIOPEN: &str = r#"
import bz2, hashlib, os, pathlib, sqlite3, sys
path = pathlib.Path(sys.argv[1])
assert os.path.getsize(path) >= 512, 'MIOpen: absent'
db = sqlite3.connect(path.as_uri() + '?mode=ro', uri=True)
cursor = db.execute('PRAGMA table_info(kern_db);')
at = [column[0] for column in cursor.description].index('name')
names = [row[at] for row in cursor]
for golden in ['kernel_name', 'kernel_args', 'kernel_blob']:
    assert golden in names, f'MIOpen: Invalid fields in table: kern_db: {golden}'
def find(name, args):
    query = ("SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE "
             f"(kernel_name = '{name}') AND (kernel_args = '{args}');")
    row = db.execute(query).fetchone()
    if row is None:
        return None
    blob, md5, size = row
    assert type(blob) is bytes and type(md5) is str and type(size) is int
    if size != 0:
        blob = bz2.decompress(blob)
        assert len(blob) == size
    assert hashlib.md5(blob).hexdigest() == md5, 'MIOpen: Possible database corruption'
    return blob
for line in open(sys.argv[2]):
    name, args = (bytes.fromhex(part).decode() for part in line.rstrip('\n').split(','))
    found = find(name, args)
    print('-' if found is None else hashlib.sha256(found).hexdigest())
"#;

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What MIOpen would get for each key, a line each.
pub(crate) fn miopen_answers(kdb: &Path, keys: &[KernelKey]) -> String {
    let list = tempfile::NamedTempFile::new().unwrap();
    let lines: String = keys
        .iter()
        .map(|key| format!("{},{}\n", hex(&key.kernel_name), hex(&key.kernel_args)))
        .collect();
    std::fs::write(list.path(), lines).unwrap();
    python(ASK_AS_MIOPEN, &[kdb, list.path()])
}

/// Every kernel three times under other keys.
fn shared() -> Vec<(KernelKey, Vec<u8>)> {
    let mut all: Vec<_> = kernels()
        .into_iter()
        .filter(|(key, _)| !key.kernel_name.ends_with(".mlir.o"))
        .flat_map(|(found, object)| {
            ["", "x", "y"].map(|more| {
                let name = format!("{more}{}", found.kernel_name);
                (key(&name, &found.kernel_args), object.clone())
            })
        })
        .collect();
    all.sort();
    all
}

fn to(layout: Layout, blob: Option<Blob>) -> CopyOptions<'static> {
    let mut options = CopyOptions::default();
    options.layout = Some(layout);
    options.blob = blob;
    options
}

#[test]
fn both_layouts_answer_every_key_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (plain, dense) =
        (directory.path().join("gfx906_60.kdb"), directory.path().join("gfx906.kdb"));
    for blob in [Blob::Auto, Blob::Raw] {
        let kernels = shared();
        write_laid_out(&plain, &kernels, blob, Layout::Miopen);
        write_laid_out(&dense, &kernels, blob, Layout::Dense);
        let mut keys: Vec<KernelKey> = kernels.iter().map(|(key, _)| key.clone()).collect();
        for (name, args) in [("", ""), ("conv.s.o", "-mcpu=gfx906"), ("CONV.S.O", " -mcpu=gfx906")]
        {
            keys.push(key(name, args));
        }
        let answers = miopen_answers(&plain, &keys);
        assert_eq!(answers.lines().filter(|line| *line != "-").count(), kernels.len());
        assert_eq!(miopen_answers(&dense, &keys), answers);

        let readers = [&plain, &dense].map(|path| Reader::open(path).unwrap());
        assert_eq!(readers[0].layout(), Layout::Miopen);
        assert_eq!(readers[1].layout(), Layout::Dense);
        let wanted: BTreeMap<_, _> = kernels.iter().cloned().collect();
        for key in &keys {
            for reader in &readers {
                assert_eq!(reader.get(key).unwrap().as_ref(), wanted.get(key), "{key}");
            }
            // A key's hash stands with the key, so no object is known by its own row.
            let unhashed = readers[1].get_unhashed(key, |_| panic!("nobody is asked")).unwrap();
            assert!(unhashed.is_none_or(|fetched| fetched.hashed_row.is_none()));
        }
        // The shell prints the rows as anybody's SQL sees them.
        let sql = "SELECT kernel_name, kernel_args, hex(kernel_blob), kernel_hash, \
                   uncompressed_size FROM kern_db ORDER BY 1, 2";
        let shell = [&plain, &dense].map(|path| {
            let output = run(command("sqlite3").arg("-readonly").arg(path).arg(sql));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        });
        assert_eq!(shell[0], shell[1]);
        assert!(shell[0].len() > 1000);
    }
}

#[test]
fn a_lookup_searches_and_never_scans() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906.kdb");
    write_laid_out(&path, &shared(), Blob::Auto, Layout::Dense);
    let sql = "EXPLAIN QUERY PLAN SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db \
               WHERE (kernel_name = 'a') AND (kernel_args = 'b');";
    let output = run(command("sqlite3").arg("-readonly").arg(&path).arg(sql));
    let plan = String::from_utf8(output.stdout).unwrap();
    assert_eq!(plan.matches("SEARCH").count(), 2, "{plan}");
    assert!(!plan.contains("SCAN"), "{plan}");
}

#[test]
fn what_keys_share_is_stored_once() {
    let directory = tempfile::tempdir().unwrap();
    let (plain, dense) =
        (directory.path().join("gfx906_60.kdb"), directory.path().join("gfx906.kdb"));
    let kernels = shared();
    let of_plain = write_laid_out(&plain, &kernels, Blob::Auto, Layout::Miopen);
    let of_dense = write_laid_out(&dense, &kernels, Blob::Auto, Layout::Dense);
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
fn there_and_back_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for blob in [Blob::Auto, Blob::Raw, Blob::Bz2] {
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
    write_kernels(&path("a.kdb"), &shared(), Blob::Auto);
    convert(&path("a.kdb"), &path("raw.kdb"), &to(Layout::Miopen, Some(Blob::Raw))).unwrap();
    assert_eq!(Reader::open(path("raw.kdb")).unwrap().info().unwrap().raw_rows, 24);
    convert(&path("raw.kdb"), &path("c.kdb"), &to(Layout::Miopen, Some(Blob::Auto))).unwrap();
    assert!(std::fs::read(path("a.kdb")).unwrap() == std::fs::read(path("c.kdb")).unwrap());
    // Over itself, and laid out as it was.
    convert(&path("raw.kdb"), &path("raw.kdb"), &CopyOptions::default()).unwrap();
    assert_eq!(Reader::open(path("raw.kdb")).unwrap().info().unwrap().raw_rows, 24);
}

#[test]
fn verify_sees_through_the_view() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let wrong = |sql: &str| {
        write_laid_out(&path, &shared(), Blob::Auto, Layout::Dense);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        verify(&path, None, &VerifyOptions::default()).unwrap()
    };
    let report = wrong("");
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.rows, 24);
    assert_eq!(report.target.unwrap().to_string(), "gfx906@60");

    // A key that leads to another key's object, whose own content is whole.
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
        Blob::Auto,
        Layout::Dense,
    );
    let output = run(command("sqlite3").arg("-readonly").arg(&path).arg(
        "SELECT name, type FROM sqlite_schema; PRAGMA page_size; PRAGMA journal_mode; \
         PRAGMA integrity_check; SELECT * FROM kern_db LIMIT 0; PRAGMA freelist_count",
    ));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "kern_objects|table\nkern_keys|table\nkern_db|view\n1024\ndelete\nok\n0\n"
    );
}
