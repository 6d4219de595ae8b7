use std::fs;

use gfxpack_rocfft::{RowError, merge, verify};

use crate::support::{code, key, rows, write_all};

#[test]
fn the_union_does_not_depend_on_order_of_its_parts() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let rows = rows();
    write_all(&at("all.db"), &rows);
    write_all(&at("a.db"), &rows[..25]);
    write_all(&at("b.db"), &rows[15..30]);
    write_all(&at("c.db"), &rows[30..]);
    let expected = fs::read(at("all.db")).unwrap();
    for parts in [["a.db", "b.db", "c.db"], ["c.db", "b.db", "a.db"]] {
        merge(&parts.map(at), &at("union.db")).unwrap();
        assert!(fs::read(at("union.db")).unwrap() == expected);
    }
    // The destination is one of the inputs.
    merge(&["a.db", "b.db", "c.db"].map(at), &at("a.db")).unwrap();
    assert_eq!(verify(&at("a.db"), Some("gfx90a")).unwrap().rows, 40);
}

#[test]
fn one_key_with_two_code_objects_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let key = key(64);
    write_all(&at("a.db"), &[(key.clone(), code(&key, 1))]);
    write_all(&at("b.db"), &[(key.clone(), code(&key, 20))]);
    let error = merge(&["a.db", "b.db"].map(at), &at("out.db")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&key.kernel_name) && text.contains("b.db` differ"), "{text}");
    assert!(!at("out.db").exists());
}

#[test]
fn a_row_that_no_driver_loads_is_not_merged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rocfft_kernel_cache.db");
    let key = key(64);
    write_all(&path, &[(key.clone(), code(&key, 1))]);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE cache_v1 SET code = x'7f454c46'", ()).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let error = merge(std::slice::from_ref(&path), &path).unwrap_err();
    assert!(error.cause::<RowError>().is_some(), "{error:?}");
    assert!(fs::read(&path).unwrap() == before);
}
