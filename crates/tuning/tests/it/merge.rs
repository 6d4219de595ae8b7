//! Merging files by their names, as MIOpen merges a user's into the system's.

use std::path::PathBuf;

use gfxpack_model::Result;
use gfxpack_tuning::{Merged, merge};

struct Dir(tempfile::TempDir);

impl Dir {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = Self(tempfile::tempdir().expect("a directory"));
        for (name, text) in files {
            std::fs::write(dir.at(name), text).expect("written");
        }
        dir
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn merge(&self, names: &[&str], output: &str) -> Result<Merged> {
        let inputs: Vec<PathBuf> = names.iter().map(|name| self.at(name)).collect();
        merge(&inputs, &self.at(output), |_, _, _| false)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).expect(name)
    }
}

const PERF: &str = "gfx906_60.db.txt";
const USER_PERF: &str = "gfx906_60.HIP.3_3_0_.udb.txt";
const FIND: &str = "gfx906_60.HIP.fdb.txt";
const USER_FIND: &str = "gfx906_60.HIP.3_3_0_.ufdb.txt";

#[test]
fn find_databases_are_merged_record_by_record() {
    let dir = Dir::new(&[
        (FIND, "k=A:1,0,miopenX;B:2,0,miopenX\nl=A:1,0,miopenX\n"),
        (USER_FIND, "k=C:3,0,miopenX\n"),
    ]);
    dir.merge(&[FIND, USER_FIND], FIND).expect("merged over one of the inputs");
    assert_eq!(dir.text(FIND), "k=C:3,0,miopenX\nl=A:1,0,miopenX\n");
}

#[test]
fn a_fault_that_would_lose_values_ends_the_merge() {
    let dir = Dir::new(&[(PERF, "k=A:1\n"), (USER_PERF, "k=A:2\nnothing\n")]);
    let error = dir.merge(&[PERF, USER_PERF], "out").expect_err("a fault").to_string();
    assert!(error.contains(&format!("{USER_PERF}`: line 2: it has no key")), "{error}");
    assert!(!dir.at("out").exists());
    let inputs = [dir.at(PERF), dir.at(USER_PERF)];
    let merged = merge(&inputs, &dir.at("out"), |_, _, _| true).expect("merged");
    assert_eq!((merged.faults, dir.text("out").as_str()), (1, "k=A:2\n"));
}

#[test]
fn databases_of_different_kinds_are_not_merged() {
    let other = "gfx906_64.db.txt";
    let dir = Dir::new(&[(PERF, "k=A:1\n"), (FIND, "k=A:1,2,miopenX\n"), (other, "l=A:1\n")]);
    for second in [FIND, other] {
        let error = dir.merge(&[PERF, second], "out").expect_err(second);
        assert!(error.to_string().contains(": they "), "{error}");
    }
    for second in ["no-such.txt", "gfx906_60.db"] {
        let error = dir.merge(&[PERF, second], "out").expect_err(second);
        assert!(error.to_string().contains("by its name"), "{error}");
    }
}
