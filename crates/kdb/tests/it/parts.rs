//! Splits, differences, statistics and origins of kdbs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_kdb::{
    Blob, Change, Conflict, CopyOptions, Differences, Layout, MAX_OBJECT_BYTES, ObjectOrigin,
    ReadError, Reader, SplitBy, VerifyOptions, convert, diff, merge, split, verify,
};
use gfxpack_model::KernelKey;

use crate::support::{
    GFX906, code_object, kernels, key, listing, origin_of, write_kernels, write_laid_out,
    write_with_origins,
};

fn many() -> Vec<(KernelKey, Vec<u8>)> {
    let mut all: Vec<_> = (0..300_u64)
        .map(|n| {
            let args = format!(" -DN={n}{} -mcpu=gfx906", " -DLONG=1".repeat(n as usize % 120));
            let object =
                code_object(GFX906, 1 + n / 2, 300 + (n as usize / 2 * 97) % 9000, n % 3 == 0);
            (key(&format!("dir/k{}.cl.o", n % 7), &args), object)
        })
        .collect();
    all.sort();
    all
}

fn parts_of(input: &Path, dir: &Path, by: SplitBy) -> Vec<PathBuf> {
    let mut parts = Vec::new();
    split(input, dir, by, &CopyOptions::default(), |part| {
        assert_eq!(part.written.file_bytes, part.path.metadata().unwrap().len());
        parts.push(part.path.clone());
    })
    .unwrap();
    parts
}

fn in_layout(layout: Layout) -> CopyOptions<'static> {
    let mut options = CopyOptions::default();
    options.layout = Some(layout);
    options
}

#[test]
fn parts_merge_back_into_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let out = directory.path().join("out.kdb");
    for layout in [Layout::Miopen, Layout::Dense] {
        write_with_origins(&path, &many(), layout);
        let whole = std::fs::read(&path).unwrap();
        for by in [SplitBy::Kernel, SplitBy::Size(500_000)] {
            let dir = directory.path().join("parts");
            std::fs::remove_dir_all(&dir).ok();
            let mut parts = parts_of(&path, &dir, by);
            match by {
                SplitBy::Kernel => {
                    let names: Vec<String> = (0..7).map(|n| format!("dir%2Fk{n}.cl.o")).collect();
                    assert_eq!(listing(&dir), names);
                }
                SplitBy::Size(limit) => {
                    let sizes: Vec<u64> =
                        parts.iter().map(|part| part.metadata().unwrap().len()).collect();
                    assert!(sizes.iter().all(|size| *size <= limit), "{sizes:?}");
                    let filled = &sizes[..sizes.len() - 1];
                    assert!(filled.iter().all(|size| *size > limit * 4 / 5), "{sizes:?}");
                }
                _ => unreachable!("all are covered"),
            }
            for part in &parts {
                assert_eq!(part.file_name().unwrap(), "gfx906_60.kdb", "the name says the target");
            }
            let report = verify(&parts[0], None, &VerifyOptions::default()).unwrap();
            assert!(report.is_sound(), "{:?}", report.findings);
            parts.reverse();
            merge(&parts, &out, Conflict::Error, &in_layout(layout)).unwrap();
            assert!(std::fs::read(&out).unwrap() == whole, "{by:?}");
        }
    }
}

#[test]
fn a_row_larger_than_a_part_gets_its_own_part() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    write_kernels(&path, &kernels(), Blob::Smaller);
    let dir = directory.path().join("parts");
    assert_eq!(parts_of(&path, &dir, SplitBy::Size(1)).len(), 9);
    assert_eq!(listing(&dir), ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
}

#[test]
fn origins_are_copied_with_their_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let kernels = many();
    write_with_origins(&path("a.kdb"), &kernels, Layout::Miopen);
    let read = |path: &Path| {
        let mut found: BTreeMap<KernelKey, Option<Arc<ObjectOrigin>>> = BTreeMap::new();
        Reader::open(path)
            .unwrap()
            .for_each_origin(|key, origin| {
                found.insert(key, origin);
                Ok::<_, ReadError>(())
            })
            .unwrap();
        found
    };
    let expected: BTreeMap<_, _> =
        kernels.iter().map(|(key, _)| (key.clone(), origin_of(key))).collect();
    assert_eq!(read(&path("a.kdb")), expected);
    convert(&path("a.kdb"), &path("dense.kdb"), &in_layout(Layout::Dense)).unwrap();
    assert_eq!(read(&path("dense.kdb")), expected);
    convert(&path("dense.kdb"), &path("b.kdb"), &in_layout(Layout::Miopen)).unwrap();
    assert!(std::fs::read(path("a.kdb")).unwrap() == std::fs::read(path("b.kdb")).unwrap());

    // `verify` gives the same result with side tables.
    for name in ["a.kdb", "dense.kdb"] {
        let report = verify(&path(name), None, &VerifyOptions::default()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }

    // A file without origins has no side tables.
    write_kernels(&path("plain.kdb"), &kernels, Blob::Smaller);
    assert!(read(&path("plain.kdb")).values().all(Option::is_none));
    let with = path("a.kdb").metadata().unwrap().len();
    let without = path("plain.kdb").metadata().unwrap().len();
    assert_eq!(with - without, 2 * 4096, "one entry for each run of rows, a page a table");
}

