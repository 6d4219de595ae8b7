//! Python's sqlite3, bz2 and hashlib read our files, and we read those that Python writes exactly
//! as the format says.

use gfxpack_kdb::{Blob, ReadError, Reader, VerifyOptions, verify};
use gfxpack_model::KernelKey;

use super::support::{self, GFX906, kernels, write_kernels};
use crate::support::project::{python, python_reads};

#[test]
fn python_finds_every_kernel_the_way_miopen_asks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let kernels = kernels();
    let text = |(key, _): &(KernelKey, Vec<u8>)| (key.kernel_name.clone(), key.kernel_args.clone());
    let keys: Vec<(String, String)> = kernels.iter().map(text).collect();
    for (blob, raw_rows) in [(Blob::Smaller, 5), (Blob::Raw, 9)] {
        let written = write_kernels(&path, &kernels, blob);
        assert_eq!((written.rows, written.raw_rows), (9, raw_rows));
        assert_eq!(written.file_bytes, path.metadata().unwrap().len());
        assert_eq!(python_reads(&path, GFX906.into()), keys, "{blob:?}");
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
