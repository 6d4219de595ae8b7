//! Python's sqlite3, bz2 and hashlib read our files, and we read those that Python writes exactly
//! as the format says.

use std::fmt::Write as _;

use gfxpack_kdb::{Blob, ReadError, Reader, VerifyOptions, verify};

use super::support::{self, kernels, write_kernels};
use crate::support::project::python;

/// Reads as MIOpen does: table_info, then one query per key with the values
/// spliced in. Prints each key in hexadecimal and its object's SHA-256.
const READ_AS_MIOPEN: &str = r#"
import bz2, hashlib, pathlib, sqlite3, sys
path = pathlib.Path(sys.argv[1])
assert path.stat().st_size >= 512
db = sqlite3.connect(path.as_uri() + '?mode=ro', uri=True)
assert db.execute('PRAGMA integrity_check').fetchall() == [('ok',)]
assert db.execute('PRAGMA journal_mode').fetchone() == ('delete',)
assert db.execute('PRAGMA page_size').fetchone() == (4096,)
assert db.execute('PRAGMA encoding').fetchone() == ('UTF-8',)
assert db.execute('PRAGMA auto_vacuum').fetchone() == (0,)
assert db.execute('PRAGMA freelist_count').fetchone() == (0,)
assert db.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == [('idx_kern_db',), ('kern_db',)]
assert [c[1:4] + c[5:] for c in db.execute('PRAGMA table_info(kern_db)')] == [
    ('id', 'INTEGER', 0, 1), ('kernel_name', 'TEXT', 1, 0), ('kernel_args', 'TEXT', 1, 0),
    ('kernel_blob', 'BLOB', 1, 0), ('kernel_hash', 'TEXT', 1, 0), ('uncompressed_size', 'INT', 1, 0)]
assert [c[2] for c in db.execute('PRAGMA index_info(idx_kern_db)')] == ['kernel_name', 'kernel_args']
assert [i[2] for i in db.execute('PRAGMA index_list(kern_db)')] == [1]
ids = db.execute('SELECT id, kernel_name, kernel_args FROM kern_db ORDER BY id').fetchall()
assert [i for i, *_ in ids] == list(range(1, len(ids) + 1))
keys = [(name.encode(), args.encode()) for _, name, args in ids]
assert keys == sorted(set(keys))
for _, name, args in ids:
    query = ("SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE "
             f"(kernel_name = '{name}') AND (kernel_args = '{args}');")
    (blob, md5, size), = db.execute(query).fetchall()
    if size:
        code = bz2.decompress(blob)
        assert len(code) == size
        assert blob == bz2.compress(code, 9), 'not the bytes that libbz2 makes'
    else:
        code = blob
        assert FORM != 'auto' or len(bz2.compress(code, 9)) >= len(code), 'bzip2 would have helped'
    assert md5 == hashlib.md5(code).hexdigest()
    assert code.startswith(b'\x7fELF')
    print(name.encode().hex(), args.encode().hex(), hashlib.sha256(code).hexdigest(), sep='\t')
"#;

/// SHA-256 of every file named, one line each.
const SHA256: &str = r#"
import hashlib, sys
for path in sys.argv[1:]:
    print(hashlib.sha256(open(path, 'rb').read()).hexdigest())
"#;

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

#[test]
fn python_finds_every_kernel_the_way_miopen_asks() {
    for (blob, form, raw_rows) in [(Blob::Smaller, "auto", 5), (Blob::Raw, "raw", 9)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gfx906_60.kdb");
        let kernels = kernels();
        let written = write_kernels(&path, &kernels, blob);
        assert_eq!(written.rows, 9);
        assert_eq!(written.raw_rows, raw_rows);
        assert_eq!(written.file_bytes, path.metadata().unwrap().len());

        let objects: Vec<_> = kernels
            .iter()
            .enumerate()
            .map(|(index, (_, object))| {
                let path = directory.path().join(index.to_string());
                std::fs::write(&path, object).unwrap();
                path
            })
            .collect();
        let objects: Vec<_> = objects.iter().map(AsRef::as_ref).collect();
        let digests = python(SHA256, &objects);
        let expected: String = kernels
            .iter()
            .zip(digests.lines())
            .map(|((key, _), digest)| {
                format!("{}\t{}\t{digest}\n", hex(&key.kernel_name), hex(&key.kernel_args))
            })
            .collect();
        let script = format!("FORM = '{form}'\n{READ_AS_MIOPEN}");
        assert_eq!(python(&script, &[&path]), expected, "{form}");
    }
}

