//! Renames a damaged user kdb, so that a new one can be started and nothing is
//! lost.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// The files that SQLite keeps beside a database. If they stayed, they would be
/// applied to the new one.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Suffix for the name of a kept file, before a number.
const SUFFIX: &str = ".corrupt-";

/// How many damaged files of each name to keep. Older ones are removed.
const KEPT: usize = 2;

/// Renames the file and its companion files to `<name>.corrupt-<n>`, with the
/// next free number, and returns that name. Of earlier ones, only the newest is
/// kept.
///
/// # Errors
/// The operating system's errors; the file then still has its old name.
pub(crate) fn rename(path: &Path) -> io::Result<PathBuf> {
    let mut numbers = kept_numbers(path)?;
    numbers.sort_unstable();
    let kept_as = |number: u64| with_suffix(path, &format!("{SUFFIX}{number}"));
    let next = numbers.last().map_or(Some(1), |last| last.checked_add(1));
    let renamed = kept_as(next.ok_or(io::ErrorKind::AlreadyExists)?);
    for companion in COMPANIONS {
        match no_replace(&with_suffix(path, companion), &with_suffix(&renamed, companion)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    no_replace(path, &renamed)?;
    let too_many = (numbers.len() + 1).saturating_sub(KEPT);
    for old in numbers.into_iter().take(too_many).map(kept_as) {
        for companion in COMPANIONS {
            std::fs::remove_file(with_suffix(&old, companion)).ok();
        }
        std::fs::remove_file(&old).ok();
    }
    Ok(renamed)
}

/// The numbers of the kept files.
fn kept_numbers(path: &Path) -> io::Result<Vec<u64>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut before = name.to_owned();
    before.push(SUFFIX);
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.as_bytes().strip_prefix(before.as_bytes());
        let number = number.and_then(|number| str::from_utf8(number).ok()?.parse::<u64>().ok());
        numbers.extend(number);
    }
    Ok(numbers)
}

fn no_replace(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system supports the flag; the callers hold a lock.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(from, to),
        other => other.map_err(io::Error::from),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
