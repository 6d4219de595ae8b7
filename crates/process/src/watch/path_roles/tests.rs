//! The table of roles, line by line.

use super::Judgement::{
    Absent, AbsentInStage, Directory, InStage, Listing, ListsStage, Nothing, Present, Reads, Writes,
};
use super::*;
use crate::file_digest::Identity;
use crate::watch::FileStat;

fn roles() -> PathRoles {
    let roles = [
        (PathRole::Scratch, &["/cache/work/1/tmp", "/cache/work/1/out"][..]),
        (PathRole::Covered, &["/usr/lib/llvm-15", "/usr/lib/bitcode/ocml.bc", "/usr/include/hip"]),
        (PathRole::Covered, &["/cache/headers"]),
        (PathRole::Readable, &["/usr/include", "/usr/lib/gcc", "/data"]),
    ];
    let of = |roles: PathRoles, (role, dirs): &(PathRole, &[&str])| {
        dirs.iter().fold(roles, |roles, dir| roles.with(*role, *dir))
    };
    roles.iter().fold(PathRoles::new("/cache/work/1/src".into()), of)
}

const READ: u32 = 0;
const WRITE: u32 = 0o1 | 0o100 | 0o1000;

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

fn judged(path: &str, real: &str, operation: Operation, end: End) -> Vec<Judgement> {
    let stat = |mode| FileStat { mode, identity: Identity::new((1, 2), 3, 4, 5) };
    let (error, file) = match end {
        File => (None, Some(stat(0o100_644))),
        Dir => (None, Some(stat(0o040_755))),
        Fails(error) => (Some(error), None),
    };
    let access = FileAccess { process: 0, path: path.into(), operation, error, file };
    roles().judge(&access, Path::new(real))
}

#[test]
fn reads_are_judged_by_the_place_of_the_path() {
    let header = "/usr/include/c++/12/cmath";
    let cases: Vec<(&str, Operation, End, Judgement)> = vec![
        ("/cache/work/1/src/k.cl", open(READ), File, InStage("k.cl".into())),
        ("/cache/work/1/src/./a/../k.cl", Operation::Stat, File, InStage("a/../k.cl".into())),
        ("/cache/work/1/src/a/b.h", open(READ), NO_ENTRY, AbsentInStage("a/b.h".into())),
        ("/cache/work/1/src/a", Operation::Stat, Dir, InStage("a".into())),
        ("/cache/work/1/src", Operation::List, Dir, ListsStage("".into())),
        ("/cache/work/1/src/a", Operation::List, Dir, ListsStage("a".into())),
        ("/cache/work/1/src/..", Operation::Stat, Dir, Nothing),
        ("/cache/work/1/tmp/k.o", Operation::Stat, NO_ENTRY, Nothing),
        ("/cache/work/1/other", Operation::Stat, File, Reads("/cache/work/1/other".into())),
        ("/cache/headers/7.pch", open(READ), File, Nothing),
        ("/usr/lib/llvm-15/lib/clang/15/include/x.h", open(READ), File, Nothing),
        ("/usr/lib/llvm-15/none.h", open(READ), NO_ENTRY, Nothing),
        ("/usr/lib/bitcode/ocml.bc", open(READ), File, Nothing),
        ("/usr/lib/bitcode/ocml.bc2", open(READ), File, Reads("/usr/lib/bitcode/ocml.bc2".into())),
        ("/usr/include/hip/hip_runtime.h", open(READ), File, Nothing),
        (header, open(READ), File, Present(header.into())),
        (header, Operation::Stat, File, Present(header.into())),
        (header, Operation::Access(4), File, Present(header.into())),
        (header, open(READ), NO_ENTRY, Absent(header.into())),
        ("/usr/include", Operation::Stat, Dir, Directory("/usr/include".into())),
        ("/usr/include", Operation::List, Dir, Listing("/usr/include".into())),
        ("/data/table.bin", open(READ), File, Present("/data/table.bin".into())),
        ("/etc/hostname", open(READ), File, Reads("/etc/hostname".into())),
        ("/etc/hostname", Operation::Stat, File, Reads("/etc/hostname".into())),
        ("/etc/shadow", open(READ), FORBIDDEN, Reads("/etc/shadow".into())),
        ("/etc", Operation::Stat, Dir, Directory("/etc".into())),
        ("/etc", Operation::List, Dir, Reads("/etc".into())),
        ("/opt/none.h", open(READ), NO_ENTRY, Absent("/opt/none.h".into())),
        ("/opt/file/none.h", open(READ), Fails(20), Absent("/opt/file/none.h".into())),
    ];
    for (path, operation, end, expected) in cases {
        assert_eq!(judged(path, path, operation.clone(), end), [expected], "{operation:?} {path}");
    }
}

