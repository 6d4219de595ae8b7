//! Judging whole records.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use super::super::{Process, ProcessClass};
use super::*;
use crate::watch::{PathRole, PathStates};
use crate::{FileDigests, Identity};

/// A time long after all files of a test were created.
const LATER: Timestamp = Timestamp(u64::MAX / 2);

struct Fixture {
    _dir: tempfile::TempDir,
    root: PathBuf,
    roles: PathRoles,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    for name in ["stage", "scratch", "system"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    fs::write(root.join("system/x.h"), "1").unwrap();
    let roles = PathRoles::new(root.join("stage"))
        .with(PathRole::Scratch, root.join("scratch"))
        .with(PathRole::Readable, root.join("system"));
    Fixture { _dir: dir, root, roles }
}

impl Fixture {
    fn access(&self, path: &str, operation: Operation, error: Option<i32>) -> FileAccess {
        let path = self.root.join(path);
        let file = fs::metadata(&path)
            .ok()
            .filter(|_| error.is_none())
            .map(|meta| FileStat { mode: meta.mode(), identity: Identity::from_metadata(&meta) });
        FileAccess { process: 0, path, operation, error, file }
    }

    fn open(&self, path: &str) -> FileAccess {
        let real = Some(self.root.join(path));
        self.access(path, Operation::Open { flags: 0, real }, None)
    }

    fn judge_record(&self, accesses: Vec<FileAccess>, since: Timestamp) -> RunDependencies {
        let process = Process {
            pid: 1,
            program: "/usr/bin/clang".into(),
            arguments: vec!["clang".into(), "-cc1".into()],
            directory: "/".into(),
            class: ProcessClass::Compiler,
            libraries: Vec::new(),
        };
        let record = Record {
            processes: vec![process],
            executions: Vec::new(),
            accesses,
            heap_was_short: false,
        };
        let digests = FileDigests::in_memory();
        judge_records([&record], |_| &self.roles, &FileSystemCache::new(&digests), since)
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
        f.access("stage/x.h", Operation::Stat, Some(2)),
        f.access("stage", Operation::Stat, None),
        f.access("scratch/o", Operation::Open { flags: 0o101, real: None }, None),
    ];
    let settled = f.judge_record(accesses, LATER);
    let states: Vec<_> = settled.states.into_iter().map(|(path, _)| path).collect();
    assert_eq!(states, ["system", "system/none", "system/x.h"].map(|path| f.path(path)));
    let stage: Vec<_> = settled.stage.into_iter().collect();
    let asked = |found, absent| InStage { found, absent };
    assert_eq!(stage, [("".into(), asked(true, false)), ("x.h".into(), asked(false, true))]);
    assert_eq!((settled.reads, settled.writes, settled.changed), (None, None, None));
}

#[test]
fn a_link_into_the_toolchain_is_judged_by_its_target() {
    let mut f = fixture();
    let root = f.root.clone();
    for dir in ["one", "two"] {
        fs::create_dir_all(f.path("toolchain").join(dir)).unwrap();
        fs::write(f.path("toolchain").join(dir).join("a.h"), dir).unwrap();
    }
    let link = |name: &str, to: &str| {
        fs::remove_file(root.join(name)).ok();
        symlink(root.join(to), root.join(name)).unwrap();
    };
    link("system/dir", "toolchain/one");
    link("installed", "toolchain");
    let digests = FileDigests::in_memory();
    let file_system = FileSystemCache::new(&digests);
    // The toolchain's own paths are covered, whatever links they contain.
    f.roles = f.roles.clone().with_linked(PathRole::Covered, [f.path("installed")], &file_system);
    let open = |path: &str, to: &str| {
        f.access(path, Operation::Open { flags: 0, real: Some(f.path(to)) }, None)
    };
    let own = vec![open("installed/one/a.h", "toolchain/one/a.h"), f.open("toolchain/one/a.h")];
    assert!(f.judge_record(own, LATER).states.is_empty());
    let accesses = vec![
        open("system/dir/a.h", "toolchain/one/a.h"),
        f.access("system/dir/none.h", Operation::Stat, Some(2)),
    ];
    let states = PathStates::new(f.judge_record(accesses, LATER).states, &file_system);
    assert!(states.hold(&FileSystemCache::new(&digests)));
    link("system/dir", "toolchain/two");
    let (changed, _) = states.first_change(&FileSystemCache::new(&digests)).unwrap();
    assert_eq!(changed, f.path("system/dir/a.h"));
}

#[test]
fn paths_through_proc_may_not_be_read() {
    let f = fixture();
    symlink("/proc/self", f.path("system/self")).unwrap();
    symlink("self/cwd", f.path("system/cwd")).unwrap();
    symlink("/proc/self/fd", f.path("system/fd")).unwrap();
    let reads = |path: &str, error| {
        let accesses = vec![f.access(path, Operation::Stat, error)];
        f.judge_record(accesses, LATER).reads
    };
    for name in ["/proc/self/cwd/a.h", "system/cwd/a.h", "system/self/cwd/../a.h", "/dev/fd/99"] {
        assert_eq!(reads(name, Some(2)), Some(f.path(name)), "{name}");
    }
    assert_eq!(reads("system/fd", None), Some(f.path("system/fd")));
    for name in ["/proc", "/proc/self/exe", "system"] {
        assert_eq!(reads(name, None), None, "{name}");
    }
    assert_eq!(reads("system/none/../a.h", Some(2)), None);
}

#[test]
fn forbidden_accesses_are_reported() {
    let f = fixture();
    fs::write(f.path("secret"), "").unwrap();
    let settled = f.judge_record(vec![f.open("secret")], LATER);
    assert_eq!(settled.reads, Some(f.path("secret")));
    let written = f.access("stage/o", Operation::Open { flags: 0o101, real: None }, Some(13));
    assert_eq!(f.judge_record(vec![written], LATER).writes, Some(f.path("stage/o")));
}

#[test]
fn a_file_that_could_not_be_opened_was_not_read() {
    let f = fixture();
    let open =
        |error| f.access("system/x.h", Operation::Open { flags: 0, real: None }, Some(error));
    // EACCES, EMFILE, and ELOOP, which means that a link is not to be followed.
    for (error, changed) in [(13, true), (24, true), (40, false)] {
        let settled = f.judge_record(vec![open(error)], LATER);
        assert_eq!(settled.changed.is_some(), changed, "{error}");
    }
}

#[test]
fn a_file_that_has_changed_since_is_reported() {
    let f = fixture();
    let accesses = || vec![f.open("system/x.h")];
    let now = fs::metadata(f.root.join("system/x.h")).unwrap().ctime();
    let now = u64::try_from(now).unwrap();
    let just_made: Vec<_> = f
        .judge_record(accesses(), Timestamp(now))
        .fresh
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(just_made, [f.path("system/x.h")]);
    assert!(f.judge_record(accesses(), Timestamp(now + 10)).fresh.is_empty());
    let before = accesses();
    fs::write(f.path("system/new"), "1").unwrap();
    fs::rename(f.path("system/new"), f.path("system/x.h")).unwrap();
    assert_eq!(f.judge_record(before, LATER).changed, Some(f.path("system/x.h")), "another file");
    let absent = vec![f.access("system/x.h", Operation::Stat, Some(2))];
    assert_eq!(f.judge_record(absent, LATER).changed, Some(f.path("system/x.h")), "it came");
    let gone = accesses();
    fs::remove_file(f.path("system/x.h")).unwrap();
    assert_eq!(f.judge_record(gone, LATER).changed, Some(f.path("system/x.h")), "it went");
}
