//! The dependencies of a driver's or script's output: the file accesses of all its processes, and
//! the programs themselves.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{
    FileAccess, Operation, PathQuery, PathRole, PathRoles, PathState, Record, RunDependencies,
    judge_records,
};
use crate::Timestamp;
use crate::watch::FileSystemCache;

/// Directories with information about the system and its processes, and no files. Programs seed
/// their hash tables with it, and count processors.
const NO_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];
/// A file system in memory below one of these, which holds files like any other.
const FILES: &str = "/dev/shm";
/// The length of a script's first line that Linux reads.
///
/// Source: Linux, `include/uapi/linux/binfmts.h`, `BINPRM_BUF_SIZE`.
const FIRST_LINE: u64 = 256;
/// The most levels of scripts that are interpreters of scripts.
///
/// Source: Linux, `fs/exec.c`, `exec_binprm`.
const SCRIPTS: usize = 5;

/// The roles for a driver, which may read anything, but write only into `scratch`.
#[must_use]
pub fn driver_path_roles(stage: PathBuf, scratch: &Path) -> PathRoles {
    let roles = PathRoles::new(stage).with(PathRole::Scratch, scratch);
    let roles = roles.with(PathRole::Readable, "/").with(PathRole::Readable, FILES);
    NO_FILES.iter().fold(roles, |all, dir| all.with(PathRole::Covered, *dir))
}

/// Judges the record of a driver or script that was started as `program` in the directory `scratch`
/// after `since`. The recorder must have recorded all processes
/// ([`RecorderOptions::all`](super::RecorderOptions::all)).
///
/// A record does not contain the paths at which a program's loader looked for libraries; the
/// libraries that it found are among the answers.
#[must_use]
pub fn judge_driver_record(
    record: &Record,
    program: &Path,
    scratch: &Path,
    file_system: &FileSystemCache<'_>,
    since: Timestamp,
) -> RunDependencies {
    let roles = driver_path_roles(scratch.to_owned(), scratch);
    let mut dependencies = judge_records([record], |_| &roles, file_system, since);
    dependencies
        .add_programs(record, program, file_system, since, |path| !path.starts_with(scratch));
    dependencies
}

impl RunDependencies {
    /// Adds the programs of a record, the interpreters of scripts, the libraries of both, and
    /// whether the files that were looked up are executable; of the programs, those for which
    /// `counts` is true. The recorder must have recorded all processes.
    pub fn add_programs(
        &mut self,
        record: &Record,
        program: &Path,
        file_system: &FileSystemCache<'_>,
        since: Timestamp,
        counts: impl Fn(&Path) -> bool,
    ) {
        let seen: BTreeSet<&Path> = record
            .accesses
            .iter()
            .filter(|access| sees_mode(access))
            .map(|access| access.path.as_path())
            .collect();
        let files = self.states.iter().filter(|(_, state)| state.digest().is_some());
        let modes: Vec<_> = files
            .filter(|(path, _)| seen.contains(path.as_path()))
            .filter_map(|(path, _)| {
                Some((path.clone(), file_system.state(path, PathQuery::Executable)?))
            })
            .collect();
        self.states.extend(modes);
        for path in started(record, program).into_iter().filter(|path| counts(path)) {
            match file_system.state(&path, PathQuery::Content) {
                Some(state @ PathState::File { .. }) => {
                    // The record does not identify the file, so it must not have changed since.
                    if !file_system.was_settled(&path, since) {
                        self.fresh.insert((path.clone(), state.clone()));
                    }
                    self.states.insert((path, state));
                }
                _ => {
                    self.changed.get_or_insert(path);
                }
            }
        }
    }
}

/// Whether an access shows if a file is executable.
fn sees_mode(access: &FileAccess) -> bool {
    const EXECUTE: u32 = 1;
    match access.operation {
        Operation::Execute => true,
        Operation::Access(mode) => mode & EXECUTE != 0,
        Operation::Stat | Operation::Lstat => access.file.is_some_and(|file| !file.is_dir()),
        _ => false,
    }
}

