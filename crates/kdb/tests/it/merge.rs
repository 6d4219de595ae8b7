//! Merges, the same bytes whatever the order, and differences.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{
    Blob, Change, Conflict, CopyOptions, Differences, MiopenVersion, ReadError, Reader,
    VerifyOptions, WriteOptions, diff, merge, verify, write,
};
use gfxpack_model::Result;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::support::{
    GFX906, code_object, kernels, key, listing, rows, share_of_cases, to_wal_mode, write_kernels,
};

/// A file of numbered kernels, each in one of several builds.
#[derive(Debug, Clone)]
struct File {
    kernels: Vec<(u8, u8)>,
    blob: Blob,
    version: u32,
}

impl File {
    fn write(&self, path: &Path) {
        let kernels: Vec<_> = self
            .kernels
            .iter()
            .map(|(number, build)| {
                let args = format!(" -DN={:03} -mcpu=gfx906", number);
                let seed = 1 + u64::from(number % 5) * 8 + u64::from(*build);
                (key("k.cl.o", &args), code_object(GFX906, seed, 300, true))
            })
            .collect();
        let mut options = WriteOptions::default();
        options.blob = self.blob;
        options.miopen_version = MiopenVersion(self.version);
        write(path, &rows(&kernels), &options, |index| io::Result::Ok(kernels[index].1.clone()))
            .unwrap();
    }
}

fn file(builds: u8) -> impl Strategy<Value = File> {
    let blob = prop_oneof![Just(Blob::Smaller), Just(Blob::Raw)];
    (btree_map(0..20_u8, 0..builds, 0..15), blob, 0..3_u32).prop_map(|(kernels, blob, version)| {
        File { kernels: kernels.into_iter().collect(), blob, version }
    })
}

fn union(inputs: &[&PathBuf], out: &Path, policy: Conflict) -> Result<Vec<u8>> {
    let inputs: Vec<PathBuf> = inputs.iter().map(|path| (*path).clone()).collect();
    merge(&inputs, out, policy, &CopyOptions::default())?;
    Ok(std::fs::read(out).unwrap())
}

/// Merges three files in every grouping, and in every order unless the policy
/// depends on it. All results must be the same bytes.
fn check(files: &[File], policy: Conflict) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let inputs = ["a.kdb", "b.kdb", "c.kdb"].map(path);
    for (file, path) in files.iter().zip(&inputs) {
        file.write(path);
    }
    let [a, b, c] = &inputs;
    let (pair, out) = (path("pair.kdb"), path("out.kdb"));
    let all = union(&[a, b, c], &out, policy);
    let Ok(all) = all else {
        prop_assert!(policy == Conflict::Error);
        prop_assert!(!out.exists(), "nothing is written");
        return Ok(());
    };
    union(&[b, c], &pair, policy).unwrap();
    prop_assert!(union(&[a, &pair], &out, policy).unwrap() == all, "a, (b, c)");
    union(&[a, b], &pair, policy).unwrap();
    prop_assert!(union(&[&pair, c], &out, policy).unwrap() == all, "(a, b), c");
    if policy != Conflict::First {
        prop_assert!(union(&[c, a, b], &out, policy).unwrap() == all, "c, a, b");
        prop_assert!(union(&[b, b, c, a], &out, policy).unwrap() == all, "b, b, c, a");
        union(&[c, a], &pair, policy).unwrap();
        prop_assert!(union(&[&pair, b], &out, policy).unwrap() == all, "(c, a), b");
    }
    let report = verify(&out, None, &VerifyOptions::default()).unwrap();
    prop_assert!(report.is_sound(), "{:?}", report.findings);
    let mut numbers: Vec<u8> =
        files.iter().flat_map(|file| &file.kernels).map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    prop_assert_eq!(report.rows, numbers.len() as u64, "every key once");
    Ok(())
}

proptest! {
    #![proptest_config(share_of_cases(32))]

    #[test]
    fn merging_is_associative_and_commutative(files in vec(file(1), 3)) {
        check(&files, Conflict::Error)?;
    }

    #[test]
    fn merging_files_with_conflicts_is_associative_and_commutative(files in vec(file(3), 3)) {
        check(&files, Conflict::First)?;
        check(&files, Conflict::Error)?;
    }
}

#[test]
fn a_merged_file_is_for_the_version_that_all_are_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for (versions, expected) in [([3_004_000, 3_004_000], 3_004_000), ([3_004_000, 3_005_001], 0)] {
        let inputs = ["a.kdb", "b.kdb"].map(path);
        for (number, (input, version)) in (0..).zip(inputs.iter().zip(versions)) {
            File { kernels: vec![(number, 0)], blob: Blob::Raw, version }.write(input);
        }
        let [a, b] = &inputs;
        union(&[a, b], &path("all.kdb"), Conflict::Error).unwrap();
        let header = Reader::open(path("all.kdb")).unwrap().header();
        assert_eq!(header.miopen_version, MiopenVersion(expected));
    }
}

