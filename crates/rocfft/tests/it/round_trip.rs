use std::fs;
use std::path::Path;

use gfxpack_rocfft::{CacheKey, CachePaths, Reader, RowError, check_row, verify, write};

use crate::support::{code, elf, key, rows, write_all};

fn read(path: &Path) -> Vec<(CacheKey, Vec<u8>)> {
    let mut found = Vec::new();
    let each = |key, code| {
        found.push((key, code));
        Ok(())
    };
    Reader::open(path).unwrap().for_each_row(each).unwrap();
    found
}

#[test]
fn a_written_file_is_read_back_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows();
    let path = dir.path().join("rocfft kernel?cache.db");
    write_all(&path, &rows);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(read(&path), rows);
    for (key, code) in &rows {
        assert_eq!(reader.get(key).unwrap().as_ref(), Some(code));
        let others = [
            CacheKey { arch: "gfx906".into(), ..key.clone() },
            CacheKey { hip_version: 60_443_485, ..key.clone() },
            CacheKey { generator_sum: [8; 32], ..key.clone() },
            CacheKey { kernel_name: format!("{}x", key.kernel_name), ..key.clone() },
        ];
        assert!(others.iter().all(|other| reader.get(other).unwrap().is_none()));
    }
    let report = verify(&path, Some("gfx90a")).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.rows, 40);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was left beside it");
}

#[test]
fn equal_rows_give_equal_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write_all(&at("a.db"), &rows());
    write_all(&at("b.db"), &rows());
    assert!(fs::read(at("a.db")).unwrap() == fs::read(at("b.db")).unwrap());
    write_all(&at("empty.db"), &[]);
    assert_eq!(read(&at("empty.db")), []);
    assert!(verify(&at("empty.db"), None).unwrap().is_sound());
}

#[test]
fn a_row_that_the_driver_refuses_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rocfft_kernel_cache.db");
    fs::write(&path, "old").unwrap();
    let key = key(64);
    let good = code(&key, 0);
    check_row(&key, &good).unwrap();
    let other_arch = CacheKey { arch: "gfx906".into(), ..key.clone() };
    let undefined = {
        let mut bytes = good.clone();
        // The symbol has no section.
        bytes[64 + 24 + 6] = 0;
        bytes
    };
    let bad: [(&[u8], &str); 6] = [
        (b"", "failed to recognise a code object: 0 bytes, neither ELF nor an offload bundle"),
        (&good[..40], "failed to read the ELF header: it is cut short"),
        (&code(&other_arch, 0), "the code object is for gfx906, not gfx90a"),
        // It is for XNACK on, so devices with XNACK off refuse it.
        (&elf(0x73f, &key.symbol(), 0), "the code object is for gfx90a:xnack+, not gfx90a"),
        (&elf(0x53f, &key.kernel_name, 0), "the code object does not define `NAME.kd`"),
        (&undefined, "the code object does not define `NAME.kd`"),
    ];
    for (bytes, expected) in bad {
        let expected = expected.replace("NAME", &key.kernel_name);
        let keys = std::slice::from_ref(&key);
        let error = write(&path, keys, |_| Ok(bytes.to_vec())).unwrap_err();
        assert_eq!(error.cause::<RowError>().unwrap().to_string(), expected);
    }
    let twice = [key.clone(), key.clone()];
    let error = write(&path, &twice, |_| Ok(good.clone())).unwrap_err();
    assert!(error.to_string().ends_with("its key is not above the one before it"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was left beside it");
}

#[test]
fn a_file_written_by_rocfft_is_read_and_its_bad_rows_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rocfft_kernel_cache_gfx90a.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS cache_v1 (  kernel_name TEXT NOT NULL,  arch TEXT NOT NULL,\
             \n hip_version INTEGER NOT NULL, generator_sum BLOB NOT NULL, code BLOB NOT NULL, \
             timestamp INTEGER NOT NULL, PRIMARY KEY (kernel_name, arch, hip_version, generator_sum))",
        )
        .unwrap();
    let insert = |key: &CacheKey, code: &[u8]| {
        let CacheKey { kernel_name, arch, hip_version, generator_sum } = key;
        let sql = "INSERT INTO cache_v1 VALUES (?, ?, ?, ?, ?, 1700000000)";
        connection.execute(sql, (kernel_name, arch, hip_version, generator_sum, code)).unwrap();
    };
    let (good, empty, named) = (key(64), key(128), key(256));
    let other = CacheKey { arch: "gfx906".into(), ..key(512) };
    insert(&named, &elf(0x53f, "another.kd", 0));
    insert(&good, &code(&good, 5000));
    insert(&empty, b"");
    insert(&other, &code(&other, 0));
    connection
        .execute("INSERT INTO cache_v1 VALUES ('short', 'gfx90a', 1, x'00', x'00', 0)", ())
        .unwrap();
    drop(connection);

    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.get(&good).unwrap(), Some(code(&good, 5000)));
    let error = reader.for_each_key(|_| Ok(())).unwrap_err();
    assert!(error.to_string().starts_with("failed to read row 5 of "), "{error}");
    let column = "column `generator_sum` holds something else than it should";
    assert_eq!(error.cause::<RowError>().unwrap().to_string(), column);

    let report = verify(&path, None).unwrap();
    let expected = [
        ("code-object", format!(" (kernel `{empty}`)")),
        ("symbol", format!(" (kernel `{named}`)")),
        // The file's name is for gfx90a.
        ("target", format!(" (kernel `{other}`)")),
        ("column", column.to_owned()),
    ];
    assert_eq!(report.findings.len(), expected.len(), "{:?}", report.findings);
    for (found, (class, end)) in report.findings.iter().zip(expected) {
        assert!(found.starts_with(&format!("{class}: ")) && found.ends_with(&end), "{found}");
    }
    assert_eq!(report.rows, 5);
}

#[test]
fn the_library_s_directory_is_searched_unless_a_variable_names_a_file() {
    let dir = Path::new("/usr/lib/x86_64-linux-gnu");
    let paths = CachePaths::new(dir, "shared.db", None, Some(Path::new("")));
    let expected = ["shared.db", "rocfft/shared.db"];
    assert_eq!(
        paths,
        CachePaths { user: None, system: expected.map(|file| dir.join(file)).into() }
    );
    let (user, system) = (Path::new("/x/fft.db"), Path::new("/y/fft.db"));
    let paths = CachePaths::new(dir, "gfx906.db", Some(user), Some(system));
    assert_eq!(paths, CachePaths { user: Some(user.into()), system: vec![system.into()] });
    let memory = CachePaths::new(dir, "gfx1201.db", Some(":memory:".as_ref()), None);
    assert_eq!(memory.user, None);
    assert_eq!(memory.system[1], dir.join("rocfft/gfx1201.db"));
}
