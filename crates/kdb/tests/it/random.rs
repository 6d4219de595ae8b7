//! Random rows read back unchanged; random damage never panics and never yields
//! other bytes.

use gfxpack_kdb::{Blob, ReadError, Reader, VerifyOptions, verify};
use gfxpack_model::KernelKey;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::support::{kernels, share_of_cases, write_kernels, written};

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => vec(prop::char::range(' ', '~'), 0..30),
        1 => vec(any::<char>(), 0..300),
    ];
    part.prop_map(|chars| chars.into_iter().filter(|c| !['\'', '\0'].contains(c)).collect())
}

fn object() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 1..3000),
        (any::<u8>(), 1..30_000_usize).prop_map(|(byte, size)| vec![byte; size]),
    ]
}

proptest! {
    #![proptest_config(share_of_cases(12))]

    #[test]
    fn rows_read_back_unchanged(
        kernels in btree_map((text(), text()), object(), 0..30),
        blob in prop_oneof![Just(Blob::Smaller), Just(Blob::Raw)],
    ) {
        let kernels: Vec<(KernelKey, Vec<u8>)> = kernels
            .into_iter()
            .map(|((kernel_name, kernel_args), object)| {
                (KernelKey { kernel_name, kernel_args }, object)
            })
            .collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("random.kdb");
        write_kernels(&path, &kernels, blob);
        let reader = Reader::open(&path).unwrap();
        for (key, object) in &kernels {
            let found = reader.get(key).unwrap();
            prop_assert_eq!(found.as_ref(), Some(object));
        }
        let (mut entries, mut records) = (Vec::new(), Vec::new());
        reader.for_each_row(|entry| {
            entries.push((entry.key, entry.object_bytes as usize));
            Ok::<_, ReadError>(())
        }).unwrap();
        reader.for_each_kernel(|record| {
            records.push((record.key, record.code_object));
            Ok::<_, ReadError>(())
        }).unwrap();
        let sizes: Vec<_> = kernels.iter().map(|(key, object)| (key.clone(), object.len())).collect();
        prop_assert_eq!(entries, sizes);
        prop_assert_eq!(records, kernels);
    }
}

proptest! {
    #![proptest_config(share_of_cases(8))]

    #[test]
    fn damage_is_an_error_and_never_other_bytes(
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        near_start in any::<bool>(),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let (_directory, path) = written();
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        // Headers and tree pages are few; blobs are most of the file.
        let reach = if near_start { 4096 * 3 } else { bytes.len() };
        for (at, value) in flips {
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, &bytes).unwrap();
        let report = verify(&path, None, &VerifyOptions::default()).unwrap();
        let Ok(reader) = Reader::open(&path) else { return Ok(()) };
        let _ = reader.info();
        let _ = reader.for_each_kernel(|_| Ok::<_, ReadError>(()));
        for (key, object) in kernels() {
            match reader.get(&key) {
                Ok(Some(found)) => prop_assert!(found == object),
                // A missing key, or a row that fails, is in the report.
                Ok(None) | Err(_) => prop_assert!(!report.is_sound()),
            }
        }
    }
}
