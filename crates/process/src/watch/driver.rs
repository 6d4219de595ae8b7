//! The programs of a driver's or script's run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::judgement::may_be_file;
use super::{Operation, Record};

/// The length of a script's first line that Linux reads.
///
/// Source: Linux, `include/uapi/linux/binfmts.h`, `BINPRM_BUF_SIZE`.
const FIRST_LINE: u64 = 256;
/// The most levels of scripts that are interpreters of scripts.
///
/// Source: Linux, `fs/exec.c`, `exec_binprm`.
const SCRIPTS: usize = 5;

/// The programs that ran, by the paths that were started and by their own, the interpreters of
/// scripts, and the libraries of all.
pub(super) fn started(record: &Record, program: &Path) -> BTreeSet<PathBuf> {
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
    started.retain(|path| may_be_file(path));
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
