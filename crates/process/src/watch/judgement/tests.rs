//! The table, line by line.

use super::Judgement::{Absent, Found, Listing, Nothing, Reads};
use super::*;
use crate::Identity;
use crate::watch::FileStat;

const SCRATCH: &str = "/cache/work/build-1/driver";
const READ: u32 = 0;

/// How a call ended.
#[derive(Clone, Copy)]
enum End {
    File,
    Dir,
    Fails(i32),
}
use End::{Dir, Fails, File};

const NO_ENTRY: End = Fails(2);
const FORBIDDEN: End = Fails(13);

fn open(flags: u32) -> Operation {
    Operation::Open { flags, real: None }
}

fn opened(to: &str) -> Operation {
    Operation::Open { flags: READ, real: Some(to.into()) }
}

fn access(path: &str, operation: Operation, end: End) -> FileAccess {
    let stat = |mode| FileStat { mode, identity: Identity::new((1, 2), 3, 4, 5) };
    let (error, file) = match end {
        File => (None, Some(stat(0o100_644))),
        Dir => (None, Some(stat(0o040_755))),
        Fails(error) => (Some(error), None),
    };
    FileAccess { path: path.into(), operation, error, file }
}

#[test]
fn reads_are_judged_by_the_place_of_the_path() {
    let (header, build) = ("/usr/include/c++/12/cmath", "/cache/work/build-1");
    let lstat = Operation::Lstat;
    // Below the scratch directory.
    let own = |path: &str| path.replace('~', SCRATCH);
    let cases: Vec<(&str, &str, Operation, End, Judgement)> = vec![
        (header, header, open(READ), File, Found),
        (header, header, Operation::Stat, File, Found),
        (header, header, open(READ), FORBIDDEN, Found),
        (header, header, open(READ), NO_ENTRY, Absent),
        (header, header, open(READ), Fails(20), Absent),
        ("/usr/include", "/usr/include", Operation::Stat, Dir, Found),
        ("/usr/include", "/usr/include", Operation::List, Dir, Listing),
        ("~/k.o", "~/k.o", open(READ), File, Nothing),
        ("~/k.h", "~/k.h", Operation::Stat, NO_ENTRY, Nothing),
        ("~", "~", Operation::Stat, Dir, Nothing),
        ("~", "~", Operation::List, Dir, Reads),
        ("~/..", build, Operation::Stat, Dir, Nothing),
        ("~/../k.h", "/cache/work/build-1/k.h", Operation::Stat, File, Reads),
        ("~/a/../../driver/k.h", "~/k.h", Operation::Stat, File, Nothing),
        // Links out of it and into it.
        ("~/k.h", "/k.h", opened(header), File, Found),
        ("/k.h", "/k.h", opened("/cache/work/build-1/driver/k.h"), File, Nothing),
        // The directories above it.
        (build, build, lstat.clone(), Dir, Nothing),
        (build, build, Operation::List, Dir, Listing),
        ("/link", build, lstat.clone(), Dir, Found),
        ("/cache/work", "/cache/work", lstat.clone(), Dir, Found),
        ("/cache/other", "/cache/other", lstat, Dir, Found),
        // What holds no files.
        ("/proc/self/exe", "/proc", Operation::Readlink(None), File, Nothing),
        ("/proc/cpuinfo", "/proc", open(READ), File, Nothing),
        ("/dev/x", "/dev/x", Operation::Stat, NO_ENTRY, Nothing),
        ("/dev/fd/63", "/proc", opened("pipe:[1]"), File, Nothing),
        ("/dev/shm/x.cfg", "/dev/shm/x.cfg", Operation::Stat, NO_ENTRY, Absent),
        ("/data/x.h", "/proc", open(READ), File, Found),
        ("/dev/../data/x.h", "/proc", open(READ), File, Found),
    ];
    for (path, real, operation, end, expected) in cases {
        let access = access(&own(path), operation.clone(), end);
        let judged = judge(&access, SCRATCH.as_ref(), own(real).as_ref());
        assert_eq!(judged, expected, "{operation:?} {path}");
    }
}

#[test]
fn parent_components_are_resolved_as_far_as_possible() {
    for (path, tidy) in [
        ("./a/../b/./c", "b/c"),
        ("a/../../b", "../b"),
        ("../../a/..", "../.."),
        ("/a/../../b", "/b"),
        ("a/..", ""),
    ] {
        assert_eq!(tidy_path(Path::new(path)), Path::new(tidy), "{path}");
    }
}