#[test]
fn links_are_judged_by_their_targets() {
    let named = "/cache/work/1/src/link.h";
    // The descriptor's path counts, whatever the given path is.
    let opened = Operation::Open { flags: READ, real: Some("/etc/hostname".into()) };
    assert_eq!(judged(named, named, opened, File), [Reads(named.into())]);
    let opened = Operation::Open { flags: READ, real: Some("/usr/include/stdio.h".into()) };
    assert_eq!(
        judged("/usr/include/x/../stdio.h", "/x", opened, File),
        [Present("/usr/include/x/../stdio.h".into())]
    );
}

#[test]
fn links_from_elsewhere_into_the_toolchain_are_recorded() {
    let header = "/usr/include/hip/hip_version.h";
    let (link, dir) = (|| "/data/l.h".into(), || "/opt/hip".into());
    let cases: Vec<(&str, &str, Operation, End, Judgement)> = vec![
        ("/data/l.h", header, open(READ), File, Present(link())),
        ("/data/l.h", "/usr/include/hip/none.h", Operation::Stat, NO_ENTRY, Absent(link())),
        ("/opt/hip", "/usr/include/hip", Operation::Stat, Dir, Directory(dir())),
        ("/opt/hip", "/usr/include/hip", Operation::List, Dir, Listing(dir())),
        // `..` may follow a link.
        (
            "/usr/include/hip/../l.h",
            header,
            open(READ),
            File,
            Present("/usr/include/hip/../l.h".into()),
        ),
        ("/usr/include/hip/l.h", header, open(READ), File, Nothing),
        ("/usr/lib/llvm-15/l.h", header, open(READ), File, Nothing),
    ];
    for (path, real, operation, end, expected) in cases {
        assert_eq!(judged(path, real, operation.clone(), end), [expected], "{operation:?} {path}");
    }
}

#[test]
fn links_out_of_readable_directories_are_recorded() {
    let outside = "/opt/stow/x/include/x.h";
    let reads = |path: &str| Reads(path.into());
    let cases: Vec<(&str, Operation, Judgement)> = vec![
        ("/usr/include/x.h", open(READ), Present("/usr/include/x.h".into())),
        ("/usr/include/x.h", Operation::Stat, Present("/usr/include/x.h".into())),
        ("/usr/include/x/../x.h", open(READ), reads("/usr/include/x/../x.h")),
        ("/usr/include/x/../../../opt/x.h", open(READ), reads("/usr/include/x/../../../opt/x.h")),
        ("/usr/include/hip/x.h", open(READ), reads("/usr/include/hip/x.h")),
        ("/opt/x.h", open(READ), reads("/opt/x.h")),
        ("/cache/work/1/src/x.h", open(READ), reads("/cache/work/1/src/x.h")),
    ];
    for (path, operation, expected) in cases {
        let operation = match operation {
            Operation::Open { flags, .. } => Operation::Open { flags, real: Some(outside.into()) },
            other => other,
        };
        let admitted = roles().with(PathRole::Readable, "/cache");
        let file = Some(FileStat { mode: 0o100_644, identity: Identity::new((1, 2), 3, 4, 5) });
        let access = FileAccess { process: 0, path: path.into(), operation, error: None, file };
        assert_eq!(admitted.judge(&access, Path::new(outside)), [expected], "{path}");
    }
    let device = Operation::Open { flags: READ, real: Some("/proc/1/fd/0".into()) };
    assert_eq!(judged("/data/x.h", "/proc/1/fd/0", device, File), [reads("/data/x.h")]);
}