/// Two files with one common kernel, and different builds of another.
fn contradiction() -> (tempfile::TempDir, [PathBuf; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a.kdb", "b.kdb"].map(|name| directory.path().join(name));
    for (build, path) in paths.iter().enumerate() {
        let kernels = vec![(1, 0), (2, build as u8)];
        File { kernels, blob: Blob::Smaller, version: 0 }.write(path);
    }
    (directory, paths)
}

#[test]
fn the_policy_decides_conflicts_and_is_named_in_the_hint() {
    let (directory, [a, b]) = contradiction();
    let out = directory.path().join("out.kdb");
    let options = CopyOptions::default();
    let contested = key("k.cl.o", " -DN=002 -mcpu=gfx906");
    let of = |path: &Path| Reader::open(path).unwrap().get(&contested).unwrap().unwrap();
    for order in [[a.clone(), b.clone()], [b.clone(), a.clone()]] {
        let error = merge(&order, &out, Conflict::Error, &options).unwrap_err();
        assert!(error.hint().unwrap().contains("--on-conflict"));
        let [first, second] = order.each_ref().map(|path| path.display());
        let named = format!("kernel `{contested}`: `{first}` and `{second}` differ in it");
        assert!(error.to_string().ends_with(&named), "{error}");
        assert_eq!(listing(directory.path()), ["a.kdb", "b.kdb"], "nothing is left behind");

        let merged = merge(&order, &out, Conflict::First, &options).unwrap();
        assert_eq!((merged.written.rows, merged.repeated, merged.conflicts), (2, 1, 1));
        assert_eq!(of(&out), of(&order[0]));
        std::fs::remove_file(&out).unwrap();
    }
}

#[test]
fn a_users_kdb_in_wal_mode_is_merged_once_its_log_is_empty() {
    let (directory, [a, _]) = contradiction();
    let user = directory.path().join("gfx906_60.ukdb");
    write_kernels(&user, &kernels(), Blob::Smaller);
    to_wal_mode(&user);
    let out = directory.path().join("out.kdb");
    let inputs = [a, user.clone()];
    let merged = merge(&inputs, &out, Conflict::Error, &CopyOptions::default()).unwrap();
    assert_eq!(merged.written.rows, 11);
    let log = directory.path().join("gfx906_60.ukdb-wal");
    std::fs::write(log, "rows that are not in the file yet").unwrap();
    let error = merge(&inputs, &out, Conflict::Error, &CopyOptions::default()).unwrap_err();
    assert!(error.to_string().contains("wal"), "{error}");
}

/// A damaged row is not copied.
#[test]
fn a_damaged_row_is_not_merged() {
    let (directory, [a, b]) = contradiction();
    let connection = rusqlite::Connection::open(&a).unwrap();
    connection.execute("UPDATE kern_db SET kernel_hash = 'x' WHERE id = 1", ()).unwrap();
    drop(connection);
    let out = directory.path().join("out.kdb");
    let error = merge(&[b, a.clone()], &out, Conflict::First, &CopyOptions::default());
    // The row of `b` is taken, which is intact.
    assert!(error.is_ok(), "{error:?}");
    std::fs::remove_file(&out).unwrap();
    let merge = || merge(std::slice::from_ref(&a), &out, Conflict::Error, &CopyOptions::default());
    let error = merge().unwrap_err();
    assert!(error.hint().unwrap().contains("build the file"), "{error}");
    let connection = rusqlite::Connection::open(&a).unwrap();
    connection.execute("DROP INDEX idx_kern_db", ()).unwrap();
    drop(connection);
    assert!(merge().unwrap_err().to_string().contains("no unique index"));
    assert!(!out.exists());
}

#[test]
fn every_difference_is_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (directory.path().join("a.kdb"), directory.path().join("b.kdb"));
    let mut kernels = kernels();
    write_kernels(&a, &kernels, Blob::Smaller);
    let compare = || {
        let mut reported = Vec::new();
        let found = diff(&a, &b, |change| {
            reported.push(match change {
                Change::Added(entry) => format!("+ {}", entry.key.kernel_name),
                Change::Removed(entry) => format!("- {}", entry.key.kernel_name),
                Change::Changed { old, new } => {
                    assert_eq!(old.key, new.key);
                    assert_ne!(old.hash, new.hash);
                    format!("~ {}", new.key.kernel_name)
                }
                Change::Recoded { new, .. } => format!("= {}", new.key.kernel_name),
            });
            Ok::<_, ReadError>(())
        });
        (found.unwrap(), reported)
    };
    write_kernels(&b, &kernels, Blob::Smaller);
    let (found, reported) = compare();
    assert!(found.is_none() && reported.is_empty(), "{reported:?}");
    assert_eq!(found.same, 9);

    write_kernels(&b, &kernels, Blob::Raw);
    let (found, reported) = compare();
    assert!(found.is_none(), "MIOpen gets the same answers");
    assert_eq!((found.recoded, reported.len()), (4, 4));

    let (first, _) = kernels.remove(0);
    kernels[3].1.push(0);
    kernels.push((key("zz.cl.o", " -mcpu=gfx906"), vec![1]));
    write_kernels(&b, &kernels, Blob::Smaller);
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