/// The programs that ran, by the paths that were started and by their own, the interpreters of
/// scripts, and the libraries of all.
fn started(record: &Record, program: &Path) -> BTreeSet<PathBuf> {
    let executed = record
        .accesses
        .iter()
        .filter(|access| access.operation == Operation::Execute && access.error.is_none());
    let named = executed.map(|access| access.path.as_path()).chain([program]);
    let mut started: BTreeSet<PathBuf> = BTreeSet::new();
    for program in named {
        started.extend(with_interpreters(program));
    }
    for process in &record.processes {
        started.insert(process.program.clone());
        started.extend(process.libraries.iter().cloned());
    }
    let is_file = |path: &PathBuf| {
        path.starts_with(FILES) || !NO_FILES.iter().any(|dir| path.starts_with(dir))
    };
    started.retain(is_file);
    started
}

/// A program, the interpreter in its first line if it is a script, and that one's.
fn with_interpreters(program: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::successors(Some(program.to_owned()), |file| interpreter(file)).take(SCRIPTS + 1)
}

/// Whether the process of a program that was started by the name `named` runs the file `ran`. If
/// not, a program that can't be watched was started, and became this one later.
pub(super) fn is_run_by(named: &Path, ran: &Path) -> bool {
    with_interpreters(named).any(|file| file.canonicalize().is_ok_and(|file| file == ran))
}

/// The program named in a script's first line.
///
/// Source: Linux, `fs/binfmt_script.c`.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    File::open(script).ok()?.take(FIRST_LINE).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | 0));
    let name = words.find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(name).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;
    use crate::watch::{FileStat, Judgement};

    #[test]
    fn programs_and_files_in_shared_memory_count() {
        let accesses = ["/dev/shm/x.cfg", "/dev/x"].map(|path| FileAccess {
            process: 0,
            path: path.into(),
            operation: Operation::Stat,
            error: Some(2),
            file: None,
        });
        let roles = driver_path_roles("/stage".into(), Path::new("/scratch"));
        let judged = accesses.clone().map(|access| roles.judge(&access, &access.path).remove(0));
        assert_eq!(judged, [Judgement::Absent(accesses[0].path.clone()), Judgement::Nothing]);
        let record = Record {
            processes: Vec::new(),
            executions: Vec::new(),
            accesses: Vec::new(),
            heap_was_short: false,
        };
        let programs = ["/dev/shm/clang", "/dev/clang"];
        let started = programs.map(|program| started(&record, Path::new(program)).len());
        assert_eq!(started, [1, 0]);
    }

    #[test]
    fn pipes_and_directories_above_a_run_are_no_files() {
        let file = |mode| FileStat { mode, identity: Identity::new((1, 1), 0, 0, 0) };
        let roles = driver_path_roles("/cache/work/build-1/source".into(), Path::new("/scratch"));
        let judge = |path: &str, operation, mode, real: &str| {
            let file = Some(file(mode));
            let access = FileAccess { process: 0, path: path.into(), operation, error: None, file };
            roles.judge(&access, Path::new(real)).remove(0)
        };
        let opened = |to: &str| Operation::Open { flags: 0, real: Some(to.into()) };
        assert_eq!(judge("/dev/fd/63", opened("pipe:[1]"), 0o010_600, "/proc"), Judgement::Nothing);
        let is_there = |path: &str, real| judge(path, Operation::Lstat, 0o040_755, real);
        let above = "/cache/work/build-1";
        assert_eq!(is_there(above, above), Judgement::Nothing);
        for (path, real) in [
            ("/cache/other", "/cache/other"),
            ("/cache/work", "/cache/work"),
            ("/cache", "/cache"),
            ("/link", above),
        ] {
            assert_eq!(is_there(path, real), Judgement::Directory(path.into()));
        }
        let listed = judge(above, Operation::List, 0o040_755, above);
        assert_eq!(listed, Judgement::Listing(above.into()));
    }

    #[test]
    fn interpreters_are_those_of_the_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        let check = |text: &str, expected: Option<&str>| {
            std::fs::write(&file, text).unwrap();
            assert_eq!(interpreter(&file), expected.map(PathBuf::from), "{text:?}");
        };
        check("#!/bin/sh\necho\n", Some("/bin/sh"));
        check("#! \t/usr/bin/env perl -w\n", Some("/usr/bin/env"));
        check("#!/bin/sh", Some("/bin/sh"));
        check("#!\n/bin/sh\n", None);
        check("# /bin/sh\n", None);
        check("", None);
        assert_eq!(interpreter(dir.path()), None);
    }
}