#[test]
fn paths_leaving_the_stage_are_relative_to_the_sources() {
    let up = "/cache/work/1/src/a/../../../../../etc/hostname";
    let below = PathBuf::from("a/../../../../../etc/hostname");
    assert_eq!(
        judged(up, "/etc/hostname", Operation::Stat, File),
        [Reads("../../../../etc/hostname".into())]
    );
    assert_eq!(judged(up, "/etc/hostname", open(READ), NO_ENTRY), [AbsentInStage(below)]);
    // Even if it would be allowed by its resolved path.
    let up = "/cache/work/1/src/../../../../usr/include/stdio.h";
    let below = PathBuf::from("../../../../usr/include/stdio.h");
    assert_eq!(judged(up, "/usr/include/stdio.h", Operation::Stat, File), [Reads(below)]);
}

#[test]
fn only_the_listed_system_files_are_harmless() {
    let cases = [
        ("/proc/self/exe", Operation::Readlink(None), true),
        ("/proc/self/exe", open(READ), false),
        ("/proc/self/fd", Operation::Access(4), true),
        ("/proc/self/fd", Operation::List, false),
        ("/proc/self/exe", Operation::Stat, true),
        ("/proc/self/fd/12", Operation::Readlink(None), true),
        ("/proc/self/fd/12", Operation::Stat, false),
        ("/proc/self/fd/12", open(READ), false),
        ("/proc/self/fd/12/x", Operation::Readlink(None), false),
        ("/proc/self/cmdline", open(READ), false),
        ("/proc/cpuinfo", open(READ), false),
        ("/dev/null", open(READ), true),
        ("/dev/null", open(WRITE), true),
        ("/dev/stdin", open(READ), false),
        ("/dev/random", open(READ), false),
        ("/sys/devices/system/cpu/online", open(READ), false),
        ("/etc/ld.so.cache", open(READ), false),
    ];
    for (path, operation, harmless) in cases {
        let expected = if harmless { Nothing } else { Reads(path.into()) };
        assert_eq!(judged(path, path, operation.clone(), File), [expected], "{operation:?} {path}");
    }
    // In /proc, each process finds other files, or none.
    for path in ["/proc/self/cwd/a.h", "/data/link/cwd/a.h"] {
        assert_eq!(judged(path, "/proc", Operation::Stat, NO_ENTRY), [Reads(path.into())]);
    }
}

#[test]
fn only_scratch_and_output_may_be_written() {
    let (inside, outside) = ("/cache/work/1/tmp/k.o", "/cache/work/1/src/k.o");
    for operation in [
        open(WRITE),
        Operation::Remove,
        Operation::Make,
        Operation::Change,
        Operation::Symlink("x".into()),
    ] {
        assert_eq!(judged(inside, inside, operation.clone(), File), [Nothing], "{operation:?}");
        // A failed attempt counts, too.
        for end in [File, FORBIDDEN, NO_ENTRY] {
            let judgement = judged(outside, outside, operation.clone(), end);
            assert_eq!(judgement, [Writes(outside.into())], "{operation:?}");
        }
    }
    let moved = |to: &str| judged(inside, inside, Operation::Rename(to.into()), File);
    assert_eq!(moved("/cache/work/1/out/k.o"), [Nothing]);
    assert_eq!(moved(outside), [Nothing, Writes(outside.into())]);
    let through = "/cache/work/1/tmp/../src/k.o";
    assert_eq!(moved(through), [Nothing, Writes(through.into())]);
    let linked = judged(inside, inside, Operation::Link("/etc/hostname".into()), File);
    assert_eq!(linked, [Nothing, Writes("/etc/hostname".into())]);
    // A link in scratch that leads elsewhere.
    assert_eq!(judged(inside, "/elsewhere/x", open(WRITE), NO_ENTRY), [Writes(inside.into())]);
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
