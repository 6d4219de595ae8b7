//! Equal input gives equal bytes, and only canonical input is accepted.

use std::io;
use std::path::Path;

use gfxpack_kdb::{Blob, Row, WriteOptions, write};
use gfxpack_model::{Error, KernelKey, in_full};

use crate::support::{GFX906, code_object, kernels, key, listing, rows, written};

fn many() -> Vec<(KernelKey, Vec<u8>)> {
    let mut kernels: Vec<_> = (0..400_u64)
        .map(|n| {
            let args = format!(" {} -DN={n} -mcpu=gfx906", "-DLONG=1 ".repeat(n as usize % 90));
            let object = code_object(GFX906, n, (n * n) as usize % 30_000, n % 3 > 0);
            (key(&format!("k{}.cl.o", n % 7), &args), object)
        })
        .collect();
    kernels.sort();
    kernels
}

#[test]
fn the_bytes_do_not_depend_on_threads_directory_or_size_hint() {
    let kernels = many();
    let directory = tempfile::tempdir().unwrap();
    let odd = directory.path().join("file: 100%?mode=ro#ü");
    std::fs::create_dir(&odd).unwrap();
    for blob in [Blob::Smaller, Blob::Raw] {
        let mut files = Vec::new();
        for (threads, size) in [(1, 0), (2, 1), (7, u64::MAX)] {
            let rows: Vec<Row<'_>> = kernels.iter().map(|(key, _)| Row { key, size }).collect();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let path = odd.join(format!("gfx906_{threads}.kdb"));
            let mut options = WriteOptions::default();
            options.blob = blob;
            pool.install(|| {
                write(&path, &rows, &options, |index| io::Result::Ok(kernels[index].1.clone()))
            })
            .unwrap();
            files.push(std::fs::read(&path).unwrap());
        }
        assert!(files[0].len() > 1 << 20, "large enough for pages to be spilled");
        assert!(files.windows(2).all(|pair| pair[0] == pair[1]), "{blob:?}");
    }
}

#[test]
fn the_header_does_not_depend_on_the_time() {
    let (_directory, path) = written();
    let header = std::fs::read(path).unwrap();
    assert_eq!(header[18..20], [1, 1], "rollback journal, not WAL");
    assert_eq!(header[24..28], [0, 0, 0, 1], "file change counter");
    assert_eq!(header[92..96], [0, 0, 0, 1], "version-valid-for number");
    assert_eq!(header[40..44], [0, 0, 0, 2], "schema cookie: a table and an index");
    assert_eq!(header[60..72], [0; 12], "user version, incremental vacuum, application id");
    let version = u32::from_be_bytes(header[96..100].try_into().unwrap());
    assert_eq!(version, rusqlite::version_number() as u32);
}

#[test]
fn a_kdb_without_rows_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let none = |_| -> io::Result<Vec<u8>> { unreachable!("no rows") };
    let written = write(&path, &[], &WriteOptions::default(), none).unwrap();
    assert!(written.file_bytes >= gfxpack_kdb::MIN_FILE_BYTES);
    let reader = gfxpack_kdb::Reader::open(&path).unwrap();
    assert_eq!(reader.get(&key("a.cl.o", "")).unwrap(), None);
    assert_eq!(reader.info().unwrap().rows, 0);
}

/// Tries to replace a kdb by one of these rows, compressed and raw. Checks that
/// the error is the same and the directory unchanged.
#[track_caller]
fn refused(rows: &[Row<'_>], object: impl Fn(usize) -> io::Result<Vec<u8>> + Sync) -> Error {
    let (directory, path) = written();
    let before = std::fs::read(&path).unwrap();
    let [error, of_raw] = [Blob::Smaller, Blob::Raw].map(|blob| {
        let mut options = WriteOptions::default();
        options.blob = blob;
        let error = write(&path, rows, &options, &object).unwrap_err();
        assert_eq!(listing(directory.path()), ["gfx906_60.kdb"], "nothing is left behind");
        assert!(std::fs::read(&path).unwrap() == before, "the older file is untouched");
        assert!(error.hint().is_some());
        error
    });
    assert_eq!(error.to_string(), of_raw.to_string());
    error
}

#[test]
fn only_canonical_keys_are_accepted() {
    let object = |_| Ok(vec![1]);
    let mut kernels = kernels();
    kernels.swap(2, 3);
    assert!(refused(&rows(&kernels), object).to_string().contains(": it must stand before"));
    kernels[2] = kernels[3].clone();
    assert!(refused(&rows(&kernels), object).to_string().ends_with(": the key occurs twice"));
    for (name, args) in [("a.cl.o", " -D'"), ("a'.cl.o", ""), ("a.cl.o", "\0"), ("a\0.cl.o", "")] {
        let key = key(name, args);
        let error = refused(&[Row { key: &key, size: 1 }], object);
        assert_eq!(error.to_string(), "failed to take a kernel into the kdb");
    }
    let long = key("a.cl.o", &" -DX".repeat(300_000));
    let error = refused(&[Row { key: &long, size: 1 }], object);
    assert!(error.to_string().contains("its key has 1200006 bytes"), "{error}");
}

#[test]
fn the_first_faulty_object_in_row_order_is_named() {
    let kernels = many();
    let rows = rows(&kernels);
    let object = |index: usize| {
        if index % 100 == 77 {
            Err(io::Error::other(format!("object {index}")))
        } else {
            Ok(kernels[index].1.clone())
        }
    };
    let expected = format!("the code object of kernel `{}`: object 77", kernels[77].0);
    assert!(in_full(&refused(&rows, object)).ends_with(&expected));
    let empty = refused(&rows, |_| Ok(Vec::new()));
    assert!(empty.to_string().contains("its code object has 0 bytes"), "{empty}");
}

#[test]
fn an_impossible_destination_is_an_error() {
    let (directory, path) = written();
    let object = |_| io::Result::Ok(vec![1]);
    let attempt = |path: &Path| write(path, &[], &WriteOptions::default(), object).unwrap_err();
    std::fs::create_dir(directory.path().join("d.kdb")).unwrap();
    let destinations = [path.join("x.kdb"), directory.path().join("no/x.kdb"), "/".into()];
    for path in destinations.into_iter().chain([directory.path().join("d.kdb")]) {
        assert!(attempt(&path).io_kind().is_some(), "{}", path.display());
    }
    assert_eq!(listing(directory.path()), ["d.kdb", "gfx906_60.kdb"]);
}

#[cfg(unix)]
#[test]
fn the_umask_decides_who_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let (directory, path) = written();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}
