//! Python's SQLite, which is independent of ours, finds rows as rocFFT does, and we read files that
//! it writes.

use std::path::Path;

use crate::support::project::python;
use gfxpack_rocfft::{Reader, verify};

use super::support::{code, key, rows, write_all};

/// Looks every key up by bound parameters, as rocFFT does; prints each name
/// with its object's SHA-256.
const READ_AS_ROCFFT: &str = r#"
import hashlib, pathlib, sqlite3, sys
db = sqlite3.connect(pathlib.Path(sys.argv[1]).as_uri() + '?mode=ro', uri=True)
assert db.execute('PRAGMA integrity_check').fetchall() == [('ok',)]
assert db.execute('PRAGMA journal_mode').fetchone() == ('delete',)
assert db.execute('PRAGMA freelist_count').fetchone() == (0,)
rows = db.execute('SELECT * FROM cache_v1').fetchall()
keys = [row[:4] for row in rows]
assert keys == sorted(set(keys))
assert all(row[5] == 0 for row in rows)
for key in keys:
    (code,), = db.execute('SELECT code FROM cache_v1 WHERE kernel_name = :kernel_name AND arch = :arch '
                          'AND hip_version = :hip_version AND generator_sum = :generator_sum ', key).fetchall()
    assert isinstance(code, bytes) and code.startswith(b'\x7fELF')
    print(key[0], hashlib.sha256(code).hexdigest())
"#;

/// As rocFFT makes its user's cache.
const WRITE: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('CREATE TABLE IF NOT EXISTS cache_v1 (  kernel_name TEXT NOT NULL,  arch TEXT NOT NULL,'
           '  hip_version INTEGER NOT NULL,  generator_sum BLOB NOT NULL,  code BLOB NOT NULL,'
           '  timestamp INTEGER NOT NULL,  PRIMARY KEY ('
           '      kernel_name, arch, hip_version, generator_sum'
           '      ))')
db.execute("INSERT OR REPLACE INTO cache_v1 VALUES (?, ?, ?, ?, ?, CAST(STRFTIME('%s','now') AS INTEGER))",
           (sys.argv[2], 'gfx90a', 60443484, b'\7' * 32, open(sys.argv[3], 'rb').read()))
db.commit()
"#;

#[test]
fn python_finds_every_kernel_the_way_rocfft_asks() {
    let directory = tempfile::tempdir().unwrap();
    let rows = rows();
    let digest = |code: &[u8]| gfxpack_model::Digest::of(code);
    let line = |(key, code): &(gfxpack_rocfft::CacheKey, Vec<u8>)| {
        format!("{} {}\n", key.kernel_name, digest(code))
    };
    let expected: String = rows.iter().map(line).collect();
    let path = directory.path().join("cache.db");
    write_all(&path, &rows);
    assert_eq!(python(READ_AS_ROCFFT, &[&path]), expected);
}

#[test]
fn files_that_python_writes_as_rocfft_does_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rocfft_kernel_cache_gfx90a.db");
    let object = directory.path().join("object");
    let key = key(64);
    std::fs::write(&object, code(&key, 9000)).unwrap();
    python(WRITE, &[&path, Path::new(&key.kernel_name), &object]);
    assert_eq!(Reader::open(&path).unwrap().get(&key).unwrap(), Some(code(&key, 9000)));
    assert!(verify(&path, None).unwrap().is_sound());
}
