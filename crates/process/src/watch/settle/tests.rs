//! Judging whole records.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use super::super::{Class, Process};
use super::*;
use crate::watch::{Answers, Place};
use crate::{FileDigests, Identity};

/// A time long after all files of a test were created.
const LATER: Timestamp = Timestamp(u64::MAX / 2);

struct Fixture {
    _dir: tempfile::TempDir,
    root: PathBuf,
    places: Places,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    for name in ["stage", "scratch", "system"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    fs::write(root.join("system/x.h"), "1").unwrap();
    let places = Places::new(root.join("stage"))
        .with(Place::Scratch, root.join("scratch"))
        .with(Place::Readable, root.join("system"));
    Fixture { _dir: dir, root, places }
}

impl Fixture {
    fn ask(&self, path: &str, what: What, error: Option<i32>) -> Ask {
        let path = self.root.join(path);
        let file = fs::metadata(&path)
            .ok()
            .filter(|_| error.is_none())
            .map(|meta| FileState { mode: meta.mode(), identity: Identity::from_metadata(&meta) });
        Ask { process: 0, path, what, error, file }
    }

    fn open(&self, path: &str) -> Ask {
        let real = Some(self.root.join(path));
        self.ask(path, What::Open { flags: 0, real }, None)
    }

    fn settle(&self, asks: Vec<Ask>, since: Timestamp) -> Settled {
        let process = Process {
            pid: 1,
            program: "/usr/bin/clang".into(),
            arguments: vec!["clang".into(), "-cc1".into()],
            directory: "/".into(),
            class: Class::Compiler,
            libraries: Vec::new(),
        };
        let record = Record { processes: vec![process], asks, heap_was_short: false };
        let digests = FileDigests::in_memory();
        settle(&record, |_| &self.places, &Looks::new(&digests), since)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(Path::new(path))
    }
}

#[test]
fn found_and_missing_paths_are_both_recorded() {
    let f = fixture();
    let asks = vec![
        f.ask("system/none/y.h", What::Stat, Some(2)),
        f.open("system/x.h"),
        f.ask("system", What::Stat, None),
        f.ask("stage/x.h", What::Stat, Some(2)),
        f.ask("stage", What::Stat, None),
        f.ask("scratch/o", What::Open { flags: 0o101, real: None }, None),
    ];
    let settled = f.settle(asks, LATER);
    let answers: Vec<_> = settled.answers.into_iter().map(|(path, _)| path).collect();
    assert_eq!(answers, ["system", "system/none", "system/x.h"].map(|path| f.path(path)));
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
    let looks = Looks::new(&digests);
    // The toolchain's own paths are covered, whatever links they contain.
    f.places = f.places.clone().with_linked(Place::Covered, &f.path("installed"), &looks);
    let open =
        |path: &str, to: &str| f.ask(path, What::Open { flags: 0, real: Some(f.path(to)) }, None);
    let own = vec![open("installed/one/a.h", "toolchain/one/a.h"), f.open("toolchain/one/a.h")];
    assert!(f.settle(own, LATER).answers.is_empty());
    let asks = vec![
        open("system/dir/a.h", "toolchain/one/a.h"),
        f.ask("system/dir/none.h", What::Stat, Some(2)),
    ];
    let answers = Answers::new(f.settle(asks, LATER).answers, &looks);
    assert!(answers.hold(&Looks::new(&digests)));
    link("system/dir", "toolchain/two");
    let (changed, _) = answers.first_change(&Looks::new(&digests)).unwrap();
    assert_eq!(changed, f.path("system/dir/a.h"));
}

#[test]
fn paths_through_proc_may_not_be_read() {
    let f = fixture();
    symlink("/proc/self", f.path("system/self")).unwrap();
    symlink("self/cwd", f.path("system/cwd")).unwrap();
    symlink("/proc/self/fd", f.path("system/fd")).unwrap();
    let reads = |path: &str, error| {
        let asks = vec![f.ask(path, What::Stat, error)];
        f.settle(asks, LATER).reads
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
    let settled = f.settle(vec![f.open("secret")], LATER);
    assert_eq!(settled.reads, Some(f.path("secret")));
    let written = f.ask("stage/o", What::Open { flags: 0o101, real: None }, Some(13));
    assert_eq!(f.settle(vec![written], LATER).writes, Some(f.path("stage/o")));
}

#[test]
fn a_file_that_could_not_be_opened_was_not_read() {
    let f = fixture();
    let open = |error| f.ask("system/x.h", What::Open { flags: 0, real: None }, Some(error));
    // EACCES, EMFILE, and ELOOP, which means that a link is not to be followed.
    for (error, changed) in [(13, true), (24, true), (40, false)] {
        let settled = f.settle(vec![open(error)], LATER);
        assert_eq!(settled.changed.is_some(), changed, "{error}");
    }
}

#[test]
fn a_file_that_has_changed_since_is_reported() {
    let f = fixture();
    let asks = || vec![f.open("system/x.h")];
    let now = fs::metadata(f.root.join("system/x.h")).unwrap().ctime();
    let now = u64::try_from(now).unwrap();
    let just_made: Vec<_> =
        f.settle(asks(), Timestamp(now)).fresh.into_iter().map(|(path, _)| path).collect();
    assert_eq!(just_made, [f.path("system/x.h")]);
    assert!(f.settle(asks(), Timestamp(now + 10)).fresh.is_empty());
    let before = asks();
    fs::write(f.path("system/new"), "1").unwrap();
    fs::rename(f.path("system/new"), f.path("system/x.h")).unwrap();
    assert_eq!(f.settle(before, LATER).changed, Some(f.path("system/x.h")), "another file");
    let absent = vec![f.ask("system/x.h", What::Stat, Some(2))];
    assert_eq!(f.settle(absent, LATER).changed, Some(f.path("system/x.h")), "it came");
    let gone = asks();
    fs::remove_file(f.path("system/x.h")).unwrap();
    assert_eq!(f.settle(gone, LATER).changed, Some(f.path("system/x.h")), "it went");
}
