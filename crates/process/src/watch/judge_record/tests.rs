//! Judging whole records.

use std::os::unix::fs::{MetadataExt, symlink};

use super::*;
use crate::FileDigests;
use crate::watch::{PathStates, Process};

/// A time long after all files of a test were created.
const LATER: Timestamp = Timestamp(u64::MAX / 2);
const PROGRAM: &str = "/bin/sh";

struct Fixture {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    for name in ["scratch", "system"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    fs::write(root.join("system/x.h"), "1").unwrap();
    Fixture { _dir: dir, root }
}

impl Fixture {
    fn access(&self, path: &str, operation: Operation, error: Option<i32>) -> FileAccess {
        let path = self.path(path);
        let file = fs::metadata(&path)
            .ok()
            .filter(|_| error.is_none())
            .map(|meta| FileStat { mode: meta.mode(), identity: Identity::from_metadata(&meta) });
        FileAccess { path, operation, error, file }
    }

    fn open(&self, path: &str) -> FileAccess {
        let real = Some(self.path(path));
        self.access(path, Operation::Open { flags: 0, real }, None)
    }

    /// What was asked, without the programs themselves.
    fn judge(&self, accesses: Vec<FileAccess>, since: Timestamp) -> RunDependencies {
        let process = Process {
            pid: 1,
            program: fs::canonicalize(PROGRAM).unwrap(),
            arguments: vec!["sh".into()],
            compiles: false,
            libraries: Vec::new(),
        };
        let record = Record {
            processes: vec![process],
            executions: Vec::new(),
            accesses,
            heap_was_short: false,
        };
        let digests = FileDigests::default();
        let (file_system, scratch) = (FileSystemCache::new(&digests), self.path("scratch"));
        let program = Path::new(PROGRAM);
        let mut judged = judge_driver_record(&record, program, &scratch, &file_system, since);
        let count = judged.states.len();
        judged.states.retain(|(path, _)| path.starts_with(&self.root));
        assert!(judged.states.len() < count, "the program counts");
        judged
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(Path::new(path))
    }
}

#[test]
fn found_and_missing_paths_are_both_recorded() {
    let f = fixture();
    let accesses = vec![
        f.access("system/none/y.h", Operation::Stat, Some(2)),
        f.open("system/x.h"),
        f.access("system", Operation::Stat, None),
        f.access("scratch/x.h", Operation::Stat, Some(2)),
        f.access("scratch/o", Operation::Open { flags: 0o101, real: None }, None),
        f.access("new/o", Operation::Open { flags: 0o101, real: None }, Some(2)),
        f.access("scratch/none/o", Operation::Change, Some(2)),
    ];
    let settled = f.judge(accesses, LATER);
    let states: Vec<_> = settled.states.into_iter().map(|(path, _)| path).collect();
    assert_eq!(states, ["new", "system", "system/none", "system/x.h"].map(|path| f.path(path)));
    assert_eq!(settled.unusable, None);
}

#[test]
fn a_changed_link_is_noticed() {
    let f = fixture();
    for dir in ["one", "two"] {
        fs::create_dir(f.path(dir)).unwrap();
        fs::write(f.path(dir).join("a.h"), dir).unwrap();
    }
    let link = |to: &str| {
        fs::remove_file(f.path("system/dir")).ok();
        symlink(f.path(to), f.path("system/dir")).unwrap();
    };
    link("one");
    let opened = Operation::Open { flags: 0, real: Some(f.path("one/a.h")) };
    let accesses = vec![
        f.access("system/dir/a.h", opened, None),
        f.access("system/dir/none.h", Operation::Stat, Some(2)),
    ];
    let states = PathStates::new(f.judge(accesses, LATER).states);
    let digests = FileDigests::default();
    assert!(states.hold(&FileSystemCache::new(&digests)));
    link("two");
    let file_system = FileSystemCache::new(&digests);
    assert_eq!(states.first_change(&file_system), Some(&*f.path("system/dir/a.h")));
}

#[test]
fn what_the_next_run_has_elsewhere_is_reported() {
    let f = fixture();
    let listed = f.access("scratch", Operation::List, None);
    assert_eq!(f.judge(vec![listed], LATER).unusable, Some(f.path("scratch")));
}

#[test]
fn a_file_that_could_not_be_opened_was_not_read() {
    let f = fixture();
    let open =
        |error| f.access("system/x.h", Operation::Open { flags: 0, real: None }, Some(error));
    // EACCES, EMFILE, and ELOOP, which means that a link is not to be followed.
    for (error, changed) in [(13, true), (24, true), (40, false)] {
        let settled = f.judge(vec![open(error)], LATER);
        assert_eq!(settled.unusable.is_some(), changed, "{error}");
    }
}

#[test]
fn a_file_that_has_changed_since_is_reported() {
    let f = fixture();
    let accesses = || vec![f.open("system/x.h")];
    let now = fs::metadata(f.root.join("system/x.h")).unwrap().ctime();
    let now = u64::try_from(now).unwrap();
    assert_eq!(f.judge(accesses(), Timestamp(now)).fresh, Some(f.path("system/x.h")));
    assert_eq!(f.judge(accesses(), Timestamp(now + 10)).fresh, None);
    let before = accesses();
    fs::write(f.path("system/new"), "1").unwrap();
    fs::rename(f.path("system/new"), f.path("system/x.h")).unwrap();
    assert_eq!(f.judge(before, LATER).unusable, Some(f.path("system/x.h")), "another file");
    let absent = vec![f.access("system/x.h", Operation::Stat, Some(2))];
    assert_eq!(f.judge(absent, LATER).unusable, Some(f.path("system/x.h")), "it came");
    let gone = accesses();
    fs::remove_file(f.path("system/x.h")).unwrap();
    assert_eq!(f.judge(gone, LATER).unusable, Some(f.path("system/x.h")), "it went");
}