/// Writes a kdb with MIOpen's statement, rows out of order, one of them raw,
/// a table and a column more than MIOpen's.
const WRITE: &str = r#"
import bz2, hashlib, sqlite3, struct, sys
elf = bytearray(64); elf[:9] = b'\x7fELF\x02\x01\x01\x40\x03'; elf[18] = 0xe0; elf[48:50] = b'\x2f\x05'
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.executescript('''
CREATE TABLE IF NOT EXISTS `kern_db` (`id` INTEGER PRIMARY KEY ASC,`kernel_name` TEXT NOT NULL,
`kernel_args` TEXT NOT NULL,`kernel_blob` BLOB NOT NULL,`kernel_hash` TEXT NOT NULL,
`uncompressed_size` INT NOT NULL, `note` TEXT);
CREATE UNIQUE INDEX IF NOT EXISTS `idx_kern_db` ON kern_db(kernel_name, kernel_args);
CREATE TABLE other (x);''')
for name, args, raw in [('z.cl.o', ' -DA -mcpu=gfx906', False), ('a.cpp.o', '  -DB=1  -mcpu=gfx906', True),
                        ('a.cpp.o', ' -DÜ -mcpu=gfx906', False)]:
    code = bytes(elf) + (name + args).encode() * 50
    db.execute('INSERT OR REPLACE INTO kern_db(kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) '
               'VALUES(?, ?, ?, ?, ?)', (name, args, code if raw else bz2.compress(code, 9),
               hashlib.md5(code).hexdigest(), 0 if raw else len(code)))
"#;

#[test]
fn a_kdb_made_by_python_is_read_and_verified() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    python(WRITE, &[&path]);

    let reader = Reader::open(&path).unwrap();
    let mut entries = Vec::new();
    reader
        .for_each_row(|entry| {
            entries.push((entry.key, entry.compressed));
            Ok::<_, ReadError>(())
        })
        .unwrap();
    let key = support::key;
    let expected = [
        (key("a.cpp.o", "  -DB=1  -mcpu=gfx906"), false),
        (key("a.cpp.o", " -DÜ -mcpu=gfx906"), true),
        (key("z.cl.o", " -DA -mcpu=gfx906"), true),
    ];
    assert_eq!(entries, expected, "in canonical order, bytewise");
    for (key, _) in &expected {
        let object = reader.get(key).unwrap().expect("the kdb has the key");
        let body = format!("{}{}", key.kernel_name, key.kernel_args).repeat(50);
        assert_eq!(&object[64..], body.as_bytes());
    }
    for absent in ["-DA -mcpu=gfx906", " -DA -mcpu=gfx906 ", " -da -mcpu=gfx906", ""] {
        assert_eq!(reader.get(&key("z.cl.o", absent)).unwrap(), None, "keys are exact");
    }
    let info = reader.info().unwrap();
    assert_eq!((info.rows, info.kernel_names), (3, 2));
    assert_eq!(info.languages.values().sum::<u64>(), 3);
    assert_eq!(info.devices.get("gfx906"), Some(&3));
    assert_eq!(info.file_bytes, path.metadata().unwrap().len());

    let report = verify(&path, None, &VerifyOptions::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!((report.rows, report.raw_rows), (3, 1));
    assert_eq!(report.target.unwrap().to_string(), "gfx906@60");
}