#[test]
fn every_difference_is_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (directory.path().join("a.kdb"), directory.path().join("b.kdb"));
    let mut kernels = kernels();
    write_laid_out(&a, &kernels, Blob::Smaller, Layout::Miopen);
    let compare = || {
        let mut reported = Vec::new();
        let found = diff(&a, &b, MAX_OBJECT_BYTES, |change| {
            reported.push(match change {
                Change::Added(entry) => format!("+ {}", entry.key.kernel_name),
                Change::Removed(entry) => format!("- {}", entry.key.kernel_name),
                Change::Changed { old, new } => {
                    assert_eq!(old.key, new.key);
                    assert_ne!(old.hash, new.hash);
                    format!("~ {}", new.key.kernel_name)
                }
                Change::Recoded { new, .. } => format!("= {}", new.key.kernel_name),
                other => panic!("{other:?}"),
            });
            Ok::<_, ReadError>(())
        });
        (found.unwrap(), reported)
    };
    write_laid_out(&b, &kernels, Blob::Smaller, Layout::Dense);
    let (found, reported) = compare();
    assert!(found.is_none() && reported.is_empty(), "the layout is no difference: {reported:?}");
    assert_eq!(found.same, 9);

    write_laid_out(&b, &kernels, Blob::Raw, Layout::Dense);
    let (found, reported) = compare();
    assert!(found.is_none(), "MIOpen gets the same answers");
    assert_eq!((found.recoded, reported.len()), (4, 4));

    let (first, _) = kernels.remove(0);
    kernels[3].1.push(0);
    kernels.push((key("zz.cl.o", " -mcpu=gfx906"), vec![1]));
    write_laid_out(&b, &kernels, Blob::Smaller, Layout::Miopen);
    let (found, reported) = compare();
    assert!(!found.is_none());
    let Differences { same, added, removed, changed, .. } = found;
    assert_eq!((same, added, removed, changed), (7, 1, 1, 1));
    let expected = [
        format!("- {}", first.kernel_name),
        format!("~ {}", kernels[3].0.kernel_name),
        "+ zz.cl.o".to_owned(),
    ];
    assert_eq!(reported, expected);
}

#[test]
fn statistics_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    for layout in [Layout::Miopen, Layout::Dense] {
        let kernels = many();
        let written = write_laid_out(&path, &kernels, Blob::Smaller, layout);
        let stats = Reader::open(&path).unwrap().stats(None).unwrap();
        assert_eq!(stats.layout, layout);
        assert_eq!(stats.file_bytes, written.file_bytes);
        assert_eq!((stats.all.rows, stats.all.raw_rows), (written.rows, written.raw_rows));
        assert_eq!(stats.all.stored_bytes, written.stored_bytes);
        assert_eq!(stats.all.object_bytes, written.object_bytes);
        let keys: usize =
            kernels.iter().map(|(key, _)| key.kernel_name.len() + key.kernel_args.len()).sum();
        assert_eq!(stats.all.key_bytes, keys as u64);
        let distinct: std::collections::BTreeSet<_> =
            kernels.iter().map(|(_, object)| object).collect();
        assert_eq!(stats.all.repeated_rows, 300 - distinct.len() as u64);
        assert!(stats.all.repeated_rows >= 50);
        assert_eq!(stats.kernels.len(), 7);
        assert_eq!(stats.kernels.values().map(|sums| sums.rows).sum::<u64>(), 300);
        assert_eq!(
            stats.kernels.values().map(|sums| sums.stored_bytes).sum::<u64>(),
            stats.all.stored_bytes
        );
        assert_eq!(stats.sizes.iter().sum::<u64>(), 300);
        let small = kernels.iter().filter(|(_, object)| (256..512).contains(&object.len()));
        assert_eq!(stats.sizes[8], small.count() as u64);
        assert_eq!(stats.ratios.iter().sum::<u64>(), 300);
        assert!(stats.ratios[19] >= stats.all.raw_rows, "a raw one is at 100 %");
    }
}
